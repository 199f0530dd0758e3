"""ConsumerGroup objects: checked by the API server, ruled by one controller, told in their status.

Kafka is a fake here, and no pod ever says Hello: what is tested is the way from an object to
orders, and back to its status. `test_whole` runs the rest for real.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import yaml

from binwright.controller.kube.api import Obj
from binwright.controller.kube.groups import Groups
from binwright.controller.measurements import measuring
from binwright.core import wire
from binwright.core.messages import Measurement, PartitionRate
from binwright.core.model import BytesPerSecond, Slot
from binwright.shell.letters import METRICS_CONFIG
from binwright.shell.run import meanwhile
from binwright.shell.settings import Settings, load_settings
from binwright.testing.bus import FakeBus, FakeReader

from .site import ROOT, Site, until

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

CRD = ROOT / "deploy" / "base" / "consumergroups.yaml"
API = "binwright.dev/v1alpha1"
LIMIT = 1000.0


class Board:
    """A namespace with the CRD, and a controller that leads it."""

    def __init__(self, site: Site, bus: FakeBus, groups: Groups) -> None:
        self.site, self.bus, self.groups = site, bus, groups
        self._passes = 0

    def ruled(self, name: str) -> bool:
        return (self.site.namespace, name) in self.groups._ruled

    @property
    def path(self) -> str:
        return f"/apis/{API}/namespaces/{self.site.namespace}/consumergroups"

    async def make(self, name: str, **spec: Any) -> None:
        await self.site.plane.kubectl(
            "apply", "-f", "-", stdin=yaml.safe_dump(self._object(name, spec))
        )

    async def refused(self, name: str, **spec: Any) -> str:
        """Return why the API server does not take the object."""
        with pytest.raises(AssertionError) as refused:
            await self.make(name, **spec)
        return str(refused.value)

    def _object(self, name: str, spec: Obj) -> Obj:
        meta = {"name": name, "namespace": self.site.namespace}
        return {"apiVersion": API, "kind": "ConsumerGroup", "metadata": meta, "spec": spec}

    async def status(self, name: str) -> Obj:
        found: Obj = (await self.site.api.get(f"{self.path}/{name}")).get("status", {})
        return found

    async def condition(self, name: str, kind: str) -> str:
        found = (await self.status(name)).get("conditions", ())
        return next((f"{c['status']} {c['reason']}" for c in found if c["type"] == kind), "")

    async def measure(self, topic: str, *rates: float) -> None:
        """Say how fast the topic's partitions are written."""
        self._passes += 1
        partitions = tuple(
            PartitionRate(
                partition=number,
                rate=BytesPerSecond(rate),
                window_s=30,
                end=10,
                start=0,
                bytes_per_record=None,
            )
            for number, rate in enumerate(rates)
        )
        said = Measurement(
            topic=topic,
            at_ms=0,
            monitor="m",
            number=self._passes,
            interval_s=1.0,
            count=len(rates),
            partitions=partitions,
        )
        await self.bus.publish("binwright.metrics", 0, wire.key(said), wire.encode(said))


def settings_for(site: Site) -> Settings:
    return load_settings(
        controller={"fleet": "kubernetes", "limit_bytes_per_s": LIMIT, "look_again_s": 1.0},
        kubernetes={"groups": True, "namespace": site.namespace, "kubeconfig": site.kubeconfig},
    )


@pytest_asyncio.fixture(loop_scope="session")
async def board(site: Site) -> AsyncIterator[Board]:
    await site.plane.kubectl("apply", "-f", str(CRD))
    name = "crd/consumergroups.binwright.dev"
    await site.plane.kubectl("wait", "--for=condition=Established", name)
    bus = FakeBus()
    await bus.ensure("binwright.metrics", 1, METRICS_CONFIG)
    async with measuring(bus, "binwright.metrics") as measurements:
        groups = Groups([await site.cluster()], bus, measurements, settings_for(site))
        async with meanwhile(groups.follow()), meanwhile(groups.rule()):
            yield Board(site, bus, groups)


async def test_an_object_becomes_a_plan_and_its_consumers_belong_to_it(board: Board) -> None:
    await board.make("orders", topics=["orders"], sink={"path": "s3a://lake/x"})
    await until(lambda: board.ruled("orders"))

    async def measured() -> bool:
        await board.measure("orders", 600.0, 500.0)
        await board.measure("others", 9_000.0)  # another group's
        return 1 in await board.site.slots()

    await until(measured)
    found = (await board.site.deployments())[Slot(1)]
    assert found["metadata"]["ownerReferences"][0]["kind"] == "ConsumerGroup"
    told = {v["name"]: v.get("value") for v in _container(found)["env"]}
    assert told["BINWRIGHT_GROUP"] == "orders"
    assert told["BINWRIGHT_TOPICS"] == '["orders"]'
    assert told["BINWRIGHT_LAKE__PATH"] == "s3a://lake/x"

    async def in_status() -> bool:
        status = await board.status("orders")
        return bool(status.get("lastPlan", {}).get("carriedOut")) and status["partitions"] == 2

    await until(in_status)
    assert await board.condition("orders", "Accepted") == "True SpecHolds"
    assert await board.condition("orders", "Ready") == "False PartitionsUnread"
    await board.site.hear("PlanAccepted", "without a reader")
    shown = await board.site.plane.kubectl("-n", board.site.namespace, "get", "consumergroups")
    assert shown.split()[:6] == ["NAME", "MODE", "STATE", "CONSUMERS", "PARTITIONS", "BYTES/S"]

    await board.site.plane.kubectl("-n", board.site.namespace, "delete", "cg", "orders")

    async def none_left() -> bool:
        return not await board.site.slots()

    await until(none_left, 90)  # the garbage collector looks for new kinds every 30 s
    await until(lambda: not board.ruled("orders"))


