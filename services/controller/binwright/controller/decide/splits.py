"""Partitions above the limit: which consumers help their owner to stage them.

A split partition keeps its owner, which alone announces what is staged of it; so nothing is stopped
or acknowledged when helpers change. Each of its consumers has an equal share of its load.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count
from math import ceil

from immutables import Map

from binwright.controller.decide.events import Action, Reconcile, Send, Update
from binwright.group.group import Group
from binwright.group.members import SplitCommand
from binwright.group.ownership import Owned, Starting
from binwright.packing.inputs import slot_capacities
from binwright.protocol.commands import SplitReading
from binwright.protocol.log_events import Log, LogEvent
from binwright.protocol.model import Slot, TopicPartition

PARTITION_SPLIT = LogEvent.info(
    "partition.split",
    "Other consumers than before help to stage a partition that gets more than the limit; without "
    "`helpers` its owner stages it alone.",
)

SPARE = 0.8
"""A helper goes when the others would carry the load with this share of their capacity."""

Shares = dict[TopicPartition, tuple[Slot, ...]]


def refresh_splits(group: Group, now: float) -> Update:
    """Choose the helpers of partitions above the limit, start missing ones, and tell them."""
    if group.settings.mode != "act":
        return group, ()
    before, started = group, list[Slot]()
    partitions = sorted(_splittable(group)) if group.settings.split else ()
    group = replace(group, members=replace(group.members, splits=Map()))
    for partition in partitions:
        group, new = _choose(before, group, partition)
        started += new
    actions: list[Action] = [*_logs(before, group)]
    if started:
        actions.append(Reconcile(group.fleet.desired | group.members.owning()))
    group, commands = _commands(group, now)
    return group, (*actions, *commands)


def _splittable(group: Group) -> Iterable[TopicPartition]:
    """Yield what is split, or may have to be, and is not pinned to one consumer alone."""
    rules, limits = group.people.controls.rules, group.config.limits
    least = min((limits.default, *limits.named.values()))
    reported = (p for member in group.members.by_slot.values() for p in member.splits)
    for partition in {*group.members.splits, *reported, *group.load.rates.above(least)}:
        if partition in group.members.partitions and rules.pin(partition) is None:
            yield partition


def _choose(
    before: Group, group: Group, partition: TopicPartition
) -> tuple[Group, tuple[Slot, ...]]:
    """Return the group with the partition's helpers, and those of them that are to be started."""
    owner = group.members.partitions[partition].slot
    helpers = before.members.splits.get(partition) or _reported(group, partition, owner)
    wanted = _consumers(group, partition, owner, len(helpers))
    kept = [s for s in helpers if s != owner and _may_stay(group, s)][: wanted - 1]
    group = _helped(group, partition, kept) if kept else group
    started: list[Slot] = []
    while len(kept) < wanted - 1 and owner is not None and not group.people.controls.frozen:
        share = group.load.need(partition) / wanted
        slot = _with_room(group, share, {owner, *kept})
        if slot is None and (slot := _new_slot(group, {owner, *kept})) is not None:
            started.append(slot)
        if slot is None:
            break
        kept.append(slot)
        group = _helped(group, partition, kept)
    return group, tuple(started)


def _helped(group: Group, partition: TopicPartition, helpers: Iterable[Slot]) -> Group:
    splits = group.members.splits.set(partition, tuple(helpers))
    return replace(group, members=replace(group.members, splits=splits))


def _reported(group: Group, partition: TopicPartition, owner: Slot | None) -> tuple[Slot, ...]:
    """Return the helpers that an earlier leader chose."""
    slots = () if owner is None else group.members.get(owner).splits.get(partition, ())
    return slots[1:] if slots[:1] == (owner,) else ()


def _consumers(group: Group, partition: TopicPartition, owner: Slot | None, helpers: int) -> int:
    """Return how many consumers are to stage the partition.

    Those that it has, while it has no owner, or its rate is not known to a new leader.
    """
    if owner is None or partition not in group.load.rates:
        return helpers + 1
    need, capacity = group.load.need(partition), group.config.capacity
    if not helpers and need <= group.config.limits.for_slot(owner):
        return 1
    needed = max(ceil(need / capacity), 1)
    one_less_would_do = need <= SPARE * helpers * capacity
    return needed if one_less_would_do else max(needed, helpers + 1)


def _may_stay(group: Group, slot: Slot) -> bool:
    """Whether a helper stays one: while its process is not there yet, too."""
    member = group.members.get(slot)
    if slot in group.people.controls.rules.drained or group.departs(slot):
        return False
    return member.usable or (slot in group.fleet.desired and slot < group.settings.max_slots)


def _with_room(group: Group, share: float, taken: set[Slot | None]) -> Slot | None:
    """Return the ready consumer with the most room that has enough of it."""
    every, loads = slot_capacities(group.config.capacities), group.loads()
    rooms = [
        (every.for_slot(slot) - loads.get(slot, 0.0), -slot)
        for slot in group.members.usable()
        if slot not in taken and group.is_open(slot)
    ]
    best, slot = max(rooms, default=(0.0, 0))
    return Slot(-slot) if rooms and best >= share else None


def _new_slot(group: Group, taken: set[Slot | None]) -> Slot | None:
    """Return a slot that is to be started; None: people's orders or the maximum leave none."""
    if group.people.controls.rules.consumers is not None:
        return None
    used = group.members.living() | group.members.owning() | group.fleet.desired | taken
    free = (s for s in map(Slot, count()) if s not in used and group.is_open(s))
    slot = next(free)
    return slot if slot < group.settings.max_slots else None


def _logs(before: Group, after: Group) -> Iterable[Log]:
    for partition in sorted({*before.members.splits, *after.members.splits}):
        helpers = after.members.splits.get(partition, ())
        if helpers != before.members.splits.get(partition, ()):
            facts = {"partition": str(partition), "helpers": [*helpers]}
            yield Log(PARTITION_SPLIT, facts)


# --- what consumers are told --------------------------------------------------------------------


def shares(group: Group) -> dict[Slot, Shares]:
    """Return slot -> the split partitions that it owns or helps with -> the owner, then helpers.

    Only consumers that are ready are named.
    """
    ready, wanted = frozenset(group.members.usable()), dict[Slot, Shares]()
    for partition, helpers in sorted(group.members.splits.items()):
        at = group.members.partitions[partition]
        there = tuple(slot for slot in helpers if slot in ready)
        if isinstance(at, Owned | Starting) and there:
            for slot in (at.slot, *there):
                wanted.setdefault(slot, {})[partition] = (at.slot, *there)
    return wanted


def _commands(group: Group, now: float) -> Update:
    """Tell consumers that report something else, each again after a while."""
    wanted, actions, sent = shares(group), list[Action](), group.members.split_commands
    for slot in group.members.usable():
        member, partitions = group.members.get(slot), wanted.get(slot, {})
        if member.splits == partitions:
            continue
        last = sent.get(slot)
        if last is not None and _is_fresh(group, last, partitions, member.epoch, now):
            continue
        message = SplitReading(term=group.term or 0, epoch=member.epoch or 0, partitions=partitions)
        actions.append(Send(slot, message))
        sent = sent.set(slot, SplitCommand(partitions, member.epoch, now))
    return replace(group, members=replace(group.members, split_commands=sent)), tuple(actions)


def _is_fresh(
    group: Group,
    last: SplitCommand,
    partitions: Mapping[TopicPartition, tuple[Slot, ...]],
    epoch: int | None,
    now: float,
) -> bool:
    same = last.partitions == partitions and last.epoch == epoch
    return same and now - last.sent_at < group.settings.command_retry_s
