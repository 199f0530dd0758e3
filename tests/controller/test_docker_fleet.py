"""The docker fleet against an engine on a socket."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from binwright.controller.docker.engine import Engine, opened
from binwright.controller.docker.shape import Shape
from binwright.controller.fleets.docker import DockerFleet, Pace
from binwright.core.errors import EngineRefused, EngineUnavailable, WorldError
from binwright.core.model import Slot
from binwright.shell.run import meanwhile
from binwright.testing.engine import FakeContainer, FakeEngine, fake_engine

SHAPE = Shape(realm="here", group="g", image="consumer:1", network="net", grace_s=20.0)
PACE = Pace(watch_s=0.02, steady_s=0.1, ask_again_s=0.1, pull_rest_s=0.05)
SLOTS = 4


async def until(condition: Callable[[], bool], patience_s: float = 20.0) -> None:
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - an engine tells nobody
            await asyncio.sleep(0.01)


def slots(*numbers: int) -> set[Slot]:
    return {Slot(n) for n in numbers}


def names(*numbers: int) -> list[str]:
    return [f"here-g-consumer-{n}" for n in numbers]


@dataclass(frozen=True)
class Site:
    fake: FakeEngine
    engine: Engine
    mute: set[str] = field(default_factory=set)  # ids of containers that never say Hello

    @asynccontextmanager
    async def fleet(self, shape: Shape = SHAPE, pace: Pace = PACE) -> AsyncIterator[DockerFleet]:
        made = DockerFleet(self.engine, shape, SLOTS, pace)
        async with meanwhile(made.run(), self._hear(made)):
            yield made

    async def _hear(self, fleet: DockerFleet) -> None:
        """Play the controller, to whom every process says that it is ready, but the mute."""
        since: dict[tuple[Slot, str], float] = {}
        while True:
            there = [(slot, self.of(slot)) for slot in range(SLOTS) if not self.gone(slot)]
            now = asyncio.get_running_loop().time()
            running = [(Slot(slot), c.id) for slot, c in there if c.state == "running"]
            since = {each: since.get(each, now) for each in running if each[1] not in self.mute}
            fleet.notice({slot: at for (slot, _), at in since.items()})
            await asyncio.sleep(0.01)

    def of(self, slot: int) -> FakeContainer:
        found = self.fake.named(names(slot)[0])
        assert found
        return found

    def gone(self, slot: int) -> bool:
        return self.fake.named(names(slot)[0]) is None

    def ids(self) -> set[str]:
        return set(self.fake.containers)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with fake_engine() as (fake, path), opened(path, 20.0) as engine:
        fake.images["consumer:1"] = "sha256:1"
        yield Site(fake, engine)


async def grown(fleet: DockerFleet, site: Site, wanted: Collection[int]) -> None:
    await fleet.reconcile(slots(*wanted))
    await until(lambda: site.fake.running() == names(*sorted(wanted)))


async def test_what_is_desired_runs_and_what_is_not_is_gone(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0, 1, 2])
        await fleet.reconcile(slots(1))
        await until(lambda: len(site.fake.containers) == 1)
        assert site.fake.running() == names(1)


async def test_a_container_is_made_as_the_settings_say(site: Site) -> None:
    shape = replace(
        SHAPE,
        volumes=("lake:/lake",),
        environment={"A": "1"},
        memory_bytes=300_000_000,
        cpus=0.5,
    )
    async with site.fleet(shape) as fleet:
        await grown(fleet, site, [3])
    made = site.of(3).made_from
    host: dict[str, Any] = made["HostConfig"]
    assert (made["Image"], made["Cmd"], made["Env"]) == ("consumer:1", ["--slot", "3"], ["A=1"])
    assert made["Labels"]["binwright.dev/slot"] == "3"
    assert (host["NetworkMode"], host["Binds"]) == ("net", ["lake:/lake"])
    assert (host["Memory"], host["NanoCpus"]) == (300_000_000, 500_000_000)
    assert host["RestartPolicy"] == {"Name": "unless-stopped"}
    assert host["ReadonlyRootfs"]
    assert host["CapDrop"] == ["ALL"]


async def test_a_container_removed_by_hand_comes_back(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0, 1])
        lost = site.of(0).id
        del site.fake.containers[lost]
        await until(lambda: site.fake.running() == names(0, 1))


async def test_one_that_was_stopped_or_paused_by_hand_goes_on(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0, 1])
        before = site.ids()
        site.of(0).state, site.of(1).state = "exited", "paused"
        await until(lambda: site.fake.running() == names(0, 1))
    assert site.ids() == before


async def test_one_that_was_edited_is_made_anew(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0])
        before = site.of(0).id
        site.of(0).networks.clear()
        await until(lambda: not site.gone(0) and site.of(0).id != before)
        await until(lambda: site.fake.running() == names(0))


async def test_edits_are_seen_that_a_list_does_not_tell(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0])
        found = await fleet._listed()
        await fleet._survey.look(found, 100.0)
        site.of(0).made_from["HostConfig"]["Memory"] = 5
        await fleet._survey.look(found, 200.0)
        assert [fleet._survey.stale(each) for each in found] == ["it was edited"]


async def test_a_limit_that_the_engine_left_out_is_no_edit(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0])
        site.of(0).made_from["HostConfig"]["PidsLimit"] = None
        fleet._survey.forget()
        found = await fleet._listed()
        await fleet._survey.look(found, 0.0)
        await fleet._survey.look(found, 100.0)
        assert fleet._survey.stale(found[0]) == ""


async def test_a_controller_that_ends_leaves_consumers_and_the_next_finds_them(site: Site) -> None:
    async with site.fleet() as first:
        await grown(first, site, [0, 1])
    before = site.of(0).id
    async with site.fleet() as second:
        await second.reconcile(slots(0))
        await until(lambda: site.ids() == {before})
    assert site.fake.running() == names(0)


async def test_who_rests_repairs_nothing(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0])
        fleet.rest()
        site.fake.containers.clear()
        asked = len(site.fake.asked)
        await fleet._look()
        assert len(site.fake.asked) == asked
        assert not site.ids()


async def test_changed_settings_renew_containers_one_by_one(site: Site) -> None:
    async with site.fleet() as first:
        await grown(first, site, [0, 1])
    old = site.ids()
    site.fake.obedient = False
    async with site.fleet(replace(SHAPE, environment={"A": "2"})) as second:
        await second.reconcile(slots(0, 1))
        await until(lambda: second._leaving != {})
        assert len(second._leaving) == 1
        site.fake.obedient = True
        await until(lambda: not old & site.ids() and site.fake.running() == names(0, 1))


async def test_a_renewal_stops_at_an_image_that_runs_and_never_says_hello(site: Site) -> None:
    async with site.fleet() as first:
        await grown(first, site, [0, 1, 2])
    old = site.ids()

    def silenced() -> bool:
        site.mute.update(site.ids() - old)
        return bool(site.mute)

    async with site.fleet(replace(SHAPE, environment={"A": "2"})) as second:
        await second.reconcile(slots(0, 1, 2))
        await until(silenced)
        await asyncio.sleep(1.0)  # ten times what a container needs to count as steady
        assert len(site.ids() & old) == 2
        assert len(site.fake.running()) == 3
        site.mute.clear()  # it was only slow
        await until(lambda: not old & site.ids() and site.fake.running() == names(0, 1, 2))


async def test_a_newer_image_of_the_same_name_renews_containers(site: Site) -> None:
    async with site.fleet() as first:
        await grown(first, site, [0])
    old = site.ids()
    site.fake.images["consumer:1"] = "sha256:2"
    async with site.fleet() as second:
        await second.reconcile(slots(0))
        await until(lambda: not old & site.ids() and site.fake.running() == names(0))


async def test_who_does_not_end_in_time_is_removed(site: Site) -> None:
    site.fake.obedient = False
    async with site.fleet(replace(SHAPE, grace_s=0.3)) as fleet:
        await grown(fleet, site, [0])
        await fleet.reconcile(set())
        await until(lambda: not site.ids())
    assert site.fake.asked.count("kill") >= 2  # the first may come before it listens


async def test_a_slot_wanted_again_waits_until_the_old_one_is_gone(site: Site) -> None:
    site.fake.obedient = False
    async with site.fleet(replace(SHAPE, grace_s=0.5)) as fleet:
        await grown(fleet, site, [0])
        before = site.of(0).id
        await fleet.reconcile(set())
        await fleet.reconcile(slots(0))
        await until(lambda: not site.gone(0) and site.of(0).id != before)


async def test_a_dead_slot_is_ended_at_once_and_made_anew(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0, 1])
        before, other = site.of(0).id, site.of(1).id
        await fleet.destroy(Slot(0))
        await until(lambda: not site.gone(0) and site.fake.running() == names(0, 1))
    assert before not in site.ids()
    assert other in site.ids()


async def test_an_image_that_is_missing_is_pulled(site: Site) -> None:
    site.fake.images.clear()
    site.fake.registry["consumer:1"] = "sha256:9"
    async with site.fleet() as fleet:
        await grown(fleet, site, [0, 1])
        assert fleet.refusals == []
    assert site.fake.asked.count("pull") == 1


async def test_a_pull_that_fails_is_told_and_what_runs_goes_on(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0])
        site.fake.images.clear()
        await fleet.reconcile(slots(0, 1))
        await until(lambda: fleet.refusals != [])
        assert fleet.refusals == ["404: consumer:1: manifest for consumer:1 not found"]
        assert site.fake.running() == names(0)
        site.fake.registry["consumer:1"] = "sha256:9"
        await until(lambda: site.fake.running() == names(0, 1))
        await until(lambda: fleet.refusals == [])


async def test_nobody_is_made_anew_while_there_is_no_image(site: Site) -> None:
    async with site.fleet() as first:
        await grown(first, site, [0])
    site.fake.images.clear()
    async with site.fleet(replace(SHAPE, environment={"A": "2"})) as second:
        await second.reconcile(slots(0))
        found = await second._listed()
        assert second._survey.stale(found[0]) == "its settings changed"
        assert second._next({Slot(0): found[0]}, frozenset(slots(0))) == []


async def test_a_slot_that_cannot_start_is_told_and_the_others_run(site: Site) -> None:
    site.fake.put("here-g-consumer-0", {"Labels": {}})  # somebody else's
    async with site.fleet() as fleet:
        with pytest.raises(EngineRefused, match="409"):
            await fleet.reconcile(slots(0, 1))
        assert site.fake.running() == names(1)
        assert "already in use" in fleet.refusals[0]
        site.fake.containers = {c.id: c for c in site.fake.containers.values() if c.labels}
        await until(lambda: site.fake.running() == names(0, 1))
        await until(lambda: fleet.refusals == [])


async def test_a_network_that_is_missing_is_told_until_it_is_there(site: Site) -> None:
    site.fake.failing["start"] = (404, "network net not found")
    async with site.fleet() as fleet:
        with pytest.raises(EngineRefused, match="network net not found"):
            await fleet.reconcile(slots(0))
        assert fleet.refusals == ["here-g-consumer-0: 404: network net not found"]
        site.fake.failing.clear()
        await until(lambda: site.fake.running() == names(0))
        await until(lambda: fleet.refusals == [])


async def test_what_crashes_is_told_with_its_last_words_and_when_it_is_over(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0, 1])
        crashed = site.of(0)
        crashed.exit_code, crashed.restarts = 2, 3
        crashed.state = "restarting"
        await until(lambda: fleet.troubles != {})
        assert fleet.troubles == {0: "here-g-consumer-0 ended with 2, 3 restarts"}
        told = {sample.name: sample.value for sample in fleet.samples()}
        assert told["binwright_slots_wanted"] == 2
        assert told["binwright_slot_trouble"] == 1
        crashed.state = "running"
        await until(lambda: fleet.troubles == {})


async def test_an_engine_that_is_away_is_waited_for(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0])
        site.fake.failing["json"] = (500, "away")
        site.fake.containers.clear()
        with pytest.raises(EngineRefused, match="500: away"):
            await fleet.reconcile(slots(0, 1))
        site.fake.failing.clear()
        await until(lambda: site.fake.running() == names(0, 1))


async def test_an_engine_that_does_not_answer_holds_nobody_up() -> None:
    async with fake_engine() as (fake, path), opened(path, 0.3) as engine:
        fake.silent.add("json")
        fleet = DockerFleet(engine, SHAPE, SLOTS, PACE)
        with pytest.raises(EngineUnavailable, match="no answer in time"):
            await fleet.reconcile(slots(0))


async def test_a_slot_beyond_the_fleet_is_refused(site: Site) -> None:
    async with site.fleet() as fleet:
        with pytest.raises(WorldError, match=r"\[4\] are beyond the 4"):
            await fleet.reconcile(slots(0, SLOTS))
        assert not site.ids()


async def test_another_system_s_containers_are_left_alone(site: Site) -> None:
    async with site.fleet() as fleet, site.fleet(replace(SHAPE, realm="there")) as other:
        await other.reconcile(slots(0))
        await fleet.reconcile(slots(0))
        await fleet.reconcile(set())
        await until(lambda: site.fake.running() == ["there-g-consumer-0"])


async def test_whoever_closes_leaves_nothing(site: Site) -> None:
    async with site.fleet() as fleet:
        await grown(fleet, site, [0, 1])
        await fleet.close()
    assert not site.ids()


async def test_two_looks_at_once_make_one_container(site: Site) -> None:
    async with site.fleet() as fleet:
        await asyncio.gather(*(fleet.reconcile(slots(0, 1)) for _ in range(3)))
        assert site.fake.running() == names(0, 1)
    assert site.fake.asked.count("create") == 2
