"""Groups to explore, and how far."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.model.explore import Limits, System

from binwright.core.group import Group

from . import world as worlds
from .canon import canonical
from .invariants import check, settle
from .steps import plan, plans, steps
from .world import RULES, Bounds, World


@dataclass(frozen=True, slots=True)
class Scenario:
    """A group, and the limits of its exploration."""

    bounds: Bounds
    limits: Limits = field(default_factory=Limits)

    def system(self) -> System[World]:
        return System(first_world(self.bounds), steps, check, canonical, settle)


def first_world(bounds: Bounds) -> World:
    """Return a group in which slot 0 reads and writes everything, and all are ready."""
    world = World(bounds, Group(rules=RULES, controller=""))
    world = _quiet(worlds.claim(world))
    for index, slot in enumerate(world.slots):
        world = replace(world, consumers=(*world.consumers, worlds.ConsumerProcess(slot)))
        world = _quiet(worlds.hello(world, index))
    one = world.controllers[0]
    _, target = plans(one)[0]
    world = _quiet(plan(world, 0, target))
    return replace(world, faults=bounds.faults, moves=bounds.moves)


def _quiet(world: World) -> World:
    """Let everybody read what is there."""
    while True:
        if world.controllers[0].unread:
            world = worlds.read(world, 0)
        elif busy := [i for i, c in enumerate(world.consumers) if c.orders]:
            world = worlds.obey(world, busy[0])
        elif late := [
            i
            for i, c in enumerate(world.consumers)
            if c.consumer is not None and worlds.state(c) != c.said
        ]:
            world = worlds.report(world, late[0])
        else:
            return world


def scenario(kinds: str, states: int = 10_000, settle_every: int = 20, **bounds: int) -> Scenario:
    found = frozenset(kinds.split(",")) - {""}
    return Scenario(Bounds(kinds=found, **bounds), Limits(states, settle_every))


EVERY = (
    "crash,freeze,astray,suspect,leave,drain,lost,role lost,controller crash,controller pause,"
    "rival,overdue"
)

HOLDS: Mapping[str, Scenario] = {
    "hand-over, no fault": scenario("", faults=0, settle_every=1),
    **{f"hand-over, one {kind}": scenario(kind) for kind in EVERY.split(",")},
    "hand-over, two partitions": scenario(EVERY, 20_000, partitions=2),
    "hand-over, two faults": scenario(EVERY, 20_000, faults=2),
}

BREAKS: Mapping[str, Scenario] = {
    "hears any epoch": scenario("astray", 1_000, 4),
    "tells nobody to leave": scenario("astray", 1_000, 4),
    "does not step down": scenario("rival", 1_000, 4),
}
"""With a rule left out (`mutations`) each of these must come to a violation."""