def _container(deployment: Obj) -> Obj:
    found: Obj = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


@pytest.mark.parametrize("spec", [{"mode": "observe"}, {"pause": True}])
async def test_who_may_not_act_only_tells(board: Board, spec: Obj) -> None:
    await board.make("watched", topics=["orders"], **spec)

    async def proposed() -> bool:
        await board.measure("orders", 600.0, 500.0)
        return await board.site.told("PlanProposed", "without a reader")

    await until(proposed)
    assert not await board.site.slots()
    await board.make("watched", topics=["orders"], mode="act", pause=False)

    async def acted() -> bool:
        await board.measure("orders", 600.0, 500.0)
        return {0, 1} <= await board.site.slots()

    await until(acted)


async def test_several_groups_have_a_machine_each(board: Board) -> None:
    await board.make("one", topics=["orders"])
    await board.make("two", topics=["clicks"], maxConsumers=1)

    async def both() -> bool:
        await board.measure("orders", 600.0, 500.0)
        await board.measure("clicks", 600.0, 500.0)
        found = (await board.site.api.get(board.site.path("deployments")))["items"]
        names = {d["metadata"]["name"] for d in found}
        return {"one-consumer-0", "one-consumer-1", "two-consumer-0"} <= names

    await until(both)
    found = (await board.site.api.get(board.site.path("deployments")))["items"]
    assert "two-consumer-1" not in {d["metadata"]["name"] for d in found}


async def test_a_fault_of_ours_in_one_group_ends_no_other(
    board: Board, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, faults = board.bus.reader, ["the first time", "the second time"]

    async def faulty(topic: str, partition: int, offset: int) -> FakeReader:
        if topic == "odd.metadata" and faults:
            raise RuntimeError(faults.pop(0))
        return await reader(topic, partition, offset)

    monkeypatch.setattr(board.bus, "reader", faulty)
    await board.make("even", topics=["clicks"])
    await board.make("odd", topics=["orders"])
    await board.site.hear("ControllerFault", "RuntimeError: the first time")

    async def both() -> bool:
        await board.measure("orders", 600.0)
        await board.measure("clicks", 600.0)
        found = (await board.site.api.get(board.site.path("deployments")))["items"]
        return {"even-consumer-0", "odd-consumer-0"} <= {d["metadata"]["name"] for d in found}

    await until(both)
    assert not faults

    async def accepted() -> bool:
        return await board.condition("odd", "Accepted") == "True SpecHolds"

    await until(accepted)


async def test_of_two_objects_for_one_group_the_older_is_ruled(board: Board) -> None:
    await board.make("older", topics=["orders"], group="same")
    await until(lambda: board.ruled("older"))
    await asyncio.sleep(1.1)  # creation times have whole seconds
    await board.make("newer", topics=["orders"], group="same")

    async def refused() -> bool:
        return await board.condition("newer", "Accepted") == "False GroupTaken"

    await until(refused)
    await board.site.plane.kubectl("-n", board.site.namespace, "delete", "cg", "older")

    async def accepted() -> bool:
        return await board.condition("newer", "Accepted") == "True SpecHolds"

    await until(accepted)


async def test_a_spec_that_only_the_controller_can_judge_is_refused_in_the_status(
    board: Board,
) -> None:
    await board.make("odd", topics=["orders"], packing="magic")

    async def refused() -> bool:
        return await board.condition("odd", "Accepted") == "False SpecRefused"

    await until(refused)
    await board.site.hear("SpecRefused", "magic")


async def test_a_group_takes_topics_by_pattern(board: Board) -> None:
    await board.make("many", topicPatterns=["or.*", "cl.*"])

    async def planned() -> bool:
        for topic in ("orders", "clicks", "others", "x.metadata"):
            await board.measure(topic, 100.0)
        return (await board.status("many")).get("partitions") == 2

    await until(planned)
    await board.make("odd", topicPatterns=["or.*", "("])

    async def refused() -> bool:
        return await board.condition("odd", "Accepted") == "False SpecRefused"

    await until(refused)
    await board.site.hear("SpecRefused", "topicPatterns.1")


async def test_a_broken_template_of_its_own_is_told_in_the_status(board: Board) -> None:
    await board.make("own", topics=["orders"], template={"spec": {"containers": [{"name": "x"}]}})

    async def told() -> bool:
        await board.measure("orders", 600.0)
        return await board.condition("own", "Healthy") == "False Refused"

    await until(told)
    await board.site.hear("TemplateRefused", "must be named `consumer`")


async def test_the_api_server_refuses_what_cannot_be(board: Board) -> None:
    assert "topics or topicPatterns must be named" in await board.refused("bad")
    assert "topicPatterns" in await board.refused("bad", topicPatterns=[])
    assert "must not exceed" in await board.refused(
        "bad", topics=["a"], limitBytesPerSecond=10, capacityBytesPerSecond=20
    )
    assert "Unsupported value" in await board.refused("bad", topics=["a"], mode="perhaps")
    assert "minConsumers must not exceed" in await board.refused(
        "bad", topics=["a"], minConsumers=3, maxConsumers=2
    )
    assert "slots are numbers" in await board.refused("bad", topics=["a"], slotLimits={"one": 5})
    assert "unknown field" in await board.refused("bad", topics=["a"], topic="b")
    await board.make("good", topics=["a"], group="g", slotLimits={"0": 5, "1": 10.5})
    assert "group cannot be changed" in await board.refused("good", topics=["a"], group="h")
