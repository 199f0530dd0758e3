"""Everything that was timed, of an embedded run or of a group that runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from binwright.lab.timings.capacity import Capacity
from binwright.lab.timings.distribution import Distribution
from binwright.lab.timings.events import Change, Start, Trigger, WriterStop
from binwright.lab.timings.paper import DELTA_1, DELTA_2, DELTA_3, DELTA_4, PublishedTiming
from binwright.lab.timings.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """What was timed; a part that was not run is empty."""

    steps: Sequence[Step] = ()
    triggers: Sequence[Trigger] = ()
    starts: Sequence[Start] = ()
    changes: Sequence[Change] = ()
    writer_stops: Sequence[WriterStop] = ()
    capacities: Sequence[Capacity] = ()
    untriggered: int = 0
    unfinished: int = 0
    missing: int = 0  # records of the range that compaction had removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One kind of event: a row of the table, a line of a figure."""

    name: str
    delta: int  # of the paper's Δt1 to Δt4
    label: str
    ours: Distribution | None
    paper: PublishedTiming | None  # None: the paper has nothing to compare with


def timed(found: Timings) -> list[Timed]:
    """Return every kind of event, in the paper's order."""
    steps, starts, changes = found.steps, found.starts, found.changes
    waiting = [change for change in changes if change.started]
    processes = [start.process_s for start in starts if start.process_s is not None]
    return [
        Timed(
            name="step-90",
            delta=1,
            label="monitor: 90 % of a step",
            ours=Distribution.of(step.ninety_s for step in steps),
            paper=DELTA_1,
        ),
        Timed(
            name="step-99",
            delta=1,
            label="monitor: 99 % of a step",
            ours=Distribution.of(step.whole_s for step in steps),
            paper=None,
        ),
        Timed(
            name="trigger",
            delta=2,
            label="measurement to plan",
            ours=Distribution.of(trigger.seconds for trigger in found.triggers),
            paper=DELTA_2,
        ),
        Timed(
            name="ready",
            delta=3,
            label="plan to ready consumer",
            ours=Distribution.of(start.seconds for start in starts),
            paper=DELTA_3,
        ),
        Timed(
            name="process",
            delta=3,
            label="its process: Hello to ready",
            ours=Distribution.of(processes),
            paper=None,
        ),
        Timed(
            name="change-after-ready",
            delta=4,
            label="ready to all partitions read",
            ours=Distribution.of(change.after_ready_s for change in changes),
            paper=DELTA_4,
        ),
        Timed(
            name="change",
            delta=4,
            label="plan to all partitions read",
            ours=Distribution.of(change.seconds for change in changes),
            paper=None,
        ),
        Timed(
            name="change-with-start",
            delta=4,
            label="the same, with a start",
            ours=Distribution.of(change.seconds for change in waiting),
            paper=None,
        ),
        Timed(
            name="writer-stop",
            delta=4,
            label="plan to a table's writer stopped",
            ours=Distribution.of(stop.seconds for stop in found.writer_stops),
            paper=None,
        ),
    ]
