"""A killed consumer is declared dead at once if the fleet reports ends, else by timeout."""

import asyncio

import pytest
from tests.simulation.world import P, World, until, world

from binwright.group.ownership import Owned
from binwright.protocol.metadata import Dead
from binwright.protocol.model import Slot

pytestmark = pytest.mark.looptime(noop_cycles=1)


async def kill_one(w: World, away_s: float = 60.0, *, leader: bool = False) -> Owned:
    """Kill one of two consumers; the fleet restarts it after `away_s`. Return what it was.

    With `leader` the controller is killed just before.
    """
    w.load(dict.fromkeys(P, 40_000.0))
    await until(lambda: len(w.fleet.running) == 2 and w.steady())
    victim = max(w.fleet.running)
    epoch = w.group().members.get(victim).epoch
    if leader:
        w.kill_controller()
    w.fleet.restart_s = away_s
    w.fleet.kill(victim)
    return Owned(victim, epoch or 0)


def all_read_without(w: World, victim: Owned) -> bool:
    states = w.group().members.partitions.values()
    return all(isinstance(at, Owned) and at != victim for at in states)


async def test_a_killed_consumers_partitions_are_read_again_within_two_seconds() -> None:
    async with world({"orders": 4}) as w:
        w.fleet.reports_ends = True
        victim = await kill_one(w)
        await asyncio.sleep(0.1)
        (death,) = w.sent(Dead)
        await until(lambda: all_read_without(w, victim), 2)
        assert (death.slot, death.epoch) == (victim.slot, victim.epoch)
        await until(w.steady, 300)
        await w.all_landed_once(300)


async def test_a_consumer_that_ended_without_a_leader_is_declared_dead_at_once() -> None:
    """Leader and consumer are killed together: the next leader queries the fleet."""
    async with world({"orders": 4}) as w:
        w.fleet.reports_ends = True
        victim = await kill_one(w, leader=True)
        w.start_controller()
        await until(lambda: all_read_without(w, victim), 4)
        await until(w.steady, 300)
        await w.all_landed_once(300)


async def test_an_end_without_a_notification_is_found() -> None:
    """For example, the process ended before its Hello was read."""
    async with world({"orders": 4}) as w:
        victim = await kill_one(w)
        await asyncio.sleep(0.1)
        w.fleet.reports_ends = True
        await until(lambda: all_read_without(w, victim), 3)


async def test_an_unreachable_fleet_is_asked_again() -> None:
    async with world({"orders": 4}) as w:
        w.fleet.reports_ends, w.fleet.reachable = True, False
        victim = await kill_one(w)
        await asyncio.sleep(3)
        assert not w.sent(Dead)
        w.fleet.reachable = True
        await until(lambda: all_read_without(w, victim), 3)


async def test_without_reports_of_the_fleet_a_death_is_found_by_timeout() -> None:
    async with world({"orders": 4}) as w:
        victim = await kill_one(w)
        await asyncio.sleep(2)
        assert not all_read_without(w, victim)
        await until(lambda: all_read_without(w, victim), 30)
        await until(w.steady, 300)
        await w.all_landed_once(300)


async def test_an_end_that_always_fails_delays_no_other_command() -> None:
    """B8: this leader could not start or retire any consumer any more."""
    async with world({"orders": 4}) as w:
        victim = await kill_one(w, away_s=3600.0)
        w.fleet.stuck, starts = {victim.slot}, w.fleet.starts[victim.slot]
        await until(lambda: w.fleet.starts[victim.slot] > starts, 60)
        await until(w.steady, 300)
        await w.all_landed_once(300)


async def test_the_fleet_is_given_the_readiness_of_each_process() -> None:
    """Rolling updates of consumers depend on it."""
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 40_000.0))
        await until(lambda: w.fleet.ready.keys() == {0, 1})
        before = dict(w.fleet.ready)
        w.fleet.restart_s = 5
        w.fleet.kill(Slot(1))
        await until(lambda: w.fleet.ready.get(Slot(1), 0.0) > before[Slot(1)], 60)
        assert w.fleet.ready[Slot(0)] == before[Slot(0)]
