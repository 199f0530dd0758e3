"""What follows from records and measurements at once, in every state; `group.fold` applies them.

Also compares reports with what the controller assumes. Partition 0 orders both, and a report of a
process never overtakes its reply to a command: what the controller assumes of a consumer never runs
ahead of the reports that follow.
"""

from collections.abc import Iterator
from dataclasses import replace

from binwright.controller.decide.catch_up import with_backlogs
from binwright.controller.decide.events import Action, Destroy, Send, Update
from binwright.controller.decide.moves import start_reading, stop_unexpected
from binwright.group.fold import (
    Change,
    ConsumerArrived,
    ConsumerDied,
    ConsumerLeaving,
    ConsumerLeft,
    ConsumerReady,
    Measured,
    RecordRead,
    RecordSuperseded,
    StateRecord,
    fold_measurement,
    fold_record,
)
from binwright.group.group import Group
from binwright.group.ownership import Owned, Released, State
from binwright.group.people import PlanApproved
from binwright.protocol.commands import Leave
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.metadata import Claim, Gap, Proposed, Report
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.monitors import drop_silent
from binwright.protocol.orders import (
    AdoptOrder,
    CordonOrder,
    FreezeOrder,
    PinOrder,
    ScaleOrder,
    describe,
)

ORDER_RECEIVED = LogEvent.info(
    "order.received", "A person's order to the group holds from now on, or lifts an earlier one."
)
PLAN_PROPOSED = LogEvent.info(
    "plan.proposed", "A plan is shown, and waits for an approval if `waits` is true."
)
CONSUMER_ARRIVED = LogEvent.info(
    "consumer.arrived", "A consumer process has started and sent its `Hello`."
)
CONSUMER_DIED = LogEvent.info(
    "consumer.died", "A consumer was declared dead; its partitions and tables go to others."
)
CONSUMER_LEFT = LogEvent.info("consumer.left", "A consumer sent `Goodbye` and exits.")
CONSUMER_READY = LogEvent.info(
    "consumer.ready", "A consumer can write to its staging directory and may be given partitions."
)
CONSUMER_LEAVING = LogEvent.info(
    "consumer.leaving", "A consumer was asked to end; its partitions and tables go to others."
)
PLAN_APPROVED = LogEvent.info("plan.approved", "A person approved the plan that waits.")
APPROVAL_REFUSED = LogEvent.info(
    "approval.refused",
    "Somebody approved a plan that does not wait: it is out of date, already carried out, or only "
    "shown.",
)
MONITOR_DISCOVERED = LogEvent.info(
    "monitor.discovered",
    "A monitor publishes measurements that the controller had not followed before.",
)
MONITOR_SILENT = LogEvent.info(
    "monitor.silent",
    "A monitor stopped publishing; the controller follows another, or keeps the assignment if "
    "there is none.",
)
WRITER_LOST = LogEvent.info(
    "writer.lost",
    "A consumer no longer reports a table that it should write; the controller chooses a writer "
    "again.",
)
CONSUMER_CORRECTED = LogEvent.info(
    "consumer.corrected",
    "A consumer reads or writes something that it should not; the controller tells it to stop.",
)
GAP_REPORTED = LogEvent.info(
    "gap.reported",
    "A table's writer lacks staged files; the partitions are read again from what is committed.",
)


def later_claim(group: Group, event: RecordRead) -> int | None:
    """Return the term of another controller's later claim; None if the record is no such claim."""
    message = event.message
    if not isinstance(message, Claim) or message.controller == group.controller:
        return None  # our own is published twice if the acknowledgement of the first was lost
    return event.offset if event.offset > (group.term or 0) else None


def apply_record(group: Group, event: RecordRead) -> Update:
    """Apply one record; return the group and what the shell must do.

    The reply to a report of a process that is not its slot's living one is `Leave`: an idle process
    has no other way to learn that it was replaced.
    """
    before = group.term
    group, changes = fold_record(group, event)
    if before is None:
        return group, ()  # history
    message = event.message
    actions: list[Action] = []
    match message:
        case PinOrder() | CordonOrder() | FreezeOrder() | ScaleOrder() | AdoptOrder():
            facts = {"order": describe(message), "by": message.by, "reason": message.reason}
            actions.append(Log(ORDER_RECEIVED, facts))
        case Proposed():
            proposed = {
                "plan": event.offset,
                "reasons": message.reasons,
                "consumers": message.consumers,
                "moves": len(message.moves),
                "waits": message.waits,
            }
            actions.append(Log(PLAN_PROPOSED, proposed))
    for change in changes:
        actions += _follows(before, event, change)
    return group, tuple(actions)


def _follows(term: int, event: RecordRead, change: Change) -> Iterator[Action]:
    match change:
        case ConsumerArrived(slot=slot, epoch=epoch):
            yield Log(CONSUMER_ARRIVED, {"slot": slot, "epoch": epoch})
        case ConsumerDied(slot=slot, epoch=epoch):
            yield Log(CONSUMER_DIED, {"slot": slot, "epoch": epoch})
            # A process that has ended is not killed: the slot may have another one by now.
            yield from () if change.process_ended else (Destroy(slot),)
        case ConsumerLeft(slot=slot, epoch=epoch):
            yield Log(CONSUMER_LEFT, {"slot": slot, "epoch": epoch})
        case ConsumerReady(slot=slot):
            yield Log(CONSUMER_READY, {"slot": slot})
        case ConsumerLeaving(slot=slot):
            yield Log(CONSUMER_LEAVING, {"slot": slot})
        case RecordSuperseded(slot=slot, epoch=epoch):
            if event.offset >= term and isinstance(event.message, Report):
                yield Send(slot, Leave(term=term, epoch=epoch))
        case PlanApproved(plan=number, by=by):
            yield Log(PLAN_APPROVED, {"plan": number, "by": by})
        case _:
            facts = {"plan": change.plan, "by": change.by, "reason": change.reason}
            yield Log(APPROVAL_REFUSED, facts)


