"""Plans that wait for a person, on virtual time: and what goes on meanwhile."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from binwright.core.messages import Accepted, Planned, Withdrawn
from binwright.core.model import Slot, TopicPartition
from binwright.core.states import Sentinel

from .world import RULES, P, World, until, world

pytestmark = pytest.mark.looptime(noop_cycles=1)

APPROVE = replace(RULES, mode="approve")
SLOW, FAST = dict.fromkeys(P, 20_000.0), dict.fromkeys(P, 40_000.0)


def waiting(w: World) -> int | None:
    offer = w.group().offer
    return offer.number if offer else None


async def shown(w: World) -> int:
    """Wait for a plan; return its number."""
    await until(lambda: waiting(w) is not None)
    number = waiting(w)
    assert number is not None
    return number


def approve(w: World, number: int) -> None:
    w.controllers[-1].approve(number, "a person")


def assigned(w: World) -> Mapping[TopicPartition, Slot]:
    return dict(w.group().assignment())


@asynccontextmanager
async def at_work(load: Mapping[TopicPartition, float]) -> AsyncIterator[World]:
    """Run a group whose first plan was approved."""
    async with world({"orders": 4}, APPROVE) as w:
        w.load(load)
        await asyncio.sleep(10)
        number = await shown(w)
        assert not w.fleet.running, "the first plan waits, too"
        approve(w, number)  # it may be withdrawn: rates were not known yet when it was made
        await until(lambda: w.steady() or waiting(w) not in {None, number})
        if not w.steady():
            approve(w, await shown(w))
            await until(w.steady)
        yield w


async def test_nothing_moves_until_the_plan_is_approved() -> None:
    async with at_work(SLOW) as w:
        assert w.fleet.running == {0}
        w.load(FAST)
        number, before = await shown(w), assigned(w)
        await asyncio.sleep(300)
        assert (waiting(w), assigned(w)) == (number, before)
        assert w.fleet.running == {0}
        approve(w, number)
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        assert [m.plan for m in w.heard() if isinstance(m, Accepted)][-1] == number
        await w.settled()


async def test_a_plan_out_of_date_is_not_carried_out_and_another_follows() -> None:
    async with at_work(SLOW) as w:
        w.load(FAST)
        number = await shown(w)
        w.load({**SLOW, P[1]: 110_000.0})
        await asyncio.sleep(6)  # what is measured goes back five
        approve(w, number)
        await until(lambda: waiting(w) not in {None, number})
        (gone,) = [m for m in w.heard() if isinstance(m, Withdrawn)]
        assert gone.plan == number
        assert w.fleet.running == {0}
        approve(w, await shown(w))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.settled()


async def test_a_death_is_repaired_without_asking_and_ends_as_approved() -> None:
    async with at_work(FAST) as w:
        approved = assigned(w)
        assert len(set(approved.values())) == 2
        w.fleet.restart_s = 20.0
        for slot in sorted(w.fleet.running):
            w.fleet.kill(slot)
            await until(lambda: w.fleet.running != {0, 1} and w.steady())  # by the other
            await until(lambda: w.fleet.running == {0, 1} and w.steady())
            await until(lambda: assigned(w) == approved and w.steady())
        keeping = [m for m in w.heard() if isinstance(m, Planned)]
        assert len({m.keeps for m in keeping}) == 1
        await w.settled()


async def test_with_all_dead_at_once_the_approved_slots_come_back() -> None:
    async with at_work(FAST) as w:
        approved = assigned(w)
        for slot in (Slot(0), Slot(1)):
            w.fleet.kill(slot)
        await until(lambda: sum(w.fleet.born.values()) == 4 and w.steady())
        await until(lambda: assigned(w) == approved and w.steady())
        await w.settled()


async def test_a_rolling_bounce_asks_nobody_and_ends_as_approved() -> None:
    async with at_work(FAST) as w:
        approved = assigned(w)
        for slot in (Slot(0), Slot(1)):
            born = w.fleet.born[slot]
            w.fleet.worker(slot).drain()
            await until(lambda born=born, slot=slot: w.fleet.born[slot] > born and w.steady())  # type: ignore[misc]
            await until(lambda: assigned(w) == approved and w.steady())
        await w.settled()


async def test_a_plan_waits_on_when_its_controller_dies() -> None:
    async with at_work(SLOW) as w:
        w.load(FAST)
        number = await shown(w)
        w.kill_controller()
        w.start_controller()
        await until(lambda: isinstance(w.controllers[-1].state, Sentinel))
        await asyncio.sleep(100)
        assert waiting(w) == number
        approve(w, number)
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.settled()


async def test_the_next_controller_brings_back_what_was_approved() -> None:
    """Nobody lives when it comes: it knows from the log which slots were approved."""
    async with at_work(FAST) as w:
        approved = assigned(w)
        w.kill_controller()
        w.fleet.rest()
        for slot in (Slot(0), Slot(1)):
            w.fleet.kill(slot)
        w.start_controller()
        await until(lambda: w.fleet.running == {0, 1} and w.steady())
        await until(lambda: assigned(w) == approved)
        await w.settled()
