"""Which faults, in which order: the same seed gives the same plan on every machine."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TypeVar

T = TypeVar("T")
Step = tuple[str, str, str]
"""A service, what it comes to, and when: before, during or after it."""


class Kind(StrEnum):
    """What can be done to the system."""

    KILL_CONSUMER = "kill -9 of a consumer"
    TERM_CONSUMER = "SIGTERM to a consumer"
    PAUSE_CONSUMER = "a consumer paused for less than its timeout"
    HANG_CONSUMER = "a consumer paused past its timeout"
    ZOMBIE = "a consumer paused past its timeout, out of the fleet's reach, woken"
    TWIN = "a second process for one slot"
    KILL_WRITER = "kill -9 of a table's writer"
    TERM_WRITER = "SIGTERM to a table's writer"
    REPLACED_WRITER = "a table's writer paused until another one has claimed, then woken"
    TWIN_WRITER = "a second process for the slot of a table's writer"
    KILL_LEADER = "kill -9 of the leading controller"
    KILL_STANDBY = "kill -9 of the standby controller"
    TERM_LEADER = "SIGTERM to the leading controller"
    TWO_LEADERS = "the leader paused until the standby leads, then woken"
    BROKER_RESTART = "broker restart"
    BROKER_KILL = "kill -9 of the broker"
    SPARK_KILL = "kill -9 of the Spark server"
    SPARK_AWAY = "Spark away for long"
    CUT_CONSUMER_KAFKA = "a consumer cut off from Kafka"
    CUT_WRITER_SPARK = "a table's writer cut off from Spark"
    CUT_LEADER = "the leading controller cut off from Kafka"
    CUT_KAFKA = "all cut off from Kafka"
    CUT_SPARK = "all cut off from Spark"
    STAGED_LOST = "a staged file deleted before it landed"
    STAGED_TORN = "a staged file cut in half before it landed"
    STAGED_EMPTY = "a staged file emptied before it landed"
    LEASE_LOST = "the lease of a table's writer deleted"
    ANNOUNCED_LOST = "announcements deleted, and the tables' writers killed"
    FORGED = "a forged announcement of offsets that are nowhere"
    LANDING_TOPIC_DELETED = "the landing topic deleted"
    DISK_FULL = "the lake's disk full"
    TABLE_REFUSED = "a table that refuses every row for long"
    SPARK_FROZEN = "one Spark server of two frozen for long"
    LEADERLESS = "a partition without a leader"
    BOMB = "a record that inflates to more memory than a batch may take"
    CLOCK_JUMP = "a service's wall clock an hour off"
    REGISTRY_KILL = "kill -9 of the schema registry"
    AIMED = "at a named step"


BESIDE_HEALTHY = (Kind.TABLE_REFUSED, Kind.SPARK_FROZEN, Kind.LEADERLESS, Kind.BOMB)
"""Faults beside which all other tables and partitions must go on as before."""

NEED_TWO = frozenset({Kind.SPARK_FROZEN, Kind.LEADERLESS})
"""Faults of one server of two."""

LASTING_S = {Kind.SPARK_AWAY: 60.0, Kind.SPARK_FROZEN: 60.0, Kind.TABLE_REFUSED: 60.0}
LONG_LASTING_S = {Kind.SPARK_AWAY: 600.0, Kind.SPARK_FROZEN: 600.0, Kind.TABLE_REFUSED: 1800.0}
"""How long faults last that are about patience: usually, and in a long run."""

SYSTEM_WIDE_KINDS = frozenset(
    {
        Kind.BROKER_RESTART,
        Kind.BROKER_KILL,
        Kind.SPARK_KILL,
        Kind.REGISTRY_KILL,
        Kind.SPARK_AWAY,
        Kind.CUT_KAFKA,
        Kind.CUT_SPARK,
        Kind.STAGED_LOST,
        Kind.STAGED_TORN,
        Kind.STAGED_EMPTY,
        Kind.ANNOUNCED_LOST,
        Kind.FORGED,
        Kind.LANDING_TOPIC_DELETED,
        Kind.DISK_FULL,
        *BESIDE_HEALTHY,
    }
)
"""Faults that every process may notice: one of them at a time, and nothing aimed beside it."""

MESSAGE_KINDS = ("hello", "report", "stopped", "started", "goodbye", "gap", "staged")
ORDERS = (
    *("claim", "state-query", "planned", "dead"),
    *("start-reading", "stop-reading", "start-writing", "stop-writing"),
)
CALLS = (
    *("staging.write", "staging.delete", "offsets.commit"),
    *("staging.write_lease", "staging.delete_other_leases"),
    *("lake.open", "lake.claim", "lake.history", "lake.append_bad", "lake.commit", "lake.compact"),
)
MARKS = ("table.claimed", "table.resolved")
STEPS = (
    *(("consumer", step, moment) for step in MESSAGE_KINDS for moment in ("before", "after")),
    *(("consumer", step, m) for step in CALLS for m in ("before", "during", "after")),
    *(("consumer", step, "after") for step in MARKS),
    *(("controller", step, moment) for step in ORDERS for moment in ("before", "after")),
)
"""(service, step, moment): published messages by kind, a consumer's calls, its log events."""

