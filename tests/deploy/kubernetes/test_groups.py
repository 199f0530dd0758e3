"""ConsumerGroup objects: checked by the API server, led by one controller, with a status.

Kafka is a fake here, and no pod sends a Hello: these tests cover the way from an object to
Deployments, and back to its status. `test_whole` runs the whole system.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import yaml
from tests.deploy.kubernetes.sandbox import ROOT, Sandbox, until

from binwright.controller.group_objects.groups import Groups
from binwright.controller.settings import ControllerProgramSettings
from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.metrics_topic import run_measurements
from binwright.kubernetes.objects import Obj
from binwright.protocol import wire
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.loading import load
from binwright.testing.control_topics import FakeControlTopics, FakeReader

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

CRD = ROOT / "deploy" / "base" / "consumergroups.yaml"
API = "binwright.dev/v1alpha1"
LIMIT = 1000.0


class GroupsHarness:
    """A namespace with the CRD, and a controller that leads it."""

    def __init__(self, sandbox: Sandbox, bus: FakeControlTopics, groups: Groups) -> None:
        self.sandbox, self.bus, self.groups = sandbox, bus, groups
        self._passes = 0

    def is_led(self, name: str) -> bool:
        return self.groups.is_active(self.sandbox.namespace, name)

    @property
    def path(self) -> str:
        return f"/apis/{API}/namespaces/{self.sandbox.namespace}/consumergroups"

    async def apply(self, name: str, **spec: Any) -> None:
        await self.sandbox.plane.kubectl(
            "apply", "-f", "-", stdin=yaml.safe_dump(self._object(name, spec))
        )

    async def refused(self, name: str, **spec: Any) -> str:
        """Return why the API server refuses the object."""
        with pytest.raises(AssertionError) as refused:
            await self.apply(name, **spec)
        return str(refused.value)

    def _object(self, name: str, spec: Obj) -> Obj:
        meta = {"name": name, "namespace": self.sandbox.namespace}
        return {"apiVersion": API, "kind": "ConsumerGroup", "metadata": meta, "spec": spec}

    async def status(self, name: str) -> Obj:
        found: Obj = (await self.sandbox.api.get(f"{self.path}/{name}")).get("status", {})
        return found

    async def condition(self, name: str, kind: str) -> str:
        found = await self._condition(name, kind)
        return f"{found['status']} {found['reason']}" if found else ""

    async def message(self, name: str, kind: str) -> str:
        found: str = (await self._condition(name, kind))["message"]
        return found

    async def _condition(self, name: str, kind: str) -> Obj:
        found = (await self.status(name)).get("conditions", ())
        return next((c for c in found if c["type"] == kind), {})

    async def measure(self, topic: str, *rates: float) -> None:
        """Publish the write rates of the topic's partitions, bytes/s."""
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
        measurement = Measurement(
            topic=topic,
            at_ms=0,
            monitor="m",
            number=self._passes,
            interval_s=1.0,
            count=len(rates),
            partitions=partitions,
        )
        await self.bus.publish(
            "binwright.metrics", 0, wire.key(measurement), wire.encode(measurement)
        )


def settings_for(sandbox: Sandbox) -> ControllerProgramSettings:
    return load(
        ControllerProgramSettings,
        controller={"fleet": "kubernetes", "limit_bytes_per_s": LIMIT, "replan_interval_s": 1.0},
        kubernetes={
            "groups": True,
            "namespace": sandbox.namespace,
            "kubeconfig": sandbox.kubeconfig,
            "sinks": ["s3a://lake"],
        },
    )


@pytest_asyncio.fixture(loop_scope="session")
async def harness(sandbox: Sandbox) -> AsyncIterator[GroupsHarness]:
    await sandbox.plane.kubectl("apply", "-f", str(CRD))
    name = "crd/consumergroups.binwright.dev"
    await sandbox.plane.kubectl("wait", "--for=condition=Established", name)
    bus = FakeControlTopics()
    await bus.ensure("binwright.metrics", 1, METRICS_CONFIG)
    async with run_measurements(bus, "binwright.metrics") as measurements:
        groups = Groups([await sandbox.cluster()], bus, measurements, settings_for(sandbox))
        async with background_tasks(groups.follow()), background_tasks(groups.lead()):
            yield GroupsHarness(sandbox, bus, groups)


async def test_an_object_gets_a_plan_and_owns_its_consumers(
    harness: GroupsHarness,
) -> None:
    await harness.apply("orders", topics=["orders"], sink={"path": "s3a://lake/x"})
    await until(lambda: harness.is_led("orders"))

    async def measured() -> bool:
        await harness.measure("orders", 600.0, 500.0)
        await harness.measure("others", 9_000.0)  # another group's
        return 1 in await harness.sandbox.slots()

    await until(measured)
    found = (await harness.sandbox.deployments())[Slot(1)]
    assert found["metadata"]["ownerReferences"][0]["kind"] == "ConsumerGroup"
    variables = {v["name"]: v.get("value") for v in _container(found)["env"]}
    assert variables["BINWRIGHT_GROUP"] == "orders"
    assert variables["BINWRIGHT_TOPICS"] == '["orders"]'
    assert variables["BINWRIGHT_LAKE__PATH"] == "s3a://lake/x"

    async def in_status() -> bool:
        status = await harness.status("orders")
        return bool(status.get("lastPlan", {}).get("carriedOut")) and status["partitions"] == 2

    await until(in_status)
    assert await harness.condition("orders", "Accepted") == "True SpecHolds"
    assert await harness.condition("orders", "Ready") == "False PartitionsUnread"
    await harness.sandbox.wait_for_event("PlanAccepted", "without a reader")
    shown = await harness.sandbox.plane.kubectl(
        "-n", harness.sandbox.namespace, "get", "consumergroups"
    )
    assert shown.split()[:6] == ["NAME", "MODE", "STATE", "CONSUMERS", "PARTITIONS", "BYTES/S"]

    await harness.sandbox.plane.kubectl("-n", harness.sandbox.namespace, "delete", "cg", "orders")

    async def none_left() -> bool:
        return not await harness.sandbox.slots()

    await until(none_left, 90)  # the garbage collector looks for new kinds every 30 s
    await until(lambda: not harness.is_led("orders"))


