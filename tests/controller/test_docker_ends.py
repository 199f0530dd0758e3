"""Which containers have ended: what a docker fleet knows by the engine's events."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from binwright.controller.docker.engine import Engine, opened
from binwright.controller.docker.shape import GROUP_LABEL, Shape
from binwright.controller.fleets.docker import DockerFleet, Pace
from binwright.core.model import Slot
from binwright.core.ports import Process
from binwright.shell.run import meanwhile
from binwright.testing.engine import FakeEngine, fake_engine

SHAPE = Shape(realm="here", group="g", image="consumer:1", network="net")
PACE = Pace(watch_s=0.02, pull_rest_s=0.05)
S0, S1 = Slot(0), Slot(1)
LONG_S = 20.0


@dataclass
class Site:
    fake: FakeEngine
    engine: Engine

    @asynccontextmanager
    async def fleet(self, shape: Shape = SHAPE) -> AsyncIterator[tuple[DockerFleet, asyncio.Event]]:
        """Give a fleet that keeps slots 0 and 1, and what it sets when a process has ended."""
        made, told = DockerFleet(self.engine, shape, 4, PACE), asyncio.Event()
        made.watch(told.set)
        async with meanwhile(made.run()):
            await made.reconcile({S0, S1})
            yield made, told

    def host(self, slot: Slot) -> str:
        found = self.fake.named(SHAPE.name(slot))
        assert found
        return found.id[:12]

    def said_now(self, slot: Slot) -> Process:
        """Return a process of the slot's container that sends its Hello just now."""
        return Process(f"{self.host(slot)}/1/ab12cd34", time.time_ns() // 1_000_000)

    async def end(self, slot: Slot, state: str = "running") -> int:
        """Have the slot's process end a moment later than anything before."""
        await asyncio.sleep(0.002)  # times are in ms
        return self.fake.end(SHAPE.name(slot), state)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with fake_engine() as (fake, path), opened(path, LONG_S) as engine:
        fake.images["consumer:1"] = "sha256:1"
        yield Site(fake, engine)


async def told_of(told: asyncio.Event) -> None:
    async with asyncio.timeout(LONG_S):
        await told.wait()
    told.clear()


async def test_the_end_of_a_container_is_told_at_once_and_of_no_other(site: Site) -> None:
    async with site.fleet() as (fleet, told):
        there = {slot: site.said_now(slot) for slot in (S0, S1)}
        assert await fleet.ended(there) == []
        await site.end(S0)
        await told_of(told)
        assert await fleet.ended(there) == [S0]


async def test_the_process_that_runs_there_since_is_another(site: Site) -> None:
    """The engine started the container again: same id, same name, and mostly the same pid."""
    async with site.fleet() as (fleet, told):
        first = site.said_now(S0)
        at_ms = await site.end(S0)
        await told_of(told)
        second = replace(first, sent_ms=at_ms)
        assert await fleet.ended({S0: second}) == []
        await site.end(S0)
        await told_of(told)
        assert await fleet.ended({S0: second}) == [S0]


async def test_another_container_of_the_slot_has_not_ended(site: Site) -> None:
    async with site.fleet() as (fleet, told):
        elsewhere = replace(site.said_now(S0), name="laptop/4711/ab12cd34")
        await site.end(S0)
        await told_of(told)
        assert await fleet.ended({S0: elsewhere}) == []


@pytest.mark.parametrize("network", ["host", "container:kafka"])
async def test_where_containers_have_no_name_of_their_own_the_slot_tells(
    site: Site, network: str
) -> None:
    async with site.fleet(replace(SHAPE, network=network)) as (fleet, told):
        there = {slot: replace(site.said_now(slot), name="node/1/ab") for slot in (S0, S1)}
        await site.end(S1)
        await told_of(told)
        assert await fleet.ended(there) == [S1]


async def test_a_consumer_that_did_not_tell_when_it_said_hello_is_left_to_its_silence(
    site: Site,
) -> None:
    """One of an earlier version: whether it is the one that ended cannot be known."""
    async with site.fleet() as (fleet, told):
        old = replace(site.said_now(S0), sent_ms=0)
        await site.end(S0)
        await told_of(told)
        assert await fleet.ended({S0: old}) == []


async def test_a_new_leader_knows_what_ended_shortly_before_it_began(site: Site) -> None:
    async with site.fleet():
        there = {S0: site.said_now(S0)}
    await site.end(S0, "exited")
    async with site.fleet() as (fleet, told):
        await told_of(told)
        assert await fleet.ended(there) == [S0]


async def test_what_ended_while_the_engine_did_not_tell_is_told_afterwards(site: Site) -> None:
    async with site.fleet() as (fleet, told):
        there = {S0: site.said_now(S0)}
        await site.end(S1)
        await told_of(told)
        site.fake.hang_up("events")
        await site.end(S0)
        assert await fleet.ended(there) == []
        site.fake.failing.clear()
        await told_of(told)
        assert await fleet.ended(there) == [S0]


async def test_ends_of_other_groups_and_of_no_slot_are_not_ours(site: Site) -> None:
    site.fake.put("theirs", {"Labels": {**SHAPE.labels(), GROUP_LABEL: "other"}})
    site.fake.put("nobody", {"Labels": {**SHAPE.labels()}})
    calls = []

    async with site.fleet() as (fleet, told):

        def ended() -> None:
            calls.append("an end")
            told.set()

        fleet.watch(ended)
        for name in ("theirs", "nobody"):
            site.fake.end(name)
        await site.end(S0)  # events come in order
        await told_of(told)
        assert len(calls) == 1


async def test_no_end_is_told_once_another_controller_orders(site: Site) -> None:
    async with site.fleet() as (fleet, told):
        there = {S0: site.said_now(S0)}
        fleet.rest()
        await site.end(S0)
        async with asyncio.timeout(LONG_S):
            while not await fleet.ended(there):  # noqa: ASYNC110 - it is told to nobody
                await asyncio.sleep(0.01)
        assert not told.is_set()
