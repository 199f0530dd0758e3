"""A run without faults: from wherever it begins everything must land, under one controller."""

from random import Random

from .invariants import Broken, check
from .process import Consumer
from .ruler import Controller
from .steps import steps, take
from .universe import Universe

PATIENCE = 600


class Standstill(Broken):
    """Without any fault it does not come to its end."""


def settle(world: Universe) -> None:
    """Let everybody act in turn until all has landed and one controller knows every owner."""
    world = world.copy()
    world.faults = world.moves = 0
    for consumer in world.consumers:
        consumer.paused = False
    for controller in world.controllers:
        controller.paused, controller.lags = False, False
    world.rest()
    random = Random(0)
    for _ in range(PATIENCE):
        check(world)
        if world.settled():
            return
        if found := list(steps(world)):
            world = take(world, random.choice(found))
        else:
            _time_passes(world)
    raise Standstill(f"a standstill: {_told(world)}")


def _time_passes(world: Universe) -> None:
    """Nobody has anything to do: what is not answered is said again, everybody reports."""
    for controller in world.controllers:
        if controller.unanswered():
            controller.repeat()
    for consumer in world.consumers:
        if consumer.consumer and not consumer.deeds:
            world.publish(consumer.state())
    world.rest()


def _told(world: Universe) -> list[object]:
    known: list[object] = [c.state.group.places for c in world.controllers]
    return [*known, *(_of(c) for c in world.consumers)]


def _of(one: Consumer | Controller) -> object:
    return one.consumer if isinstance(one, Consumer) else one.state
