"""The status of a group, derived from a `GroupView`: what `binwright status` shows."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal

from binwright.look.group_view import GroupView
from binwright.look.table_status import TableStatus, table_statuses
from binwright.packing.zones import Zones
from binwright.protocol.metadata import MeasuredCapacity, Report, StagedShare
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition
from binwright.protocol.orders import AdoptOrder, GroupOrder, Savings, describe, subject
from binwright.protocol.selection import Selection

State = Literal["empty", "silent", "unread", "refused", "unwritten", "moving", "steady"]
"""empty: nothing was ever reported. silent: no consumer has reported lately. unread: a partition
has no reader. refused: a table takes no rows. unwritten: a table has no writer. moving: the last
plan is being carried out. steady: the last plan is carried out.
"""
Phase = Literal["waiting", "stopping", "starting"]
"""waiting: the new owner is not ready. stopping: it is ready, and the old owner still reads.
starting: the old owner has stopped, and the new one does not read yet.
"""


@dataclass(frozen=True, slots=True)
class ConsumerStatus:
    """One consumer process."""

    slot: Slot
    state: Literal["starting", "ready", "leaving", "silent"]
    partitions: tuple[TopicPartition, ...]
    load: float  # bytes/s written to the partitions that it reads
    staging: float  # bytes/s that it stages
    lag: int  # records of these partitions that have not landed
    silent_s: float  # since its last message
    tables: tuple[str, ...] = ()  # that it writes, by their names
    busy: float = 0.0  # share of the time in which fetching waited for staging, 0 to 1
    capacity: MeasuredCapacity | None = None  # None: it has not measured enough
    staged_bytes: int = 0  # in its files that have not landed
    lost_offsets: int = 0  # that retention removed unread, or that it could not decode
    zone: str | None = None  # where it runs; None: not known
    crossing: float = 0.0  # bytes/s that it reads from another zone
    need: float = 0.0  # bytes/s that plans count for it: its load, and what backlogs need


@dataclass(frozen=True, slots=True)
class MoveStatus:
    """A partition that its new owner by the last plan does not read yet."""

    partition: TopicPartition
    old: Slot | None
    new: Slot
    phase: Phase


@dataclass(frozen=True, slots=True)
class HotPartition:
    """A partition that gets more than its consumers sustain: it falls behind."""

    partition: TopicPartition
    rate: float  # bytes/s
    limit: float  # likewise; of all that stage it


@dataclass(frozen=True, slots=True)
class SplitPartition:
    """A partition that several consumers stage."""

    partition: TopicPartition
    rate: float  # bytes/s
    shares: tuple[StagedShare, ...]  # what each has staged, the owner first


@dataclass(frozen=True, slots=True)
class PlanStatus:
    """The last plan."""

    age_s: float
    reasons: tuple[str, ...]
    consumers: int
    moves: int
    rscore: float


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """A change of owner by a plan that is not carried out."""

    partition: TopicPartition
    old: Slot | None  # None: no consumer reads it
    new: Slot


@dataclass(frozen=True, slots=True)
class ProposalStatus:
    """A plan that is only shown, or that waits for its approval."""

    plan: int  # its number
    age_s: float
    reasons: tuple[str, ...]
    consumers: int
    changes: tuple[OwnerChange, ...]
    rscore: float
    waits: bool  # for an approval; False: the group only observes
    approved: bool


@dataclass(frozen=True, slots=True)
class OrderStatus:
    """A person's order that holds at present."""

    about: str  # the newest order about the same thing counts
    text: str  # what it says
    by: str
    reason: str
    at_ms: int  # wall clock, ms since 1970
    until_ms: int  # likewise; 0: until it is lifted


