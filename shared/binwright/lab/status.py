"""A group in a few words and numbers: what `binwright status` shows, folded from a `Picture`."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from binwright.core.messages import Report
from binwright.core.model import Slot, TopicPartition
from binwright.core.selection import Selection
from binwright.lab.picture import Picture
from binwright.lab.table_status import TableStatus, table_statuses

SILENT_MS = 10_000  # as long as a controller waits by default before it declares somebody dead

State = Literal["empty", "silent", "unread", "refused", "unwritten", "moving", "steady"]
"""empty: nothing was ever reported. silent: no consumer has reported lately. unread: partitions
without a reader. refused: a table takes nothing. unwritten: a table without a writer. moving: the
last plan is being carried out. steady: everything is where the plan has it.
"""
Phase = Literal["waiting", "stopping", "starting"]
"""waiting: the new owner is not ready yet. stopping: it is, and the old owner still reads.
starting: the old owner has stopped, and the new one has not begun.
"""


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """One consumer process."""

    slot: Slot
    state: Literal["starting", "ready", "leaving", "silent"]
    partitions: tuple[TopicPartition, ...]
    load: float  # bytes/s written to what it reads
    staging: float  # bytes/s that it stages
    lag: int  # records of what it reads that have not landed
    silent_s: float  # since it reported
    tables: tuple[str, ...] = ()  # that it writes, by their topics
    busy: float = 0.0  # share of the time in which fetching waited for staging, 0 to 1
    staged_bytes: int = 0  # in files of its that have not landed
    lost_offsets: int = 0  # that retention took before it read them


@dataclass(frozen=True, slots=True)
class Motion:
    """A partition that is not yet where the last plan has it."""

    partition: TopicPartition
    old: Slot | None
    new: Slot
    phase: Phase


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """The last plan."""

    age_s: float
    reasons: tuple[str, ...]
    consumers: int
    moves: int
    rscore: float


@dataclass(frozen=True, slots=True)
class Change:
    """What a plan would do with one partition."""

    partition: TopicPartition
    old: Slot | None  # None: nobody reads it
    new: Slot


@dataclass(frozen=True, slots=True)
class ProposalStatus:
    """A plan that is shown and not carried out, or not yet."""

    plan: int  # its number
    age_s: float
    reasons: tuple[str, ...]
    consumers: int
    changes: tuple[Change, ...]
    rscore: float
    waits: bool  # for an approval; else the group only observes
    approved: bool


@dataclass(frozen=True, slots=True)
class Status:
    """One group."""

    group: str
    state: State
    term: int | None  # of the controller that claimed last; None: no one ever did
    controller: str | None
    consumers: tuple[ConsumerStatus, ...]
    partitions: int
    unread: tuple[TopicPartition, ...]
    load: float  # bytes/s written
    staging: float  # bytes/s that all consumers stage
    lag: int  # records written and not landed
    moves: tuple[Motion, ...]
    plan: PlanStatus | None
    proposal: ProposalStatus | None = None
    tables: tuple[TableStatus, ...] = ()

    @property
    def age_s(self) -> float:
        """Age of the oldest staged row of all tables that has not landed."""
        return max((table.age_s for table in self.tables), default=0.0)

    def facts(self) -> dict[str, Any]:
        """Return all of it for programs; partitions as TOPIC-NUMBER."""
        found: dict[str, Any] = _plain({**asdict(self), "age_s": self.age_s})
        return found


def status(group: str, picture: Picture, now_ms: int, topics: Selection | None = None) -> Status:
    """Sum a picture up.

    Args:
        group: Its name.
        picture: What was heard of it.
        now_ms: Wall clock.
        topics: What it reads, where that is known; else what its plan and its consumers name.
    """
    parts = _partitions(picture, topics)
    consumers = tuple(_consumer(picture, slot, now_ms) for slot in sorted(picture.heard_ms))
    live = {each.slot for each in consumers if each.state != "silent"}
    read = {p for slot, r in picture.reports.items() if slot in live for p in r.reading}
    targets = picture.plans[-1].targets if picture.plans else {}
    handed = {p for p in picture.between if targets.get(p) in live}
    unread = tuple(sorted(parts - read - handed))
    moves = _moves(picture)
    leader = picture.reign
    tables = table_statuses(picture, parts, live, now_ms)
    return Status(
        group=group,
        state=_state(consumers, unread, tables, moves, known=leader is not None),
        term=leader.term if leader else None,
        controller=leader.controller if leader else None,
        consumers=consumers,
        partitions=len(parts),
        unread=unread,
        load=sum(picture.rates.get(p, 0.0) for p in parts),
        staging=sum(each.staging for each in consumers),
        lag=sum(map(picture.partition_lag, parts)),
        moves=moves,
        plan=_plan(picture, now_ms),
        proposal=_proposal(picture, now_ms),
        tables=tables,
    )


def _partitions(picture: Picture, topics: Selection | None) -> set[TopicPartition]:
    """Return what the group is about: the metrics topic may name other groups' topics, too."""
    plan = picture.plans[-1] if picture.plans else None
    named = {p for r in picture.reports.values() for p in r.reading}
    named |= set(plan.targets) if plan else set()
    named |= set(picture.waiting.plan.targets) if picture.waiting else set()
    about = {p.topic for p in named}
    if topics is not None:
        about = {topic for topic in {p.topic for p in picture.ends} if topics.takes(topic)}
    return named | {p for p in picture.ends if p.topic in about}


