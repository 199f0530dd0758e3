"""What may happen next in a group, and what may go wrong."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product

from tests.model.explore import Label, Step

from binwright.core.consumer import handover
from binwright.core.events import Packed, Tick
from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import Owned, Released, Starting, Stopping
from binwright.core.states import Manage, Reassign, Sentinel, Synchronize
from binwright.core.synchronize import awaited

from . import world as worlds
from .world import LONG_AGO, TOPIC, ConsumerProcess, ControllerProcess, World

KINDS = frozenset(
    {
        "crash",  # a consumer ends without a word
        "freeze",  # it sleeps, the fleet starts another, it may wake at any time
        "astray",  # the fleet starts another while it goes on
        "suspect",  # a living consumer is declared dead
        "leave",  # a consumer is asked to end
        "drain",  # it quits everything at once
        "lost",  # a command is never read
        "role lost",  # a writer loses its table to another's claim
        "controller crash",
        "controller pause",  # it may wake at any time, and lags behind then
        "rival",  # another claims beside one that leads
        "overdue",  # a plan is given up that could still have been carried out
    }
)


def steps(world: World) -> Iterator[Step[World]]:
    """Yield every step; where it is a fault, one is left in the budget."""
    for index, controller in enumerate(world.controllers):
        yield from _controller(world, index, controller)
    for index, consumer in enumerate(world.consumers):
        yield from _consumer(world, index, consumer)
    yield from _fleet(world)
    if world.faults:
        spent = replace(world, faults=world.faults - 1)
        for kind, label, take in _faults(spent):
            if kind in world.bounds.kinds:
                yield Step(label, take)


# --- controllers ---------------------------------------------------------------------------------


def _controller(world: World, index: int, one: ControllerProcess) -> Iterator[Step[World]]:
    label: Label
    who = f"{one.name} ({type(one.state).__name__})"
    if one.paused:
        woken = replace(one, paused=False)
        yield Step((who, "wakes"), partial(world.controller, index, woken))
        return
    if one.unread:
        yield Step((who, "reads", one.unread[0][1]), partial(worlds.read, world, index))
        return  # what it does by itself it does when it has read all there is
    for slot in overdue(one):
        if not _heard_of(world, one, slot):
            label = (who, "hears nothing of slot", slot)
            yield Step(label, partial(miss, world, index, slot))
    for moves, target in plans(one):
        if not moves or world.moves:
            label = (who, "plans", {str(p): s for p, s in target.items()})
            yield Step(label, partial(plan, world, index, target, moves=moves))
    if _without_writer(one):
        yield Step((who, "ticks"), partial(worlds.feed, world, one.name, Tick(0.0)))
    if _waits_in_vain(one):
        yield Step((who, "gives up its plan"), partial(give_up, world, index))


def overdue(one: ControllerProcess) -> list[Slot]:
    """Return who may be found silent."""
    members = sorted(one.state.group.members.items())
    if one.state.group.term is None:
        return []
    return [s for s, m in members if m.epoch is not None and m.declared_dead_at is None]


def _heard_of(world: World, one: ControllerProcess, slot: Slot) -> bool:
    """Return whether a slot would still be heard of; in Synchronize only an answer counts."""
    group = one.state.group
    epoch = group.member(slot).epoch
    mine = [c for c in world.consumers if c.slot == slot and _epoch(c) == epoch and not c.paused]
    if isinstance(one.state, Synchronize) and slot in awaited(group):
        return any(c.orders for c in mine)
    return bool(mine)


def _epoch(consumer: ConsumerProcess) -> int | None:
    return None if consumer.consumer is None else consumer.consumer.epoch


def miss(world: World, index: int, slot: Slot) -> World:
    """Everybody but this slot was heard in time."""
    one = world.controllers[index]
    group = one.state.group
    silent = replace(group.member(slot), heard_at=LONG_AGO)
    group = replace(group, members=group.members.set(slot, silent))
    world = world.controller(index, replace(one, state=replace(one.state, group=group)))
    return worlds.feed(world, one.name, Tick(0.0))


def plans(one: ControllerProcess) -> list[tuple[bool, dict[TopicPartition, Slot]]]:
    """Return where partitions may be sent, and whether it is a move that nothing forces."""
    if not isinstance(one.state, Sentinel):
        return []
    group = one.state.group
    usable, assigned, unread = group.usable(), group.assignment(), group.unread()
    if unread:
        chosen = product(usable, repeat=len(unread))
        return [(False, {**assigned, **dict(zip(unread, c, strict=True))}) for c in chosen]
    return [
        (True, {**assigned, p: slot})
        for p, at in sorted(group.partitions.items())
        if isinstance(at, Owned)
        for slot in usable
        if slot != at.slot
    ]


def plan(
    world: World, index: int, target: dict[TopicPartition, Slot], *, moves: bool = False
) -> World:
    """Let the packing answer this."""
    one = world.controllers[index]
    state = Reassign(one.state.group, 0.0, ("the explorer wants it",))
    world = replace(world, moves=world.moves - moves)
    world = world.controller(index, replace(one, state=state))
    return worlds.feed(world, one.name, Packed(0.0, target))


def _without_writer(one: ControllerProcess) -> bool:
    """Return whether a tick gives the table to somebody."""
    if not isinstance(one.state, Sentinel):
        return False
    group = one.state.group
    role = group.writers.get(TOPIC, Released())
    return isinstance(role, Released) and bool(group.usable())


def _waits_in_vain(one: ControllerProcess) -> bool:
    if not isinstance(one.state, Manage):
        return False
    group, target = one.state.group, one.state.aim.target
    return any(
        at.slot is None and not group.member(target[p]).usable
        for p, at in group.partitions.items()
        if p in target
    )


def give_up(world: World, index: int) -> World:
    """Let a plan be overdue."""
    one = world.controllers[index]
    late = replace(one, state=replace(one.state, since=LONG_AGO))
    return worlds.feed(world.controller(index, late), one.name, Tick(0.0))


def repeat(world: World, index: int) -> World:
    """Nothing was answered for long: it is sent again."""
    one = world.controllers[index]
    group = one.state.group
    orders = {
        p: replace(at, sent_at=LONG_AGO)
        for p, at in group.partitions.items()
        if isinstance(at, Starting | Stopping)
    }
    roles = {
        t: replace(at, sent_at=LONG_AGO)
        for t, at in group.writers.items()
        if isinstance(at, Starting | Stopping)
    }
    group = replace(
        group,
        partitions=group.partitions.changed(orders),
        writers=group.writers.changed(roles),
    )
    late = replace(one, state=replace(one.state, group=group))
    return worlds.feed(world.controller(index, late), one.name, Tick(0.0))


# --- consumers, and the fleet --------------------------------------------------------------------


def _consumer(world: World, index: int, one: ConsumerProcess) -> Iterator[Step[World]]:
    who = f"slot {one.slot}/{_epoch(one) or 'new'}"
    if one.paused:
        yield Step((who, "wakes"), partial(world.consumer, index, replace(one, paused=False)))
    elif one.consumer is None:
        yield Step((who, "says Hello"), partial(worlds.hello, world, index))
    else:
        if one.orders:
            yield Step((who, "obeys", one.orders[0]), partial(worlds.obey, world, index))
        if worlds.state(one) != one.said or _is_void(world, one):
            yield Step((who, "reports"), partial(worlds.report, world, index))
        if one.consumer.leaving and not one.consumer.ended:
            drained = partial(_drain, world, index)
            yield Step((who, "waits in vain to be drained"), drained)


def _is_void(world: World, one: ConsumerProcess) -> bool:
    """Return whether a leader that has read all there is would tell it to leave."""
    return any(
        c.state.group.term is not None
        and not (c.unread or c.paused)
        and not one.orders
        and c.state.group.member(one.slot).epoch != _epoch(one)
        for c in world.controllers
    )


def _drain(world: World, index: int) -> World:
    process = world.consumers[index]
    assert process.consumer is not None
    return worlds.apply(world, index, process, handover.drain(process.consumer))


def _fleet(world: World) -> Iterator[Step[World]]:
    running = {c.slot for c in world.consumers if c.owned}
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
    world: World, index: int, one: ConsumerProcess, consumer: handover.Consumer
) -> Iterator[Fault]:
    who = f"slot {one.slot}/{consumer.epoch}"
    yield "crash", (who, "crashes"), partial(world.consumer, index, None)
    frozen = replace(one, owned=False, paused=True)
    yield "freeze", (who, "freezes"), partial(world.consumer, index, frozen)
    if one.owned:
        astray = replace(one, owned=False)
        yield "astray", (who, "is lost sight of"), partial(world.consumer, index, astray)
    if not consumer.leaving:
        step = partial(handover.leave, consumer)
        label: Label = (who, "is asked to end")
        yield "leave", label, lambda: worlds.apply(world, index, one, step())
    if not consumer.ended:
        yield "drain", (who, "ends at once"), partial(_drain, world, index)
    if one.orders:
        label = (who, "never reads", one.orders[0])
        skipped = replace(one, orders=one.orders[1:])
        yield "lost", label, partial(world.consumer, index, skipped)
    for topic in consumer.tables:
        label = (who, "loses table", topic)
        lost = partial(handover.lost, consumer, topic)
        yield "role lost", label, lambda lost=lost: worlds.apply(world, index, one, lost())  # type: ignore[misc]


def _controller_faults(world: World, index: int, one: ControllerProcess) -> Iterator[Fault]:
    yield "controller crash", (one.name, "crashes"), partial(world.controller, index, None)
    if not one.paused:
        paused = replace(one, paused=True)
        yield "controller pause", (one.name, "is paused"), partial(world.controller, index, paused)
    if one.paused or one.unread:
        return
    for slot in overdue(one):
        if _heard_of(world, one, slot):
            label: Label = (one.name, "hears nothing of slot", slot, "which lives")
            yield "suspect", label, partial(miss, world, index, slot)
    if isinstance(one.state, Manage):
        yield "overdue", (one.name, "gives up its plan"), partial(give_up, world, index)