@dataclass(frozen=True, slots=True)
class Status:
    """The status of one group."""

    group: str
    state: State
    term: int | None  # of the controller that claimed last; None: none ever did
    controller: str | None
    consumers: tuple[ConsumerStatus, ...]
    partitions: int
    unread: tuple[TopicPartition, ...]
    load: float  # bytes/s written
    staging: float  # bytes/s that all consumers stage
    lag: int  # records written and not landed
    moves: tuple[MoveStatus, ...]
    plan: PlanStatus | None
    proposal: ProposalStatus | None = None
    tables: tuple[TableStatus, ...] = ()
    lost_offsets: int = 0  # of all consumers, ended ones too
    lag_bytes: float = 0.0  # about how many bytes the lag is
    limits: PerSlot | None = None  # bytes/s that consumers sustain; None: no controller ever led
    limits_measured: bool = False  # by the consumers; else they are given
    crossing: float = 0.0  # bytes/s that consumers read from other zones
    hot: tuple[HotPartition, ...] = ()
    splits: tuple[SplitPartition, ...] = ()
    orders: tuple[OrderStatus, ...] = ()  # of people, in force
    held: tuple[str, ...] = ()  # what its controller does not do because of orders or settings
    savings: Savings | None = None  # of a past time, as `binwright shadow own` published them
    adoptable: int | None = None  # number of their proposal; None: none, or it is adopted

    def limit(self, slot: Slot) -> float | None:
        """Return what a consumer sustains, bytes/s, as the group's controller says."""
        return None if self.limits is None else self.limits.for_slot(slot)

    @property
    def age_s(self) -> float:
        """Age of the oldest staged row of all tables that has not landed."""
        return max((table.report.age_s for table in self.tables), default=0.0)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, for JSON; partitions as TOPIC-NUMBER."""
        tables = [each.plain() | {"partitions": each.partitions} for each in self.tables]
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        plain: dict[str, Any] = _plain({**own, "tables": tables, "age_s": self.age_s})
        return plain


def status(group: str, view: GroupView, now_ms: int, topics: Selection | None = None) -> Status:
    """Derive the status of a group from its view.

    Args:
        group: Its name.
        view: Of the group.
        now_ms: Wall clock.
        topics: That it reads; None: not known, those of its plan and its consumers.
    """
    parts = _partitions(view, topics)
    zones = view.zones()
    written, needs = view.written(), view.group.loads()
    consumers = tuple(
        _consumer(view, zones, slot, now_ms, load=written.get(slot, 0.0), need=needs.get(slot, 0.0))
        for slot in sorted(view.seen_ms)
    )
    live = {each.slot for each in consumers if each.state != "silent"}
    read = {p for slot, r in view.reports.items() if slot in live for p in r.reading}
    targets = view.plan.targets if view.plan else {}
    handed = {p for p in view.in_handover if targets.get(p) in live}
    unread = tuple(sorted(parts - read - handed))
    moves = _moves(view)
    leader = view.leadership
    tables = table_statuses(view, parts, live, now_ms)
    return Status(
        group=group,
        state=_state(consumers, unread, tables, moves, known=leader is not None),
        term=leader.term if leader else None,
        controller=leader.controller if leader else None,
        consumers=consumers,
        partitions=len(parts),
        unread=unread,
        load=sum(view.rates.get(p, 0.0) for p in parts),
        staging=sum(each.staging for each in consumers),
        lag=sum(map(view.partition_lag, parts)),
        moves=moves,
        plan=_plan(view, now_ms),
        proposal=_proposal(view, now_ms),
        tables=tables,
        lost_offsets=view.lost_offsets.total(),
        limits=view.limits,
        limits_measured=view.limits_measured,
        crossing=sum(each.crossing for each in consumers),
        hot=_hot(view, parts),
        splits=tuple(
            SplitPartition(p, view.rates.get(p, 0.0), shares)
            for p, shares in sorted(view.splits.items())
        ),
        savings=view.savings,
        adoptable=_adoptable(view, now_ms),
        lag_bytes=sum(view.partition_lag(p) * view.record_bytes.get(p, 0.0) for p in parts),
        orders=tuple(map(_order, view.orders.in_force(now_ms))),
        held=view.held,
    )


def _adoptable(view: GroupView, now_ms: int) -> int | None:
    savings, number = view.savings, view.savings_number
    if savings is None or savings.proposed is None or not savings.replaces:
        return None
    orders = view.orders.in_force(now_ms)
    adopted = any(isinstance(o, AdoptOrder) and o.proposal == number for o in orders)
    return None if adopted else number


def _order(order: GroupOrder) -> OrderStatus:
    return OrderStatus(
        about=subject(order),
        text=describe(order),
        by=order.by,
        reason=order.reason,
        at_ms=order.at_ms,
        until_ms=order.until_ms,
    )


def _partitions(view: GroupView, topics: Selection | None) -> set[TopicPartition]:
    """Return the group's partitions: the metrics topic may hold those of other groups, too."""
    plan = view.plan
    named = {p for r in view.reports.values() for p in r.reading}
    named |= set(plan.targets) if plan else set()
    named |= set(view.proposal.plan.targets) if view.proposal else set()
    own = {p.topic for p in named}
    if topics is not None:
        own = {topic for topic in {p.topic for p in view.ends} if topics.includes(topic)}
    return named | {p for p in view.ends if p.topic in own}