FAILURE_MODES = ("kill", "kill", "hang", "zombie", "twin")
EVOLUTION_STEPS = (
    *(
        ("consumer", f"lake.{call}", moment)
        for call in ("open", "claim", "add_columns", "append_bad", "commit", "commit_stamp")
        for moment in ("before", "during", "after")
    ),
    ("consumer", "delta.alter", "before"),
    *(("consumer", "staging.write", moment) for moment in ("before", "during", "after")),
    *(
        ("consumer", f"registry.{call}", moment)
        for call in ("schema", "versions", "version")
        for moment in ("before", "after")
    ),
)
"""Steps at which schemas are read, a table gets columns, and both of its commits are made."""
EVOLUTION_MODES = ("kill", "kill_spark", "kill_registry")
"""Whom kill -9 hits at a step: the process that comes to it, or a server."""
EVOLUTION_KINDS = (Kind.KILL_CONSUMER, Kind.KILL_WRITER, Kind.SPARK_KILL, Kind.REGISTRY_KILL)
SPLIT_STEPS = (
    *(
        ("consumer", step, moment)
        for step in ("stage-range", "range-staged", "staged", "stopped")
        for moment in ("before", "after")
    ),
    *(("consumer", "staging.write", moment) for moment in ("before", "during", "after")),
)
"""Steps of a partition that several consumers stage: it is handed out, staged, announced, moved."""
SPLIT_ORDERS = tuple(("controller", "split-reading", moment) for moment in ("before", "after"))
SPLIT_MODES = ("kill", "hang", "zombie", "twin")
SPLIT_KINDS = (
    *(Kind.KILL_LEADER, Kind.TWO_LEADERS, Kind.CUT_CONSUMER_KAFKA, Kind.BROKER_KILL),
    *(Kind.STAGED_LOST, Kind.STAGED_TORN, Kind.ANNOUNCED_LOST, Kind.LANDING_TOPIC_DELETED),
)
"""What else loses or repeats requests, replies and files of such a partition."""
EACH_KIND = 4  # times, at any moment, to once each step and mode: 100 in all
LONG_S = (12.0, 18.0)  # beyond the consumer timeout of 10 s, and the controllers' session of 6 s
SHORT_S = (2.0, 7.0)
PAIRED = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault; `pick` chooses the victim among those who are there then."""

    kind: Kind
    pick: int
    duration_s: float
    service: str = ""  # of an aimed one
    step: str = ""
    moment: str = ""
    failure_mode: str = ""

    def __str__(self) -> str:
        """Return the fault as text."""
        if self.kind is not Kind.AIMED:
            return str(self.kind)
        return f"{self.failure_mode} of a {self.service} {self.moment} {self.step}"


ConcurrentFaults = tuple[Fault, ...]
"""Faults that begin together."""


def random_schedule(
    seed: int,
    without: Collection[Kind] = (),
    aimed_only: bool = False,
    lasting_s: Mapping[Kind, float] = LASTING_S,
) -> Iterator[ConcurrentFaults]:
    """Yield scenes without end; every kind and every step comes before any comes again."""
    drawn = Random(seed)
    kinds = _deck(drawn, [k for k in Kind if k is not Kind.AIMED and k not in without])
    steps = _deck(drawn, STEPS)
    while True:
        first = _fault(drawn, kinds, steps, 1.0 if aimed_only else 0.5, lasting_s)
        second = _fault(drawn, kinds, steps, 0.0, lasting_s) if drawn.random() < PAIRED else None
        if aimed_only or second is None or {first.kind, second.kind} & SYSTEM_WIDE_KINDS:
            yield (first,)
            if second is not None and not aimed_only:
                yield (second,)
        else:
            yield (first, second)


def chosen_schedule(
    seed: int, kinds: Sequence[Kind], lasting_s: Mapping[Kind, float] = LASTING_S
) -> Iterator[ConcurrentFaults]:
    """Yield scenes of these kinds alone, in turn, one fault each, without end."""
    drawn, steps = Random(seed), _deck(Random(seed), STEPS)
    while True:
        for kind in kinds:
            aimed = 1.0 if kind is Kind.AIMED else 0.0
            yield (_fault(drawn, iter([kind]), steps, aimed, lasting_s),)


def evolution_schedule(seed: int) -> Iterator[ConcurrentFaults]:
    """Yield kills at each step of an evolution, each of every process, then all of them anew."""
    aimed = [(step, mode) for step in EVOLUTION_STEPS for mode in EVOLUTION_MODES]
    kinds = [kind for kind in EVOLUTION_KINDS for _ in range(EACH_KIND)]
    return _all_of(seed, aimed, kinds, SHORT_S)


def split_schedule(seed: int) -> Iterator[ConcurrentFaults]:
    """Yield faults at each step of a split partition, each of every mode, then all of them anew."""
    aimed = [(step, mode) for step in SPLIT_STEPS for mode in SPLIT_MODES]
    aimed += [(step, mode) for step in SPLIT_ORDERS for mode in ("kill", "hang")]
    return _all_of(seed, aimed, SPLIT_KINDS, LONG_S)


def _all_of(
    seed: int,
    aimed: Sequence[tuple[Step, str]],
    kinds: Sequence[Kind],
    held_s: tuple[float, float],
) -> Iterator[ConcurrentFaults]:
    """Yield a fault at each step of its mode, and one of each kind, in a drawn order; then again.

    Args:
        seed: Of the order.
        aimed: Steps and failure modes.
        kinds: Of faults at any moment.
        held_s: How long they last, at the least and at the most.
    """
    drawn = Random(seed)
    at_any_moment: list[tuple[Kind, Step, str]] = [(kind, ("", "", ""), "") for kind in kinds]
    cards = [(Kind.AIMED, step, mode) for step, mode in aimed] + at_any_moment
    for kind, (service, step, moment), mode in _deck(drawn, cards):
        fault = Fault(
            kind=kind,
            pick=drawn.randrange(1 << 16),
            duration_s=drawn.uniform(*held_s),
            service=service,
            step=step,
            moment=moment,
            failure_mode=mode,
        )
        yield (fault,)


def short_evolution() -> Iterator[ConcurrentFaults]:
    """Yield the scenes of a short run: between two commits, in one, and a server in one."""
    for step, moment, mode in (
        ("delta.alter", "before", "kill"),
        ("lake.append_bad", "after", "kill"),
        ("lake.commit", "during", "kill_spark"),
        ("registry.version", "before", "kill_registry"),
    ):
        aimed = {"service": "consumer", "step": step, "moment": moment, "failure_mode": mode}
        yield (Fault(kind=Kind.AIMED, pick=0, duration_s=0.0, **aimed),)


def short_schedule() -> Iterator[ConcurrentFaults]:
    """Yield the scenes of a short run: what costs rows if the rules of landing are broken."""
    commit = {"service": "consumer", "step": "lake.commit", "moment": "during"}
    yield (Fault(kind=Kind.AIMED, pick=0, duration_s=0.0, failure_mode="kill", **commit),)
    yield (Fault(kind=Kind.STAGED_LOST, pick=1, duration_s=0.0),)
    yield (Fault(kind=Kind.REPLACED_WRITER, pick=0, duration_s=0.0),)
    yield (Fault(kind=Kind.KILL_LEADER, pick=0, duration_s=0.0),)


def _fault(
    drawn: Random,
    kinds: Iterator[Kind],
    steps: Iterator[Step],
    aimed: float,
    lasting_s: Mapping[Kind, float],
) -> Fault:
    pick = drawn.randrange(1 << 16)
    if drawn.random() >= aimed:
        kind = next(kinds)
        held = SHORT_S if kind in {Kind.PAUSE_CONSUMER, Kind.CLOCK_JUMP} else LONG_S
        if kind in SYSTEM_WIDE_KINDS:  # shorter and longer than anybody's patience
            held = (SHORT_S[0], LONG_S[1])
        duration_s = drawn.uniform(*held)
        return Fault(kind=kind, pick=pick, duration_s=lasting_s.get(kind, duration_s))
    service, step, moment = next(steps)
    failure_mode = drawn.choice(FAILURE_MODES)
    if service == "controller" and failure_mode in {"zombie", "twin"}:
        failure_mode = "hang"  # a controller that wakes steps down: it is not killed meanwhile
    return Fault(
        kind=Kind.AIMED,
        pick=pick,
        duration_s=drawn.uniform(*LONG_S),
        service=service,
        step=step,
        moment=moment,
        failure_mode=failure_mode,
    )


def _deck(drawn: Random, cards: Sequence[T]) -> Iterator[T]:
    while True:
        yield from drawn.sample(cards, len(cards))
