"""Everything that was timed, of an embedded run or of a group that runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from binwright.lab.timings.capacity import ReadCapacity
from binwright.lab.timings.distribution import Distribution
from binwright.lab.timings.events import ConsumerStart, PlanTrigger, StateChange, WriterStop
from binwright.lab.timings.published import DELTA_1, DELTA_2, DELTA_3, DELTA_4, PublishedTiming
from binwright.lab.timings.steps import RateStep


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedParts:
    """What was timed; a part that was not run is empty."""

    steps: Sequence[RateStep] = ()
    triggers: Sequence[PlanTrigger] = ()
    starts: Sequence[ConsumerStart] = ()
    changes: Sequence[StateChange] = ()
    writer_stops: Sequence[WriterStop] = ()
    capacities: Sequence[ReadCapacity] = ()
    untriggered: int = 0
    unfinished: int = 0
    missing: int = 0  # records of the range that compaction had removed
    wanted: Mapping[int, int] = field(default_factory=dict)  # Δ -> events; {}: as many as came


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One kind of event: a row of the table, a line of a figure."""

    name: str
    delta: int  # of the paper's Δt1 to Δt4
    label: str
    ours: Distribution | None
    paper: PublishedTiming | None  # None: the paper has nothing to compare with


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is timed, and where its seconds come from."""

    name: str
    delta: int
    label: str
    seconds: Callable[[TimedParts], Iterable[float]]
    paper: PublishedTiming | None = None


_KINDS = (
    _Kind(
        "step-90", 1, "monitor: 90 % of a step", lambda f: (s.ninety_s for s in f.steps), DELTA_1
    ),
    _Kind("step-99", 1, "monitor: 99 % of a step", lambda f: (s.whole_s for s in f.steps)),
    _Kind("trigger", 2, "measurement to plan", lambda f: (t.seconds for t in f.triggers), DELTA_2),
    _Kind("ready", 3, "plan to ready consumer", lambda f: (s.seconds for s in f.starts), DELTA_3),
    _Kind(
        "process",
        3,
        "its process: Hello to ready",
        lambda f: (s.process_s for s in f.starts if s.process_s is not None),
    ),
    _Kind(
        "change-after-ready",
        4,
        "ready to all partitions read",
        lambda f: (c.after_ready_s for c in f.changes),
        DELTA_4,
    ),
    _Kind("change", 4, "plan to all partitions read", lambda f: (c.seconds for c in f.changes)),
    _Kind(
        "change-with-start",
        4,
        "the same, with a start",
        lambda f: (c.seconds for c in f.changes if c.started),
    ),
    _Kind(
        "writer-stop",
        4,
        "plan to a table's writer stopped",
        lambda f: (s.seconds for s in f.writer_stops),
    ),
)
"""In the paper's order."""


def timed(timings: TimedParts) -> list[Timed]:
    """Return every kind of event, in the paper's order."""
    return [
        Timed(
            name=kind.name,
            delta=kind.delta,
            label=kind.label,
            ours=Distribution.of(kind.seconds(timings)),
            paper=kind.paper,
        )
        for kind in _KINDS
    ]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A distribution beside the paper's that has fewer events than were wanted."""

    delta: int
    label: str
    events: int
    wanted: int


def shortfalls(timings: TimedParts) -> list[Shortfall]:
    """Return the distributions with too few events, in the paper's order."""
    return [
        Shortfall(one.delta, one.label, events, wanted)
        for one in timed(timings)
        if one.paper is not None
        and (events := len(one.ours.samples) if one.ours else 0)
        < (wanted := timings.wanted.get(one.delta, 0))
    ]
