"""The invariants of a group in every state, and its liveness without faults."""

from dataclasses import replace
from random import Random

from tests.model.explore import InvariantViolation

from binwright.controller.decide.states import Sentinel
from binwright.group.group import Group
from binwright.group.ownership import Owned, Starting, Stopping

from . import world as worlds
from .steps import repeat_commands, steps
from .world import TOPIC, ConsumerProcess, World

PATIENCE = 800


def check(world: World) -> None:
    """Raise if a controller that has read all records is wrong about a consumer.

    A partition that it takes for owned by a consumer is read by that consumer, unless a command to
    the consumer is still unread.
    """
    for controller in world.controllers:
        group = controller.state.group
        if group.term is None or controller.unread:
            continue
        for consumer in world.consumers:
            one = consumer.consumer
            if one is None or consumer.commands or one.epoch != group.members.get(one.slot).epoch:
                continue
            owned = {
                p
                for p in group.members.partitions.owned_by(one.slot)
                if isinstance(group.members.partitions[p], Owned)
            }
            if lost := owned - one.partitions.keys():
                raise InvariantViolation(f"slot {one.slot} does not read {sorted(lost)}")


def check_liveness(world: World) -> None:
    """Take random steps without faults until every partition and table has one owner."""
    controllers = tuple(replace(c, paused=False) for c in world.controllers)
    consumers = tuple(replace(c, paused=False) for c in world.consumers)
    world = replace(world, faults=0, moves=0, controllers=controllers, consumers=consumers)
    random = Random(0)
    for _ in range(PATIENCE):
        check(world)
        if settled(world):
            return
        found = [
            s for s in steps(world) if "not drained in time" not in " ".join(map(str, s.label))
        ]
        world = random.choice(found).successor() if found else _time_passes(world)
    raise InvariantViolation(f"a standstill: {_describe(world)}")


def _time_passes(world: World) -> World:
    """Let time pass when no step is left: commands are repeated, draining consumers time out."""
    for index, controller in enumerate(world.controllers):
        if _unanswered(controller.state.group):
            world = repeat_commands(world, index)
    for index, consumer in enumerate(world.consumers):
        if consumer.consumer is not None:
            world = worlds.report(world, index)
    return next(
        (s.successor() for s in steps(world) if "not drained in time" in str(s.label)), world
    )


def _unanswered(group: Group) -> bool:
    states = (*group.members.partitions.values(), *group.members.writers.values())
    return any(isinstance(at, Starting | Stopping) for at in states)


def settled(world: World) -> bool:
    """Whether each partition has one reader, the table one writer, and one leader knows them."""
    if len(world.controllers) != 1 or world.controllers[0].unread:
        return False
    state = world.controllers[0].state
    if not isinstance(state, Sentinel) or not all(map(_at_rest, world.consumers)):
        return False
    group = state.group
    if sorted(group.members.usable()) != sorted(world.slots) or len(world.consumers) != len(
        world.slots
    ):
        return False
    for number in range(world.bounds.partitions):
        readers = [c.slot for c in world.consumers if _reads(c, number)]
        at = group.members.partitions.get(
            next(p for p in group.members.partitions if p.partition == number)
        )
        if not isinstance(at, Owned) or readers != [at.slot]:
            return False
    writers = [c.slot for c in world.consumers if c.consumer and TOPIC in c.consumer.tables]
    role = group.members.writers.get(TOPIC)
    return isinstance(role, Owned) and writers == [role.slot]


def _at_rest(consumer: ConsumerProcess) -> bool:
    return consumer.consumer is not None and not consumer.commands


def _reads(consumer: ConsumerProcess, number: int) -> bool:
    one = consumer.consumer
    return one is not None and any(p.partition == number for p in one.partitions)


def _describe(world: World) -> object:
    known = [
        (c.state.group.members.partitions, c.state.group.members.writers) for c in world.controllers
    ]
    return known, [c.consumer for c in world.consumers]