# --- measurements -------------------------------------------------------------------------------


def apply_measurement(group: Group, event: Measured) -> Update:
    """Apply one measurement; what follows from it is decided at the next tick."""
    monitor = event.measurement.monitor
    new = monitor not in group.load.monitors.seen
    group, counts = fold_measurement(group, event)
    if counts:
        group = replace(group, load=with_backlogs(group, event.measurement, event.now))
    return group, (Log(MONITOR_DISCOVERED, {"monitor": monitor}),) if new else ()


def drop_silent_monitors(group: Group, now: float) -> Update:
    """Drop the monitors that are silent by now; another one is followed, if there is one."""
    monitors, silent = drop_silent(group.load.monitors, now)
    if not silent:
        return group, ()
    others = len(monitors.seen)
    logs = (
        Log(
            MONITOR_SILENT,
            {
                "monitor": monitor.monitor,
                "seconds": round(now - monitor.seen_at, 1),
                "others": others,
                "effect": "another is followed" if others else "the assignment stays as it is",
            },
        )
        for monitor in silent
    )
    return replace(group, load=replace(group.load, monitors=monitors)), tuple(logs)


# --- where a report differs from what the controller assumes ------------------------------------


def inconsistency(group: Group, message: StateRecord) -> str | None:
    """Return how a report contradicts what this controller assumes of its sender; None: it agrees.

    Only a partition that its owner does not read counts: all else is corrected in place.
    """
    if not isinstance(message, Report) or message.epoch != group.members.get(message.slot).epoch:
        return None
    unread = group.members.partitions.owned_by(message.slot).difference(message.reading)
    first = min((p for p in unread if isinstance(group.members.partitions[p], Owned)), default=None)
    return None if first is None else f"consumer {message.slot} does not read {first}"


def correct(group: Group, message: StateRecord, now: float) -> Update:
    """Stop what a report lists in excess, release lost writer roles, have gaps read again."""
    match message:
        case Report(slot=slot, epoch=epoch) if epoch == group.members.get(slot).epoch:
            group, logs = _release_lost_roles(group, message)
            group, stops = _stop_excess(group, message)
            return group, (*logs, *stops)
        case Gap(slot=slot, epoch=epoch) if epoch == group.members.get(slot).epoch:
            return _read_again(group, message, now)
        case _:
            return group, ()


def _release_lost_roles(group: Group, report: Report) -> Update:
    """Release the tables that their writer lists no more: another process's claim took them."""
    written = report.written_topics
    lost = sorted(
        topic
        for topic in group.members.writers.owned_by(report.slot)
        if topic not in written and isinstance(group.members.writers[topic], Owned)
    )
    if not lost:
        return group, ()
    roles = dict.fromkeys(lost, Released())
    logs = (Log(WRITER_LOST, {"slot": report.slot, "topic": topic}) for topic in lost)
    return replace(group, members=group.members.with_owners(writers=roles)), tuple(logs)


def _stop_excess(group: Group, report: Report) -> Update:
    """Stop what a consumer reads or writes without being its owner."""
    slot = report.slot
    partitions = report.reading.keys() - group.members.partitions.owned_by(slot)
    tables = report.written_topics - group.members.writers.owned_by(slot)
    if not partitions and not tables:
        return group, ()
    facts = {"slot": slot, "partitions": len(partitions), "tables": len(tables)}
    group, stops = stop_unexpected(group, slot, partitions, tables)
    return group, (Log(CONSUMER_CORRECTED, facts), *stops)


def _read_again(group: Group, gap: Gap, now: float) -> Update:
    """Have the offsets read again that never reached a table: by the present or the next reader."""
    writer = Owned(gap.slot, gap.epoch)
    starts: dict[Slot, dict[TopicPartition, int | None]] = {}
    released: dict[TopicPartition, State] = {}
    for partition, committed in sorted(gap.committed.items()):
        if group.members.writers.get(partition.topic) != writer:
            continue
        match group.members.partitions.get(partition):
            case Owned(slot=slot) if _has_passed(group, slot, partition, committed):
                starts.setdefault(slot, {})[partition] = committed
            case Released():
                released[partition] = Released(committed)
            case _:
                pass  # it will get there, or is being moved: the writer asks again
    group = replace(group, members=group.members.with_owners(released))
    again = sorted([*released, *(p for offsets in starts.values() for p in offsets)])
    actions: list[Action] = []
    if again:
        actions.append(Log(GAP_REPORTED, {"slot": gap.slot, "partitions": list(map(str, again))}))
    for slot, offsets in sorted(starts.items()):
        group, sent = start_reading(group, slot, offsets, now)
        actions += sent
    return group, tuple(actions)


def _has_passed(group: Group, slot: Slot, partition: TopicPartition, committed: int) -> bool:
    next_offset = group.members.get(slot).reading.get(partition)
    return next_offset is not None and next_offset > committed
