"""The possible steps of a group, and the possible faults."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from tests.builders import with_member
from tests.model.explore import Label, Step

from binwright.consumer.decide import machine
from binwright.controller.decide.events import Packed, Tick
from binwright.controller.decide.states import Manage, Reassign, Sentinel, Synchronize
from binwright.controller.decide.synchronize import awaiting_reply
from binwright.group.ownership import Owned, Released, Starting, Stopping
from binwright.protocol.model import Slot, TopicPartition

from . import world as worlds
from .world import LONG_AGO, TOPIC, ConsumerProcess, ControllerProcess, World

KINDS = frozenset(
    {
        "crash",  # a consumer ends without a message
        "freeze",  # it is paused, the fleet starts another, it may continue at any time
        "duplicate",  # the fleet starts another while it continues
        "suspect",  # a living consumer is declared dead
        "leave",  # a consumer begins a graceful exit
        "drain",  # it stops everything at once
        "lost",  # a command is never read
        "role lost",  # a writer loses its table to another writer's claim
        "controller crash",
        "controller pause",  # it may continue at any time, and is then behind
        "rival",  # another controller claims the leadership
        "overdue",  # a plan is abandoned that could still have been carried out
    }
)


def steps(world: World) -> Iterator[Step[World]]:
    """Yield every possible step, with faults as long as their number is not used up."""
    for index, controller in enumerate(world.controllers):
        yield from _controller(world, index, controller)
    for index, consumer in enumerate(world.consumers):
        yield from _consumer(world, index, consumer)
    yield from _fleet(world)
    if world.faults:
        spent = replace(world, faults=world.faults - 1)
        for kind, label, successor in _faults(spent):
            if kind in world.bounds.kinds:
                yield Step(label, successor)


# --- controllers ---------------------------------------------------------------------------------


def _controller(world: World, index: int, one: ControllerProcess) -> Iterator[Step[World]]:
    label: Label
    actor = f"{one.name} ({type(one.state).__name__})"
    if one.paused:
        woken = replace(one, paused=False)
        yield Step((actor, "wakes"), partial(world.controller, index, woken))
        return
    if one.unread:
        yield Step((actor, "reads", one.unread[0][1]), partial(worlds.read, world, index))
        return  # its own steps come after it has read all records
    for slot in overdue(one):
        if not _is_responsive(world, one, slot):
            label = (actor, "misses the reports of slot", slot)
            yield Step(label, partial(find_silent, world, index, slot))
    for moves, target in possible_plans(one):
        if not moves or world.moves:
            label = (actor, "plans", {str(p): s for p, s in target.items()})
            yield Step(label, partial(apply_plan, world, index, target, moves=moves))
    if _without_writer(one):
        yield Step((actor, "ticks"), partial(worlds.feed, world, one.name, Tick(0.0)))
    if _is_stuck(one):
        yield Step((actor, "gives up its plan"), partial(time_out_plan, world, index))


def overdue(one: ControllerProcess) -> list[Slot]:
    """Return the slots that a controller may find silent."""
    members = sorted(one.state.group.members.by_slot.items())
    if one.state.group.term is None:
        return []
    return [s for s, m in members if m.epoch is not None and m.declared_dead_at is None]


def _is_responsive(world: World, one: ControllerProcess, slot: Slot) -> bool:
    """Whether records of a slot would still arrive; in Synchronize only a reply counts."""
    group = one.state.group
    epoch = group.members.get(slot).epoch
    mine = [c for c in world.consumers if c.slot == slot and _epoch(c) == epoch and not c.paused]
    if isinstance(one.state, Synchronize) and slot in awaiting_reply(group):
        return any(c.commands for c in mine)
    return bool(mine)


def _epoch(consumer: ConsumerProcess) -> int | None:
    return None if consumer.consumer is None else consumer.consumer.epoch


def find_silent(world: World, index: int, slot: Slot) -> World:
    """Let a controller find this slot silent."""
    one = world.controllers[index]
    group = one.state.group
    silent = replace(group.members.get(slot), seen_at=LONG_AGO)
    group = with_member(group, slot, silent)
    world = world.controller(index, replace(one, state=replace(one.state, group=group)))
    return worlds.feed(world, one.name, Tick(0.0))


def possible_plans(one: ControllerProcess) -> list[tuple[bool, dict[TopicPartition, Slot]]]:
    """Return the possible targets, and whether each is a move that no trigger requires."""
    if not isinstance(one.state, Sentinel):
        return []
    group = one.state.group
    usable, assigned, unread = group.members.usable(), group.members.assignment(), group.unread()
    if unread:
        chosen = product(usable, repeat=len(unread))
        return [(False, {**assigned, **dict(zip(unread, c, strict=True))}) for c in chosen]
    return [
        (True, {**assigned, p: slot})
        for p, at in sorted(group.members.partitions.items())
        if isinstance(at, Owned)
        for slot in usable
        if slot != at.slot
    ]


def apply_plan(
    world: World, index: int, target: dict[TopicPartition, Slot], *, moves: bool = False
) -> World:
    """Let the packing return this target."""
    one = world.controllers[index]
    state = Reassign(one.state.group, 0.0, ("chosen by the explorer",))
    world = replace(world, moves=world.moves - moves)
    world = world.controller(index, replace(one, state=state))
    return worlds.feed(world, one.name, Packed(0.0, target))


def _without_writer(one: ControllerProcess) -> bool:
    """Whether a tick grants the table to a consumer."""
    if not isinstance(one.state, Sentinel):
        return False
    group = one.state.group
    role = group.members.writers.get(TOPIC, Released())
    return isinstance(role, Released) and bool(group.members.usable())


def _is_stuck(one: ControllerProcess) -> bool:
    if not isinstance(one.state, Manage):
        return False
    group, target = one.state.group, one.state.goal.target
    return any(
        at.slot is None and not group.members.get(target[p]).usable
        for p, at in group.members.partitions.items()
        if p in target
    )


def time_out_plan(world: World, index: int) -> World:
    """Let a plan time out."""
    one = world.controllers[index]
    late = replace(one, state=replace(one.state, since=LONG_AGO))
    return worlds.feed(world.controller(index, late), one.name, Tick(0.0))


def repeat_commands(world: World, index: int) -> World:
    """Let commands without a reply be sent again."""
    one = world.controllers[index]
    group = one.state.group
    commands = {
        p: replace(at, sent_at=LONG_AGO)
        for p, at in group.members.partitions.items()
        if isinstance(at, Starting | Stopping)
    }
    roles = {
        t: replace(at, sent_at=LONG_AGO)
        for t, at in group.members.writers.items()
        if isinstance(at, Starting | Stopping)
    }
    group = replace(group, members=group.members.with_owners(commands, roles))
    late = replace(one, state=replace(one.state, group=group))
    return worlds.feed(world.controller(index, late), one.name, Tick(0.0))


# --- consumers, and the fleet --------------------------------------------------------------------


def _consumer(world: World, index: int, one: ConsumerProcess) -> Iterator[Step[World]]:
    actor = f"slot {one.slot}/{_epoch(one) or 'new'}"
    if one.paused:
        yield Step((actor, "wakes"), partial(world.consumer, index, replace(one, paused=False)))
    elif one.consumer is None:
        yield Step((actor, "sends Hello"), partial(worlds.hello, world, index))
    else:
        if one.commands:
            yield Step(
                (actor, "obeys", one.commands[0]), partial(worlds.handle_command, world, index)
            )
        if worlds.state(one) != one.last_report or _must_leave(world, one):
            yield Step((actor, "reports"), partial(worlds.report, world, index))
        if one.consumer.leaving and not one.consumer.ended:
            drained = partial(_drain, world, index)
            yield Step((actor, "is not drained in time"), drained)


def _must_leave(world: World, one: ConsumerProcess) -> bool:
    """Whether a leader that has read all records would command it to leave."""
    return any(
        c.state.group.term is not None
        and not (c.unread or c.paused)
        and not one.commands
        and c.state.group.members.get(one.slot).epoch != _epoch(one)
        for c in world.controllers
    )


def _drain(world: World, index: int) -> World:
    process = world.consumers[index]
    assert process.consumer is not None
    return worlds.apply(world, index, process, machine.drain(process.consumer))


def _fleet(world: World) -> Iterator[Step[World]]:
    running = {c.slot for c in world.consumers if c.in_fleet}
    for slot in world.slots:
        if slot not in running:
            yield Step(("the fleet starts slot", slot), partial(start, world, slot))
    if not any(not c.paused for c in world.controllers) and len(world.controllers) < 2:
        yield Step(("a controller claims",), partial(worlds.claim, world))


def start(world: World, slot: Slot) -> World:
    """Start a process."""
    return replace(world, consumers=(*world.consumers, ConsumerProcess(slot)))


# --- faults --------------------------------------------------------------------------------------

Fault = tuple[str, Label, Callable[[], World]]


def _faults(world: World) -> Iterator[Fault]:
    for index, one in enumerate(world.consumers):
        if one.consumer is not None and not one.paused:
            yield from _consumer_faults(world, index, one, one.consumer)
    for index, controller in enumerate(world.controllers):
        yield from _controller_faults(world, index, controller)
    if len(world.controllers) == 1:
        yield "rival", ("another controller claims",), partial(worlds.claim, world)


def _consumer_faults(
    world: World, index: int, one: ConsumerProcess, consumer: machine.Consumer
) -> Iterator[Fault]:
    actor = f"slot {one.slot}/{consumer.epoch}"
    yield "crash", (actor, "crashes"), partial(world.consumer, index, None)
    frozen = replace(one, in_fleet=False, paused=True)
    yield "freeze", (actor, "freezes"), partial(world.consumer, index, frozen)
    if one.in_fleet:
        duplicate = replace(one, in_fleet=False)
        yield (
            "duplicate",
            (actor, "is replaced and continues"),
            partial(world.consumer, index, duplicate),
        )
    if not consumer.leaving:
        step = partial(machine.leave, consumer)
        label: Label = (actor, "begins a graceful exit")
        yield "leave", label, lambda: worlds.apply(world, index, one, step())
    if not consumer.ended:
        yield "drain", (actor, "ends at once"), partial(_drain, world, index)
    if one.commands:
        label = (actor, "never reads", one.commands[0])
        skipped = replace(one, commands=one.commands[1:])
        yield "lost", label, partial(world.consumer, index, skipped)
    for topic in consumer.tables:
        label = (actor, "loses table", topic)
        table_lost = partial(machine.table_lost, consumer, topic)
        yield (
            "role lost",
            label,
            lambda table_lost=table_lost: worlds.apply(world, index, one, table_lost()),  # type: ignore[misc]
        )


def _controller_faults(world: World, index: int, one: ControllerProcess) -> Iterator[Fault]:
    yield "controller crash", (one.name, "crashes"), partial(world.controller, index, None)
    if not one.paused:
        paused = replace(one, paused=True)
        yield "controller pause", (one.name, "is paused"), partial(world.controller, index, paused)
    if one.paused or one.unread:
        return
    for slot in overdue(one):
        if _is_responsive(world, one, slot):
            label: Label = (one.name, "misses the reports of slot", slot, "which lives")
            yield "suspect", label, partial(find_silent, world, index, slot)
    if isinstance(one.state, Manage):
        yield "overdue", (one.name, "gives up its plan"), partial(time_out_plan, world, index)