def _consumer(
    view: GroupView, zones: Zones, slot: Slot, now_ms: int, *, load: float, need: float
) -> ConsumerStatus:
    report = view.reports.get(slot)
    silent_ms = max(0, now_ms - view.seen_ms[slot])
    if silent_ms > 1000 * view.group.settings.consumer_timeout_s:
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
        load=load,
        need=need,
        staging=report.rate if state != "silent" else 0.0,
        lag=sum(map(view.partition_lag, report.reading)),
        silent_s=silent_ms / 1000,
        tables=tuple(sorted(report.writing)),
        busy=report.busy,
        capacity=report.capacity,
        staged_bytes=report.staged_bytes,
        lost_offsets=report.lost_offsets,
        zone=report.zone,
        crossing=zones.crossing(view.rates, dict.fromkeys(report.reading, slot)),
    )


def _hot(view: GroupView, partitions: set[TopicPartition]) -> tuple[HotPartition, ...]:
    if (limits := view.limits) is None:
        return ()
    readers = {p: slot for slot, report in view.reports.items() for p in report.reading}
    hot, splits = [], view.splits
    for partition in sorted(partitions):
        slot, rate = readers.get(partition), view.rates.get(partition, 0.0)
        limit = limits.largest if slot is None else limits.for_slot(slot)
        if shares := splits.get(partition):
            limit = BytesPerSecond(sum(limits.for_slot(share.slot) for share in shares))
        if rate > limit:
            hot.append(HotPartition(partition, rate, limit))
    return tuple(hot)


def _moves(view: GroupView) -> tuple[MoveStatus, ...]:
    if view.plan is None:
        return ()
    late = {
        partition: new
        for partition, new in sorted(view.plan.targets.items())
        if (report := view.reports.get(new)) is None or report.reading.get(partition) is None
    }
    owners = _other_readers(view, late)
    return tuple(
        MoveStatus(p, owners.get(p), new, _phase(view.reports.get(new), owners.get(p)))
        for p, new in late.items()
    )


def _other_readers(
    view: GroupView, targets: Mapping[TopicPartition, Slot]
) -> dict[TopicPartition, Slot]:
    """Return the first consumer that reads each of `targets` and is not the one named there."""
    readers: dict[TopicPartition, Slot] = {}
    for slot, report in sorted(view.reports.items()):
        for partition in report.reading:
            if targets.get(partition, slot) != slot:
                readers.setdefault(partition, slot)
    return readers


def _phase(new: Report | None, old: Slot | None) -> Phase:
    if new is None or not new.ready:
        return "waiting"
    return "starting" if old is None else "stopping"


def _plan(view: GroupView, now_ms: int) -> PlanStatus | None:
    if (last := view.plan) is None or view.planned_ms is None:
        return None
    return PlanStatus(
        age_s=max(0, now_ms - view.planned_ms) / 1000,
        reasons=tuple(last.reasons),
        consumers=last.consumers,
        moves=len(last.moves),
        rscore=last.rscore,
    )


def _proposal(view: GroupView, now_ms: int) -> ProposalStatus | None:
    if (waiting := view.proposal) is None or waiting.number is None:
        return None
    plan = waiting.plan
    return ProposalStatus(
        plan=waiting.number,
        age_s=max(0, now_ms - view.proposed_ms) / 1000,
        reasons=tuple(plan.reasons),
        consumers=plan.consumers,
        changes=tuple(
            OwnerChange(partition, plan.owners.get(partition), new)
            for partition, new in sorted(plan.targets.items())
            if plan.owners.get(partition) != new
        ),
        rscore=plan.rscore,
        waits=plan.waits,
        approved=waiting.approved,
    )


def _state(
    consumers: tuple[ConsumerStatus, ...],
    unread: tuple[TopicPartition, ...],
    tables: tuple[TableStatus, ...],
    moves: tuple[MoveStatus, ...],
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
    """Return the value with partitions as text."""
    match value:
        case TopicPartition():
            return str(value)
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case _ if is_dataclass(value):
            return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
        case _:
            return value
