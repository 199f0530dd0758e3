"""A group in a few words and numbers: what `binwright status` shows, folded from a `Picture`."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from binwright.core.messages import Report
from binwright.core.model import Slot, TopicPartition
from binwright.lab.picture import Picture

SILENT_MS = 10_000  # as long as a controller waits by default before it declares somebody dead

State = Literal["empty", "silent", "unread", "moving", "steady"]
"""empty: nobody ever spoke. silent: no consumer has spoken lately. unread: partitions without a
reader. moving: the last plan is being carried out. steady: everything is where the plan has it.
"""
Phase = Literal["waiting", "closing", "opening", "ahead"]
"""waiting: the heir is not there, or not asked yet. closing: the old owner's last write is on its
way. opening: the heir looks for where to begin. ahead: it reads, and waits for that last write.
"""


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """One consumer process."""

    slot: Slot
    state: Literal["starting", "ready", "leaving", "silent"]
    partitions: tuple[TopicPartition, ...]
    load: float  # bytes/s written to what it holds
    landing: float  # bytes/s
    lag: int  # records of what it holds
    silent_s: float  # since it spoke


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
    landing: float  # bytes/s
    lag: int  # records written and not landed
    moves: tuple[Motion, ...]
    plan: PlanStatus | None
    proposal: ProposalStatus | None = None

    def facts(self) -> dict[str, Any]:
        """Return all of it for programs; partitions as TOPIC-NUMBER."""
        found: dict[str, Any] = _plain(asdict(self))
        return found


def status(group: str, picture: Picture, now_ms: int, topics: Iterable[str] = ()) -> Status:
    """Sum a picture up.

    Args:
        group: Its name.
        picture: What was heard of it.
        now_ms: Wall clock.
        topics: What it reads, where that is known; else what its plan and its consumers name.
    """
    parts = _partitions(picture, frozenset(topics))
    consumers = tuple(_consumer(picture, slot, now_ms) for slot in sorted(picture.heard_ms))
    speak = {each.slot for each in consumers if each.state != "silent"}
    read = {p for slot, r in picture.reports.items() if slot in speak for p in _touched(r)}
    targets = picture.plans[-1].targets if picture.plans else {}
    handed = {p for p in picture.between if targets.get(p) in speak}
    unread = tuple(sorted(parts - read - handed))
    moves = _moves(picture)
    reign = picture.reign
    return Status(
        group=group,
        state=_state(consumers, unread, moves, known=reign is not None),
        term=reign.term if reign else None,
        controller=reign.controller if reign else None,
        consumers=consumers,
        partitions=len(parts),
        unread=unread,
        load=sum(picture.rates.get(p, 0.0) for p in parts),
        landing=sum(each.landing for each in consumers),
        lag=sum(_lag(picture, p) for p in parts),
        moves=moves,
        plan=_plan(picture, now_ms),
        proposal=_proposal(picture, now_ms),
    )


def _partitions(picture: Picture, topics: frozenset[str]) -> set[TopicPartition]:
    """Return what the group is about: the metrics topic may speak of other groups' topics, too."""
    plan = picture.plans[-1] if picture.plans else None
    named = {p for r in picture.reports.values() for p in _touched(r)}
    named |= set(plan.targets) if plan else set()
    named |= set(picture.waiting.plan.targets) if picture.waiting else set()
    about = topics or {p.topic for p in named}
    return named | {p for p in picture.ends if p.topic in about}


def _touched(report: Report) -> set[TopicPartition]:
    return {*report.held, *report.opening, *report.ahead, *report.closing}


def _lag(picture: Picture, partition: TopicPartition) -> int:
    return max(0, picture.ends.get(partition, 0) - picture.landed.get(partition, 0))


def _consumer(picture: Picture, slot: Slot, now_ms: int) -> ConsumerStatus:
    report = picture.reports.get(slot)
    silent_ms = max(0, now_ms - picture.heard_ms[slot])
    held = tuple(sorted(report.held)) if report else ()
    if silent_ms > SILENT_MS:
        state: Literal["starting", "ready", "leaving", "silent"] = "silent"
    elif report is None or not report.ready:
        state = "starting"
    else:
        state = "leaving" if report.leaving else "ready"
    return ConsumerStatus(
        slot=slot,
        state=state,
        partitions=held,
        load=picture.load(slot),
        landing=report.rate if report and state != "silent" else 0.0,
        lag=sum(_lag(picture, p) for p in held),
        silent_s=silent_ms / 1000,
    )


def _moves(picture: Picture) -> tuple[Motion, ...]:
    if not picture.plans:
        return ()
    found = []
    for partition, heir in sorted(picture.plans[-1].targets.items()):
        there = picture.reports.get(heir)
        arrived = there and partition in there.held and partition not in there.ahead
        if not arrived:
            owners = [s for s, r in picture.reports.items() if s != heir and _has(r, partition)]
            phase = _phase(picture, partition, heir)
            found.append(Motion(partition, min(owners, default=None), heir, phase))
    return tuple(found)


def _has(report: Report, partition: TopicPartition) -> bool:
    return partition in report.held or partition in report.closing


def _phase(picture: Picture, partition: TopicPartition, heir: Slot) -> Phase:
    report = picture.reports.get(heir)
    if report and partition in report.ahead:
        return "ahead"
    if report and partition in report.opening:
        return "opening"
    closing = any(partition in r.closing for r in picture.reports.values())
    return "closing" if closing else "waiting"


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
