"""Which containers have ended: what a docker fleet learns from the engine's events."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from binwright.controller.fleets.docker.engine import Engine, open_engine
from binwright.controller.fleets.docker.fleet import DockerFleet, Timing
from binwright.controller.fleets.docker.spec import (
    PROJECT_LABEL,
    ContainerSpec,
)
from binwright.fleets.labels import GROUP_LABEL, SLOT_LABEL
from binwright.protocol.model import Slot
from binwright.protocol.ports.fleet import Process
from binwright.runtime.clock import wall_ms
from binwright.runtime.run import background_tasks
from binwright.testing.engine import FakeEngine, fake_engine

SPEC = ContainerSpec(project="here", group="g", image="consumer:1", network="net")
TIMING = Timing(watch_s=0.02, pull_rest_s=0.05)
S0, S1 = Slot(0), Slot(1)
LONG_S = 20.0


@dataclass
class Site:
    fake: FakeEngine
    engine: Engine

    @asynccontextmanager
    async def fleet(
        self, spec: ContainerSpec = SPEC
    ) -> AsyncIterator[tuple[DockerFleet, asyncio.Event]]:
        """Give a fleet that runs slots 0 and 1, and the event that it sets when a process ends."""
        fleet, signalled = DockerFleet(self.engine, spec, 4, TIMING), asyncio.Event()
        fleet.watch(signalled.set)
        async with background_tasks(fleet.run()):
            await fleet.reconcile({S0, S1})
            yield fleet, signalled

    def host(self, slot: Slot) -> str:
        found = self.fake.find(SPEC.name(slot))
        assert found
        return found.id[:12]

    def hello_now(self, slot: Slot) -> Process:
        """Return a process of the slot's container that sends its Hello now."""
        return Process(f"{self.host(slot)}/1/ab12cd34", wall_ms())

    async def end(self, slot: Slot, state: str = "running") -> int:
        """End the slot's process, at a later time than anything before; return the time, ms."""
        await asyncio.sleep(0.002)  # times are in ms
        return self.fake.end(SPEC.name(slot), state)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with fake_engine() as (fake, path), open_engine(path, LONG_S) as engine:
        fake.images["consumer:1"] = "sha256:1"
        yield Site(fake, engine)


async def next_end(signalled: asyncio.Event) -> None:
    async with asyncio.timeout(LONG_S):
        await signalled.wait()
    signalled.clear()


async def test_the_end_of_one_container_is_signalled_at_once(site: Site) -> None:
    async with site.fleet() as (fleet, signalled):
        processes = {slot: site.hello_now(slot) for slot in (S0, S1)}
        assert await fleet.find_ended(processes) == []
        await site.end(S0)
        await next_end(signalled)
        assert await fleet.find_ended(processes) == [S0]


async def test_the_restarted_process_of_a_container_has_not_ended(site: Site) -> None:
    """The engine restarted the container: same id, same name, and usually the same pid."""
    async with site.fleet() as (fleet, signalled):
        first = site.hello_now(S0)
        at_ms = await site.end(S0)
        await next_end(signalled)
        second = replace(first, sent_ms=at_ms)
        assert await fleet.find_ended({S0: second}) == []
        await site.end(S0)
        await next_end(signalled)
        assert await fleet.find_ended({S0: second}) == [S0]


async def test_another_container_of_the_slot_has_not_ended(site: Site) -> None:
    async with site.fleet() as (fleet, signalled):
        elsewhere = replace(site.hello_now(S0), name="laptop/4711/ab12cd34")
        await site.end(S0)
        await next_end(signalled)
        assert await fleet.find_ended({S0: elsewhere}) == []


@pytest.mark.parametrize("network", ["host", "container:kafka"])
async def test_containers_without_host_names_of_their_own_are_identified_by_slot(
    site: Site, network: str
) -> None:
    async with site.fleet(replace(SPEC, network=network)) as (fleet, signalled):
        processes = {slot: replace(site.hello_now(slot), name="node/1/ab") for slot in (S0, S1)}
        await site.end(S1)
        await next_end(signalled)
        assert await fleet.find_ended(processes) == [S1]


async def test_a_process_without_a_hello_time_is_not_found_ended(site: Site) -> None:
    """A consumer of an earlier version: it may be the process that runs now."""
    async with site.fleet() as (fleet, signalled):
        old = replace(site.hello_now(S0), sent_ms=0)
        await site.end(S0)
        await next_end(signalled)
        assert await fleet.find_ended({S0: old}) == []


async def test_a_new_leader_finds_what_ended_shortly_before_it_started(site: Site) -> None:
    async with site.fleet():
        processes = {S0: site.hello_now(S0)}
    await site.end(S0, "exited")
    async with site.fleet() as (fleet, signalled):
        await next_end(signalled)
        assert await fleet.find_ended(processes) == [S0]


async def test_an_end_during_an_outage_of_the_event_stream_is_signalled_afterwards(
    site: Site,
) -> None:
    async with site.fleet() as (fleet, signalled):
        processes = {S0: site.hello_now(S0)}
        await site.end(S1)
        await next_end(signalled)
        site.fake.hang_up("events")
        await site.end(S0)
        assert await fleet.find_ended(processes) == []
        site.fake.failing.clear()
        await next_end(signalled)
        assert await fleet.find_ended(processes) == [S0]


async def test_ends_of_other_groups_and_projects_and_of_no_slot_are_ignored(site: Site) -> None:
    slot = {**SPEC.labels(), SLOT_LABEL: "1"}
    site.fake.add_container("group", {"Labels": {**slot, GROUP_LABEL: "other"}})
    site.fake.add_container("project", {"Labels": {**slot, PROJECT_LABEL: "other"}})
    site.fake.add_container("none", {"Labels": {**SPEC.labels()}})
    calls = []

    async with site.fleet() as (fleet, signalled):

        def ended() -> None:
            calls.append("an end")
            signalled.set()

        fleet.watch(ended)
        for name in ("group", "project", "none"):
            site.fake.end(name)
        await site.end(S0)  # events come in order
        await next_end(signalled)
        assert len(calls) == 1


async def test_after_detach_no_end_is_signalled(site: Site) -> None:
    async with site.fleet() as (fleet, signalled):
        processes = {S0: site.hello_now(S0)}
        fleet.detach()
        await site.end(S0)
        async with asyncio.timeout(LONG_S):
            while not await fleet.find_ended(processes):  # noqa: ASYNC110 - no event is set
                await asyncio.sleep(0.01)
        assert not signalled.is_set()
