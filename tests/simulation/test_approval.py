"""Plans that need approval, and what happens while they wait, on virtual time."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from tests.simulation.world import CONFIG, P, World, until, world

from binwright.controller.decide.states import Sentinel
from binwright.protocol.metadata import Accepted, Planned, Withdrawn
from binwright.protocol.model import Slot, TopicPartition

pytestmark = pytest.mark.looptime(noop_cycles=1)

APPROVE = CONFIG.with_settings(mode="approve")
LOW_LOAD, HIGH_LOAD = dict.fromkeys(P, 20_000.0), dict.fromkeys(P, 40_000.0)


def proposed_number(w: World) -> int | None:
    proposal = w.group().people.proposal
    return proposal.number if proposal else None


async def next_proposal(w: World) -> int:
    """Wait for a proposed plan; return its number."""
    await until(lambda: proposed_number(w) is not None)
    number = proposed_number(w)
    assert number is not None
    return number


def approve(w: World, number: int) -> None:
    w.controllers[-1].approve(number, "a person")


def assigned(w: World) -> Mapping[TopicPartition, Slot]:
    return dict(w.group().members.assignment())


@asynccontextmanager
async def running_group(load: Mapping[TopicPartition, float]) -> AsyncIterator[World]:
    """Run a group whose first plan has been approved."""
    async with world({"orders": 4}, APPROVE) as w:
        w.load(load)
        await asyncio.sleep(10)
        number = await next_proposal(w)
        assert not w.fleet.running, "the first plan waits, too"
        approve(w, number)  # it may be withdrawn: it was made before the rates were known
        await until(lambda: w.steady() or proposed_number(w) not in {None, number})
        if not w.steady():
            approve(w, await next_proposal(w))
            await until(w.steady)
        yield w


async def test_nothing_moves_until_the_plan_is_approved() -> None:
    async with running_group(LOW_LOAD) as w:
        assert w.fleet.running == {0}
        w.load(HIGH_LOAD)
        number, before = await next_proposal(w), assigned(w)
        await asyncio.sleep(300)
        assert (proposed_number(w), assigned(w)) == (number, before)
        assert w.fleet.running == {0}
        approve(w, number)
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        assert [m.plan for m in w.metadata_messages() if isinstance(m, Accepted)][-1] == number
        await w.all_landed_once()


async def test_an_outdated_plan_is_not_carried_out_and_another_follows() -> None:
    async with running_group(LOW_LOAD) as w:
        w.load(HIGH_LOAD)
        number = await next_proposal(w)
        w.load({**LOW_LOAD, P[1]: 110_000.0})
        await asyncio.sleep(6)  # the rates are measured over five
        approve(w, number)
        await until(lambda: proposed_number(w) not in {None, number})
        (withdrawn,) = [m for m in w.metadata_messages() if isinstance(m, Withdrawn)]
        assert withdrawn.plan == number
        assert w.fleet.running == {0}
        approve(w, await next_proposal(w))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.all_landed_once()


async def test_a_death_is_repaired_without_approval_and_ends_as_approved() -> None:
    async with running_group(HIGH_LOAD) as w:
        approved = assigned(w)
        assert len(set(approved.values())) == 2
        w.fleet.restart_s = 20.0
        for slot in sorted(w.fleet.running):
            w.fleet.kill(slot)
            await until(lambda: w.fleet.running != {0, 1} and w.steady())  # at the other consumer
            await until(lambda: w.fleet.running == {0, 1} and w.steady())
            await until(lambda: assigned(w) == approved and w.steady())
        keeping = [m for m in w.metadata_messages() if isinstance(m, Planned)]
        assert len({m.keeps for m in keeping}) == 1
        await w.all_landed_once()


async def test_when_all_die_at_once_the_approved_slots_restart() -> None:
    async with running_group(HIGH_LOAD) as w:
        approved = assigned(w)
        for slot in (Slot(0), Slot(1)):
            w.fleet.kill(slot)
        await until(lambda: sum(w.fleet.starts.values()) == 4 and w.steady())
        await until(lambda: assigned(w) == approved and w.steady())
        await w.all_landed_once()


async def test_a_rolling_restart_needs_no_approval_and_ends_as_approved() -> None:
    async with running_group(HIGH_LOAD) as w:
        approved = assigned(w)
        for slot in (Slot(0), Slot(1)):
            starts = w.fleet.starts[slot]
            w.fleet.worker(slot).drain()
            await until(
                lambda starts=starts, slot=slot: w.fleet.starts[slot] > starts and w.steady()  # type: ignore[misc]
            )
            await until(lambda: assigned(w) == approved and w.steady())
        await w.all_landed_once()


async def test_a_proposed_plan_survives_the_death_of_its_controller() -> None:
    async with running_group(LOW_LOAD) as w:
        w.load(HIGH_LOAD)
        number = await next_proposal(w)
        w.kill_controller()
        w.start_controller()
        await until(lambda: isinstance(w.controllers[-1].state, Sentinel))
        await asyncio.sleep(100)
        assert proposed_number(w) == number
        approve(w, number)
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.all_landed_once()


async def test_the_next_controller_restores_the_approved_plan() -> None:
    """No consumer runs when it starts: partition 0 holds the approved slots."""
    async with running_group(HIGH_LOAD) as w:
        approved = assigned(w)
        w.kill_controller()
        w.fleet.detach()
        for slot in (Slot(0), Slot(1)):
            w.fleet.kill(slot)
        w.start_controller()
        await until(lambda: w.fleet.running == {0, 1} and w.steady())
        await until(lambda: assigned(w) == approved)
        await w.all_landed_once()