def _container(deployment: Obj) -> Obj:
    found: Obj = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


async def test_several_groups_are_led_independently(harness: GroupsHarness) -> None:
    await harness.apply("one", topics=["orders"])
    await harness.apply("two", topics=["clicks"], maxConsumers=1)

    async def both() -> bool:
        await harness.measure("orders", 600.0, 500.0)
        await harness.measure("clicks", 600.0, 500.0)
        found = (await harness.sandbox.api.get(harness.sandbox.path("deployments")))["items"]
        names = {d["metadata"]["name"] for d in found}
        return {"one-consumer-0", "one-consumer-1", "two-consumer-0"} <= names

    await until(both)
    found = (await harness.sandbox.api.get(harness.sandbox.path("deployments")))["items"]
    assert "two-consumer-1" not in {d["metadata"]["name"] for d in found}


async def test_an_unexpected_error_in_one_group_ends_no_other(
    harness: GroupsHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, faults = harness.bus.reader, ["the first time", "the second time"]

    async def faulty(topic: str, partition: int, offset: int) -> FakeReader:
        if topic == "odd.metadata" and faults:
            raise RuntimeError(faults.pop(0))
        return await reader(topic, partition, offset)

    monkeypatch.setattr(harness.bus, "reader", faulty)
    await harness.apply("even", topics=["clicks"])
    await harness.apply("odd", topics=["orders"])
    await harness.sandbox.wait_for_event("ControllerFault", "RuntimeError: the first time")

    async def both() -> bool:
        await harness.measure("orders", 600.0)
        await harness.measure("clicks", 600.0)
        found = (await harness.sandbox.api.get(harness.sandbox.path("deployments")))["items"]
        return {"even-consumer-0", "odd-consumer-0"} <= {d["metadata"]["name"] for d in found}

    await until(both)
    assert not faults

    async def accepted() -> bool:
        return await harness.condition("odd", "Accepted") == "True SpecHolds"

    await until(accepted)


async def test_of_two_objects_for_one_group_the_older_is_led(harness: GroupsHarness) -> None:
    await harness.apply("older", topics=["orders"], group="same")
    await until(lambda: harness.is_led("older"))
    await asyncio.sleep(1.1)  # creation times have whole seconds
    await harness.apply("newer", topics=["orders"], group="same")

    async def refused() -> bool:
        return await harness.condition("newer", "Accepted") == "False GroupTaken"

    await until(refused)
    await harness.sandbox.plane.kubectl("-n", harness.sandbox.namespace, "delete", "cg", "older")

    async def accepted() -> bool:
        return await harness.condition("newer", "Accepted") == "True SpecHolds"

    await until(accepted)


async def test_a_spec_that_only_the_controller_can_check_is_refused_in_the_status(
    harness: GroupsHarness,
) -> None:
    await harness.apply("odd", topics=["orders"], packing="magic")

    async def refused() -> bool:
        return await harness.condition("odd", "Accepted") == "False SpecRefused"

    await until(refused)
    await harness.sandbox.wait_for_event("SpecRefused", "magic")


async def test_an_object_s_broken_template_is_shown_in_its_status(harness: GroupsHarness) -> None:
    await harness.apply(
        "own", topics=["orders"], template={"spec": {"containers": [{"name": "x"}]}}
    )

    async def refused() -> bool:
        await harness.measure("orders", 600.0)
        return await harness.condition("own", "Healthy") == "False Refused"

    await until(refused)
    await harness.sandbox.wait_for_event("TemplateRefused", "other than one named `consumer`")


async def test_the_api_server_refuses_invalid_specs(harness: GroupsHarness) -> None:
    assert "topics or topicPatterns must be named" in await harness.refused("bad")
    assert "topicPatterns" in await harness.refused("bad", topicPatterns=[])
    assert "must not exceed" in await harness.refused(
        "bad", topics=["a"], limitBytesPerSecond=10, capacityBytesPerSecond=20
    )
    assert "Unsupported value" in await harness.refused("bad", topics=["a"], mode="perhaps")
    assert "minConsumers must not exceed" in await harness.refused(
        "bad", topics=["a"], minConsumers=3, maxConsumers=2
    )
    assert "slots are numbers" in await harness.refused("bad", topics=["a"], slotLimits={"one": 5})
    assert "unknown field" in await harness.refused("bad", topics=["a"], topic="b")
    for control, fault in (
        ({"frozenHours": ["late"]}, "frozenHours"),
        ({"movesAtATime": 0}, "movesAtATime"),
        ({"pins": [{"topic": "a"}]}, "consumer: Required value"),
        ({"moves": 1}, "unknown field"),
    ):
        assert fault in await harness.refused("bad", topics=["a"], control=control)
    table = {"topics": ["a"], "format": "json", "columns": "id BIGINT"}
    assert "Unsupported value" in await harness.refused(
        "bad", topics=["a"], tables=[table | {"format": "xml"}]
    )
    await harness.apply(
        "good", topics=["a"], group="g", slotLimits={"0": 5, "1": 10.5}, tables=[table]
    )
    assert "group cannot be changed" in await harness.refused("good", topics=["a"], group="h")
