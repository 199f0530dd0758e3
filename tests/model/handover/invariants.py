"""What must hold of a group in every state, and what it comes to once faults stop."""

from dataclasses import replace
from random import Random

from tests.model.explore import Broken

from binwright.core.group import Group
from binwright.core.ownership import Owned, Starting, Stopping
from binwright.core.states import Sentinel

from . import world as worlds
from .steps import repeat, steps
from .world import TOPIC, ConsumerProcess, World

PATIENCE = 800


def check(world: World) -> None:
    """Raise if a controller that has read all there is believes what is not so.

    A consumer is only believed to read what it reads, unless a command is on its way to it; and no
    two processes of a slot obey the same controller.
    """
    for controller in world.controllers:
        group = controller.state.group
        if group.term is None or controller.unread:
            continue
        for consumer in world.consumers:
            one = consumer.consumer
            if one is None or consumer.orders or one.epoch != group.member(one.slot).epoch:
                continue
            owned = {
                p for p in group.partitions.of(one.slot) if isinstance(group.partitions[p], Owned)
            }
            if lost := owned - one.parts.keys():
                raise Broken(f"slot {one.slot} is believed to read {sorted(lost)}")


def settle(world: World) -> None:
    """Let everybody act in turn, without faults, until all is read and written by one each."""
    controllers = tuple(replace(c, paused=False) for c in world.controllers)
    consumers = tuple(replace(c, paused=False) for c in world.consumers)
    world = replace(world, faults=0, moves=0, controllers=controllers, consumers=consumers)
    random = Random(0)
    for _ in range(PATIENCE):
        check(world)
        if settled(world):
            return
        found = [s for s in steps(world) if "in vain" not in " ".join(map(str, s.label))]
        world = random.choice(found).take() if found else _time_passes(world)
    raise Broken(f"a standstill: {_told(world)}")


def _time_passes(world: World) -> World:
    """Nobody has anything to do: what is not answered is sent again, leavers are drained."""
    for index, controller in enumerate(world.controllers):
        if _unanswered(controller.state.group):
            world = repeat(world, index)
    for index, consumer in enumerate(world.consumers):
        if consumer.consumer is not None:
            world = worlds.report(world, index)
    return next((s.take() for s in steps(world) if "in vain" in str(s.label)), world)


def _unanswered(group: Group) -> bool:
    states = (*group.partitions.values(), *group.writers.values())
    return any(isinstance(at, Starting | Stopping) for at in states)


def settled(world: World) -> bool:
    """Return whether each partition has one reader, the table one writer, and one leader knows."""
    if len(world.controllers) != 1 or world.controllers[0].unread:
        return False
    state = world.controllers[0].state
    if not isinstance(state, Sentinel) or not all(map(_at_rest, world.consumers)):
        return False
    group = state.group
    if sorted(group.usable()) != sorted(world.slots) or len(world.consumers) != len(world.slots):
        return False
    for number in range(world.bounds.partitions):
        readers = [c.slot for c in world.consumers if _reads(c, number)]
        at = group.partitions.get(next(p for p in group.partitions if p.partition == number))
        if not isinstance(at, Owned) or readers != [at.slot]:
            return False
    writers = [c.slot for c in world.consumers if c.consumer and TOPIC in c.consumer.tables]
    role = group.writers.get(TOPIC)
    return isinstance(role, Owned) and writers == [role.slot]


def _at_rest(consumer: ConsumerProcess) -> bool:
    return consumer.consumer is not None and not consumer.orders


def _reads(consumer: ConsumerProcess, number: int) -> bool:
    one = consumer.consumer
    return one is not None and any(p.partition == number for p in one.parts)


def _told(world: World) -> object:
    known = [(c.state.group.partitions, c.state.group.writers) for c in world.controllers]
    return known, [c.consumer for c in world.consumers]
