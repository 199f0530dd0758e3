"""The docker fleet, with a fake engine on a socket."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from binwright.controller.fleets.docker.engine import Engine, open_engine
from binwright.controller.fleets.docker.fleet import DockerFleet, Timing
from binwright.controller.fleets.docker.spec import ContainerSpec
from binwright.protocol.errors import EngineRefused, EngineUnavailable, ExternalError
from binwright.protocol.model import Slot
from binwright.runtime.run import background_tasks
from binwright.testing.engine import FakeContainer, FakeEngine, fake_engine

SPEC = ContainerSpec(project="here", group="g", image="consumer:1", network="net", grace_s=20.0)
TIMING = Timing(watch_s=0.02, steady_s=0.1, ask_again_s=0.1, pull_rest_s=0.05)
SLOTS = 4


async def until(condition: Callable[[], bool], patience_s: float = 20.0) -> None:
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - the engine signals no event
            await asyncio.sleep(0.01)


def slots(*numbers: int) -> set[Slot]:
    return {Slot(n) for n in numbers}


def names(*numbers: int) -> list[str]:
    return [f"here-g-consumer-{n}" for n in numbers]


@dataclass(frozen=True)
class Site:
    fake: FakeEngine
    engine: Engine
    silent: set[str] = field(default_factory=set)  # ids of containers that never send a Hello

    @asynccontextmanager
    async def fleet(
        self, spec: ContainerSpec = SPEC, timing: Timing = TIMING
    ) -> AsyncIterator[DockerFleet]:
        fleet = DockerFleet(self.engine, spec, SLOTS, timing)
        async with background_tasks(fleet.run(), self._update_ready(fleet)):
            yield fleet

    async def _update_ready(self, fleet: DockerFleet) -> None:
        """Report, as the controller does, all running processes as ready, but the silent ones."""
        since: dict[tuple[Slot, str], float] = {}
        while True:
            found = [(slot, self.of(slot)) for slot in range(SLOTS) if not self.gone(slot)]
            now = asyncio.get_running_loop().time()
            running = [(Slot(slot), c.id) for slot, c in found if c.state == "running"]
            since = {each: since.get(each, now) for each in running if each[1] not in self.silent}
            fleet.update_ready({slot: at for (slot, _), at in since.items()})
            await asyncio.sleep(0.01)

    def of(self, slot: int) -> FakeContainer:
        found = self.fake.find(names(slot)[0])
        assert found
        return found

    def gone(self, slot: int) -> bool:
        return self.fake.find(names(slot)[0]) is None

    def ids(self) -> set[str]:
        return set(self.fake.containers)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with fake_engine() as (fake, path), open_engine(path, 20.0) as engine:
        fake.images["consumer:1"] = "sha256:1"
        yield Site(fake, engine)


async def scale(fleet: DockerFleet, site: Site, desired: Collection[int]) -> None:
    await fleet.reconcile(slots(*desired))
    await until(lambda: site.fake.running() == names(*sorted(desired)))


async def test_desired_slots_run_and_others_are_removed(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0, 1, 2])
        await fleet.reconcile(slots(1))
        await until(lambda: len(site.fake.containers) == 1)
        assert site.fake.running() == names(1)


async def test_a_container_is_created_from_the_spec(site: Site) -> None:
    spec = replace(
        SPEC,
        volumes=("lake:/lake",),
        environment={"A": "1"},
        memory_bytes=300_000_000,
        cpus=0.5,
    )
    async with site.fleet(spec) as fleet:
        await scale(fleet, site, [3])
    body = site.of(3).made_from
    host: dict[str, Any] = body["HostConfig"]
    assert (body["Image"], body["Cmd"], body["Env"]) == ("consumer:1", ["--slot", "3"], ["A=1"])
    labels = body["Labels"]
    assert (labels["binwright.dev/project"], labels["binwright.dev/slot"]) == ("here", "3")
    assert (host["NetworkMode"], host["Binds"]) == ("net", ["lake:/lake"])
    assert (host["Memory"], host["NanoCpus"]) == (300_000_000, 500_000_000)
    assert host["RestartPolicy"] == {"Name": "unless-stopped"}
    assert host["ReadonlyRootfs"]
    assert host["CapDrop"] == ["ALL"]


async def test_a_container_removed_by_hand_is_created_again(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0, 1])
        lost = site.of(0).id
        del site.fake.containers[lost]
        await until(lambda: site.fake.running() == names(0, 1))


async def test_a_container_stopped_or_paused_by_hand_is_started_again(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0, 1])
        before = site.ids()
        site.of(0).state, site.of(1).state = "exited", "paused"
        await until(lambda: site.fake.running() == names(0, 1))
    assert site.ids() == before


async def test_an_edited_container_is_replaced(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0])
        before = site.of(0).id
        site.of(0).networks.clear()
        await until(lambda: not site.gone(0) and site.of(0).id != before)
        await until(lambda: site.fake.running() == names(0))


async def test_edited_limits_are_found_although_a_list_lacks_them(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0])
        found = await fleet._list()
        await fleet._staleness.refresh(found, 100.0)
        site.of(0).made_from["HostConfig"]["Memory"] = 5
        await fleet._staleness.refresh(found, 200.0)
        assert [fleet._staleness.stale(each) for each in found] == ["it was edited"]


async def test_a_limit_that_the_engine_drops_is_no_edit(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0])
        site.of(0).made_from["HostConfig"]["PidsLimit"] = None
        fleet._staleness.forget()
        found = await fleet._list()
        await fleet._staleness.refresh(found, 0.0)
        await fleet._staleness.refresh(found, 100.0)
        assert fleet._staleness.stale(found[0]) == ""


async def test_a_controller_that_ends_leaves_consumers_and_the_next_finds_them(site: Site) -> None:
    async with site.fleet() as first:
        await scale(first, site, [0, 1])
    before = site.of(0).id
    async with site.fleet() as second:
        await second.reconcile(slots(0))
        await until(lambda: site.ids() == {before})
    assert site.fake.running() == names(0)


async def test_a_detached_fleet_repairs_nothing(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0])
        fleet.detach()
        site.fake.containers.clear()
        calls = len(site.fake.calls)
        await fleet._reconcile()
        assert len(site.fake.calls) == calls
        assert not site.ids()


async def test_changed_settings_renew_containers_one_by_one(site: Site) -> None:
    async with site.fleet() as first:
        await scale(first, site, [0, 1])
    old = site.ids()
    site.fake.stops_when_asked = False
    async with site.fleet(replace(SPEC, environment={"A": "2"})) as second:
        await second.reconcile(slots(0, 1))
        await until(lambda: len(second._retirements) > 0)
        assert len(second._retirements) == 1
        site.fake.stops_when_asked = True
        await until(lambda: not old & site.ids() and site.fake.running() == names(0, 1))


async def test_a_renewal_stops_at_an_image_that_runs_and_never_sends_a_hello(site: Site) -> None:
    async with site.fleet() as first:
        await scale(first, site, [0, 1, 2])
    old = site.ids()

    def silence_new() -> bool:
        site.silent.update(site.ids() - old)
        return bool(site.silent)

    async with site.fleet(replace(SPEC, environment={"A": "2"})) as second:
        await second.reconcile(slots(0, 1, 2))
        await until(silence_new)
        await asyncio.sleep(1.0)  # ten times what a container needs to count as steady
        assert len(site.ids() & old) == 2
        assert len(site.fake.running()) == 3
        site.silent.clear()  # it was only slow
        await until(lambda: not old & site.ids() and site.fake.running() == names(0, 1, 2))


async def test_a_newer_image_of_the_same_name_renews_containers(site: Site) -> None:
    async with site.fleet() as first:
        await scale(first, site, [0])
    old = site.ids()
    site.fake.images["consumer:1"] = "sha256:2"
    async with site.fleet() as second:
        await second.reconcile(slots(0))
        await until(lambda: not old & site.ids() and site.fake.running() == names(0))


async def test_a_container_that_does_not_end_in_time_is_removed(site: Site) -> None:
    site.fake.stops_when_asked = False
    async with site.fleet(replace(SPEC, grace_s=0.3)) as fleet:
        await scale(fleet, site, [0])
        await fleet.reconcile(set())
        await until(lambda: not site.ids())
    assert site.fake.calls.count("kill") >= 2  # a starting process misses the first


async def test_a_slot_desired_again_waits_until_its_old_container_is_removed(site: Site) -> None:
    site.fake.stops_when_asked = False
    async with site.fleet(replace(SPEC, grace_s=0.5)) as fleet:
        await scale(fleet, site, [0])
        before = site.of(0).id
        await fleet.reconcile(set())
        await fleet.reconcile(slots(0))
        await until(lambda: not site.gone(0) and site.of(0).id != before)


async def test_a_destroyed_slot_gets_a_new_container_at_once(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0, 1])
        before, other = site.of(0).id, site.of(1).id
        await fleet.destroy(Slot(0))
        await until(lambda: not site.gone(0) and site.fake.running() == names(0, 1))
    assert before not in site.ids()
    assert other in site.ids()


async def test_a_missing_image_is_pulled(site: Site) -> None:
    site.fake.images.clear()
    site.fake.registry["consumer:1"] = "sha256:9"
    async with site.fleet() as fleet:
        await scale(fleet, site, [0, 1])
        assert fleet.refusals == []
    assert site.fake.calls.count("pull") == 1


async def test_a_failed_pull_is_reported_and_running_containers_go_on(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0])
        site.fake.images.clear()
        await fleet.reconcile(slots(0, 1))
        await until(lambda: fleet.refusals != [])
        assert fleet.refusals == ["404: consumer:1: manifest for consumer:1 not found"]
        assert site.fake.running() == names(0)
        site.fake.registry["consumer:1"] = "sha256:9"
        await until(lambda: site.fake.running() == names(0, 1))
        await until(lambda: fleet.refusals == [])


async def test_no_container_is_replaced_while_there_is_no_image(site: Site) -> None:
    async with site.fleet() as first:
        await scale(first, site, [0])
    site.fake.images.clear()
    async with site.fleet(replace(SPEC, environment={"A": "2"})) as second:
        await second.reconcile(slots(0))
        found = await second._list()
        assert second._staleness.stale(found[0]) == "its settings changed"
        assert second._choose_stale({Slot(0): found[0]}, frozenset(slots(0))) == []


async def test_a_slot_that_cannot_start_is_reported_and_the_others_run(site: Site) -> None:
    site.fake.add_container("here-g-consumer-0", {"Labels": {}})  # not this system's
    async with site.fleet() as fleet:
        with pytest.raises(EngineRefused, match="409"):
            await fleet.reconcile(slots(0, 1))
        assert site.fake.running() == names(1)
        assert "already in use" in fleet.refusals[0]
        site.fake.containers = {c.id: c for c in site.fake.containers.values() if c.labels}
        await until(lambda: site.fake.running() == names(0, 1))
        await until(lambda: fleet.refusals == [])


async def test_a_missing_network_is_reported_until_it_exists(site: Site) -> None:
    site.fake.failing["start"] = (404, "network net not found")
    async with site.fleet() as fleet:
        with pytest.raises(EngineRefused, match="network net not found"):
            await fleet.reconcile(slots(0))
        assert fleet.refusals == ["here-g-consumer-0: 404: network net not found"]
        site.fake.failing.clear()
        await until(lambda: site.fake.running() == names(0))
        await until(lambda: fleet.refusals == [])


async def test_a_crash_is_reported_with_its_exit_code_until_the_recovery(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0, 1])
        crashed = site.of(0)
        crashed.exit_code, crashed.restarts = 2, 3
        crashed.state = "restarting"
        await until(lambda: fleet.troubles != {})
        assert fleet.troubles == {0: "here-g-consumer-0 ended with 2, 3 restarts"}
        samples = {sample.name: sample.value for sample in fleet.samples()}
        assert samples["binwright_slots_wanted"] == 2
        assert samples["binwright_slot_trouble"] == 1
        crashed.state = "running"
        await until(lambda: fleet.troubles == {})


async def test_the_fleet_reconciles_after_an_outage_of_the_engine(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0])
        site.fake.failing["json"] = (500, "away")
        site.fake.containers.clear()
        with pytest.raises(EngineRefused, match="500: away"):
            await fleet.reconcile(slots(0, 1))
        site.fake.failing.clear()
        await until(lambda: site.fake.running() == names(0, 1))


async def test_reconciling_times_out_if_the_engine_does_not_respond() -> None:
    async with fake_engine() as (fake, path), open_engine(path, 0.3) as engine:
        fake.silent.add("json")
        fleet = DockerFleet(engine, SPEC, SLOTS, TIMING)
        with pytest.raises(EngineUnavailable, match="no response in time"):
            await fleet.reconcile(slots(0))


async def test_a_slot_beyond_the_fleet_is_refused(site: Site) -> None:
    async with site.fleet() as fleet:
        with pytest.raises(ExternalError, match=r"\[4\] are beyond the 4"):
            await fleet.reconcile(slots(0, SLOTS))
        assert not site.ids()


async def test_containers_of_another_project_are_left_alone(site: Site) -> None:
    async with site.fleet() as fleet, site.fleet(replace(SPEC, project="there")) as other:
        await other.reconcile(slots(0))
        await fleet.reconcile(slots(0))
        await fleet.reconcile(set())
        await until(lambda: site.fake.running() == ["there-g-consumer-0"])


async def test_close_leaves_no_container(site: Site) -> None:
    async with site.fleet() as fleet:
        await scale(fleet, site, [0, 1])
        await fleet.close()
    assert not site.ids()


async def test_concurrent_rounds_create_one_container_for_a_slot(site: Site) -> None:
    async with site.fleet() as fleet:
        await asyncio.gather(*(fleet.reconcile(slots(0, 1)) for _ in range(3)))
        assert site.fake.running() == names(0, 1)
    assert site.fake.calls.count("create") == 2