def _consumer(picture: Picture, slot: Slot, now_ms: int) -> ConsumerStatus:
    report = picture.reports.get(slot)
    silent_ms = max(0, now_ms - picture.heard_ms[slot])
    if silent_ms > SILENT_MS:
        state: Literal["starting", "ready", "leaving", "silent"] = "silent"
    elif report is None or not report.ready:
        state = "starting"
    else:
        state = "leaving" if report.leaving else "ready"
    if report is None:
        return ConsumerStatus(slot, state, (), 0.0, 0.0, 0, silent_ms / 1000)
    return ConsumerStatus(
        slot=slot,
        state=state,
        partitions=tuple(sorted(report.reading)),
        load=picture.load(slot),
        staging=report.rate if state != "silent" else 0.0,
        lag=sum(map(picture.partition_lag, report.reading)),
        silent_s=silent_ms / 1000,
        tables=tuple(sorted(report.writing)),
        busy=report.busy,
        staged_bytes=report.staged_bytes,
        lost_offsets=report.lost_offsets,
    )


def _moves(picture: Picture) -> tuple[Motion, ...]:
    if not picture.plans:
        return ()
    found = []
    for partition, new in sorted(picture.plans[-1].targets.items()):
        report = picture.reports.get(new)
        if report is None or report.reading.get(partition) is None:
            owners = [s for s, r in picture.reports.items() if s != new and partition in r.reading]
            old = min(owners, default=None)
            found.append(Motion(partition, old, new, _phase(report, old)))
    return tuple(found)


def _phase(new: Report | None, old: Slot | None) -> Phase:
    if new is None or not new.ready:
        return "waiting"
    return "starting" if old is None else "stopping"


def _plan(picture: Picture, now_ms: int) -> PlanStatus | None:
    if not picture.plans or picture.planned_ms is None:
        return None
    last = picture.plans[-1]
    return PlanStatus(
        age_s=max(0, now_ms - picture.planned_ms) / 1000,
        reasons=tuple(last.reasons),
        consumers=last.consumers,
        moves=len(last.moves),
        rscore=last.rscore,
    )


def _proposal(picture: Picture, now_ms: int) -> ProposalStatus | None:
    if (waiting := picture.waiting) is None:
        return None
    plan = waiting.plan
    return ProposalStatus(
        plan=waiting.number,
        age_s=max(0, now_ms - waiting.at_ms) / 1000,
        reasons=tuple(plan.reasons),
        consumers=plan.consumers,
        changes=tuple(
            Change(partition, plan.owners.get(partition), heir)
            for partition, heir in sorted(plan.targets.items())
            if plan.owners.get(partition) != heir
        ),
        rscore=plan.rscore,
        waits=plan.waits,
        approved=waiting.approved,
    )


def _state(
    consumers: tuple[ConsumerStatus, ...],
    unread: tuple[TopicPartition, ...],
    tables: tuple[TableStatus, ...],
    moves: tuple[Motion, ...],
    *,
    known: bool,
) -> State:
    if not known and not consumers:
        return "empty"
    if all(each.state == "silent" for each in consumers):
        return "silent"
    if unread:
        return "unread"
    if any(table.state == "refused" for table in tables):
        return "refused"
    if any(table.state in {"unwritten", "silent"} for table in tables):
        return "unwritten"
    return "moving" if moves else "steady"


def _plain(value: Any) -> Any:
    """Return what JSON can hold."""
    match value:
        case TopicPartition():
            return str(value)
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case _:
            return value
