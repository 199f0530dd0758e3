"""A consumer is killed: where the fleet can tell, nobody waits for its silence."""

import asyncio

import pytest

from binwright.core.messages import Dead
from binwright.core.model import Slot
from binwright.core.ownership import Owned

from .world import P, World, until, world

pytestmark = pytest.mark.looptime(noop_cycles=1)


async def killed(w: World, away_s: float = 60.0, *, leader: bool = False) -> Owned:
    """Kill one of two consumers; the fleet lets it be for so long. Return who it was.

    With `leader` the controller is killed just before.
    """
    w.load(dict.fromkeys(P, 40_000.0))
    await until(lambda: len(w.fleet.running) == 2 and w.steady())
    victim = max(w.fleet.running)
    epoch = w.group().member(victim).epoch
    if leader:
        w.kill_controller()
    w.fleet.restart_s = away_s
    w.fleet.kill(victim)
    return Owned(victim, epoch or 0)


def all_read_without(w: World, victim: Owned) -> bool:
    states = w.group().partitions.values()
    return all(isinstance(at, Owned) and at != victim for at in states)


async def test_what_it_read_is_read_again_within_two_seconds() -> None:
    async with world({"orders": 4}) as w:
        w.fleet.sees_ends = True
        victim = await killed(w)
        await asyncio.sleep(0.1)
        (death,) = w.sent(Dead)
        await until(lambda: all_read_without(w, victim), 2)
        assert (death.slot, death.epoch) == (victim.slot, victim.epoch)
        await until(w.steady, 300)
        await w.settled(300)


async def test_who_ended_while_nobody_led_is_not_waited_for() -> None:
    """Leader and consumer are killed together: the next leader asks the fleet."""
    async with world({"orders": 4}) as w:
        w.fleet.sees_ends = True
        victim = await killed(w, leader=True)
        w.start_controller()
        await until(lambda: all_read_without(w, victim), 4)
        await until(w.steady, 300)
        await w.settled(300)


async def test_an_end_of_which_nothing_told_is_found_all_the_same() -> None:
    """As when it was known before the Hello of the process was read."""
    async with world({"orders": 4}) as w:
        victim = await killed(w)
        await asyncio.sleep(0.1)
        w.fleet.sees_ends = True
        await until(lambda: all_read_without(w, victim), 3)


async def test_a_fleet_that_does_not_answer_is_asked_again() -> None:
    async with world({"orders": 4}) as w:
        w.fleet.sees_ends, w.fleet.answers = True, False
        victim = await killed(w)
        await asyncio.sleep(3)
        assert not w.sent(Dead)
        w.fleet.answers = True
        await until(lambda: all_read_without(w, victim), 3)


async def test_a_fleet_that_cannot_tell_leaves_it_to_the_silence() -> None:
    async with world({"orders": 4}) as w:
        victim = await killed(w)
        await asyncio.sleep(2)
        assert not all_read_without(w, victim)
        await until(lambda: all_read_without(w, victim), 30)
        await until(w.steady, 300)
        await w.settled(300)


async def test_an_end_that_fails_for_ever_delays_no_other_order() -> None:
    """B8: nothing could be started or retired any more by this leader."""
    async with world({"orders": 4}) as w:
        victim = await killed(w, away_s=3600.0)
        w.fleet.stuck, born = {victim.slot}, w.fleet.born[victim.slot]
        await until(lambda: w.fleet.born[victim.slot] > born, 60)
        await until(w.steady, 300)
        await w.settled(300)


async def test_the_fleet_learns_who_is_ready_and_that_a_new_process_is_not_yet() -> None:
    """Who renews consumers one by one goes by it."""
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 40_000.0))
        await until(lambda: w.fleet.ready.keys() == {0, 1})
        before = dict(w.fleet.ready)
        w.fleet.restart_s = 5
        w.fleet.kill(Slot(1))
        await until(lambda: w.fleet.ready.get(Slot(1), 0.0) > before[Slot(1)], 60)
        assert w.fleet.ready[Slot(0)] == before[Slot(0)]
