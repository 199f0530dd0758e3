"""The groups to explore, with limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.model.explore import Limits, TransitionSystem
from tests.model.handover.canonical_form import canonical

from binwright.group.group import Group

from . import world as worlds
from .invariants import check, check_liveness
from .steps import apply_plan, possible_plans, steps
from .world import CONFIG, Bounds, World


@dataclass(frozen=True, slots=True)
class Scenario:
    """A group, and the limits of its exploration."""

    bounds: Bounds
    limits: Limits = field(default_factory=Limits)

    def system(self) -> TransitionSystem[World]:
        return TransitionSystem(first_world(self.bounds), steps, check, canonical, check_liveness)


def first_world(bounds: Bounds) -> World:
    """Return a group in which all slots are ready, and slot 0 reads and writes everything."""
    world = World(bounds, Group(config=CONFIG, controller=""))
    world = _settle(worlds.claim(world))
    for index, slot in enumerate(world.slots):
        world = replace(world, consumers=(*world.consumers, worlds.ConsumerProcess(slot)))
        world = _settle(worlds.hello(world, index))
    one = world.controllers[0]
    _, target = possible_plans(one)[0]
    world = _settle(apply_plan(world, 0, target))
    return replace(world, faults=bounds.faults, moves=bounds.moves)


def _settle(world: World) -> World:
    """Let all processes read their messages and report, until nothing is left."""
    while True:
        if world.controllers[0].unread:
            world = worlds.read(world, 0)
        elif busy := [i for i, c in enumerate(world.consumers) if c.commands]:
            world = worlds.handle_command(world, busy[0])
        elif late := [
            i
            for i, c in enumerate(world.consumers)
            if c.consumer is not None and worlds.state(c) != c.last_report
        ]:
            world = worlds.report(world, late[0])
        else:
            return world


def scenario(kinds: str, states: int = 10_000, liveness_every: int = 20, **bounds: int) -> Scenario:
    found = frozenset(kinds.split(",")) - {""}
    return Scenario(Bounds(kinds=found, **bounds), Limits(states, liveness_every))


EVERY = (
    "crash,freeze,duplicate,suspect,leave,drain,lost,role lost,controller crash,controller pause,"
    "rival,overdue"
)

CORRECT_SCENARIOS: Mapping[str, Scenario] = {
    "hand-over, no fault": scenario("", faults=0, liveness_every=1),
    **{f"hand-over, one {kind}": scenario(kind) for kind in EVERY.split(",")},
    "hand-over, two partitions": scenario(EVERY, 20_000, partitions=2),
    "hand-over, two faults": scenario(EVERY, 20_000, faults=2),
}

DETECTED_MUTATIONS: Mapping[str, Scenario] = {
    "any epoch is applied": scenario("duplicate", 1_000, 4),
    "no leave command is sent": scenario("duplicate", 1_000, 4),
    "does not step down": scenario("rival", 1_000, 4),
}
"""Mutation -> a scenario in which it must lead to a violation."""
