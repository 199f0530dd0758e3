"""What a namespace may have: what is over is refused or capped, and no other one notices."""

import asyncio
import json
from collections.abc import Iterator, Mapping

import pytest
from tests.deploy.kubernetes.sandbox import Sandbox, until

from binwright.controller.group_objects.groups import Groups
from binwright.kubernetes.limits import LimitSettings
from binwright.kubernetes.objects import Obj

from .test_groups import API, GroupsHarness
from .test_namespaces import _crd as crd
from .test_namespaces import add_namespace, controller, two_consumers

pytestmark = [pytest.mark.kubernetes, pytest.mark.asyncio(loop_scope="session")]

__all__ = ["crd"]  # a fixture
FLOOD = 60


def flood(namespace: str) -> Iterator[Obj]:
    for number in range(FLOOD):
        meta = {"name": f"flood-{number:02}", "namespace": namespace}
        spec = {"topics": [f"flood-{number:02}"]}
        yield {"apiVersion": API, "kind": "ConsumerGroup", "metadata": meta, "spec": spec}


def over(groups: Groups, namespace: str) -> Mapping[str, float]:
    """Return what the metrics have of a namespace beyond its limits."""
    found = {}
    for sample in groups.samples():
        if sample.labels.get("namespace") == namespace:
            assert isinstance(sample.value, int)
            found[sample.labels["limit"]] = sample.value
    return found


@pytest.mark.nightly
async def test_a_flood_of_objects_in_one_namespace_is_refused_and_another_goes_on(
    sandbox: Sandbox,
) -> None:
    away = await add_namespace(sandbox, "away")
    limits = LimitSettings(groups=2)
    async with controller(sandbox, sandbox.namespace, away.namespace, limits=limits) as made:
        bus, groups = made
        home, far = GroupsHarness(sandbox, bus, groups), GroupsHarness(away, bus, groups)
        await far.apply("oldest", topics=["oldest"])
        await until(lambda: far.is_led("oldest"))
        await asyncio.sleep(1.1)  # creation times have whole seconds
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*flood(away.namespace)]})
        await away.plane.kubectl("create", "-f", "-", stdin=text)
        await home.apply("orders", topics=["orders"])
        await two_consumers(home, "orders")
        await two_consumers(far, "oldest")

        async def refused() -> bool:
            listed = (await away.api.get(far.path))["items"]
            kinds = [
                next(c["reason"] for c in each["status"]["conditions"] if c["type"] == "Accepted")
                for each in listed
                if each.get("status", {}).get("conditions")
            ]
            return sorted(kinds) == ["OverLimit"] * (FLOOD - 1) + ["SpecHolds"] * 2

        await until(refused)
        message = await far.message("flood-59", "Accepted")
        assert f"namespace {away.namespace} may have 2 groups (kubernetes.limits.groups" in message
        await away.wait_for_event("OverLimit", "may have 2 groups")
        assert over(groups, away.namespace)["groups"] == FLOOD - 1
        assert over(groups, sandbox.namespace)["groups"] == 0

        names = ["oldest", "flood-00", "flood-01"][:1]
        await away.plane.kubectl("-n", away.namespace, "delete", "cg", *names)

        async def next_one_is_led() -> bool:
            listed = (await away.api.get(far.path))["items"]
            states = [each["status"].get("state") for each in listed]
            return len(states) - states.count("Refused") == 2

        await until(next_one_is_led)


@pytest.mark.nightly
async def test_topics_beyond_the_limit_are_not_read_and_the_older_group_has_its_own(
    sandbox: Sandbox,
) -> None:
    limits = LimitSettings(topics=3, partitions=100)
    async with controller(sandbox, sandbox.namespace, limits=limits) as (bus, groups):
        home = GroupsHarness(sandbox, bus, groups)
        await home.apply("old", topicPatterns=["old-.*"])
        await until(lambda: home.is_led("old"))
        await asyncio.sleep(1.1)  # creation times have whole seconds
        await home.apply("young", topicPatterns=["young-.*"])

        async def read(old: int, young: int) -> bool:
            """Whether the groups read so many partitions of 2 old topics and 40 young ones."""
            for number in range(40):
                await home.measure(f"young-{number:02}", 1.0, 1.0)
            for number in range(2):
                await home.measure(f"old-{number}", 1.0, 1.0)
            has = [(await home.status(name)).get("partitions") for name in ("old", "young")]
            return has == [old, young]

        await until(lambda: read(4, 2))
        assert await home.condition("old", "WithinLimits") == "True Within"
        assert await home.condition("young", "WithinLimits") == "False OverLimit"
        message = await home.message("young", "WithinLimits")
        assert "78 partitions of 39 topics are not read" in message
        assert "may have 3 topics (kubernetes.limits.topics" in message
        await sandbox.wait_for_event("OverLimit", "topics are not read")
        assert over(groups, sandbox.namespace) == {
            "groups": 0,
            "consumers": 0,
            "topics": 39,
            "partitions": 78,
        }
        await sandbox.plane.kubectl("-n", sandbox.namespace, "delete", "cg", "old")
        await until(lambda: read_by_young(home, 6))


async def read_by_young(home: GroupsHarness, partitions: int) -> bool:
    for number in range(40):
        await home.measure(f"young-{number:02}", 1.0, 1.0)
    return (await home.status("young")).get("partitions") == partitions


@pytest.mark.nightly
async def test_the_younger_group_has_only_the_consumers_that_are_left(sandbox: Sandbox) -> None:
    limits = LimitSettings(consumers=3)
    async with controller(sandbox, sandbox.namespace, limits=limits) as (bus, groups):
        home = GroupsHarness(sandbox, bus, groups)
        await home.apply("old", topics=["old"], maxConsumers=2)
        await until(lambda: home.is_led("old"))
        await asyncio.sleep(1.1)  # creation times have whole seconds
        await home.apply("young", topics=["young"], maxConsumers=2)

        async def names() -> set[str]:
            found = (await sandbox.api.get(sandbox.path("deployments")))["items"]
            return {each["metadata"]["name"] for each in found}

        async def planned() -> bool:
            await home.measure("old", 600.0, 500.0)
            await home.measure("young", 600.0, 500.0)
            wanted = {"old-consumer-0", "old-consumer-1", "young-consumer-0"}
            return wanted <= await names()

        await until(planned)
        assert await home.condition("young", "WithinLimits") == "False OverLimit"
        assert "at most 1 of 2 consumers" in await home.message("young", "WithinLimits")
        assert await home.condition("old", "WithinLimits") == "True Within"
        assert "young-consumer-1" not in await names()


async def test_a_group_that_is_named_like_topics_of_others_is_refused_and_others_go_on(
    sandbox: Sandbox,
) -> None:
    async with controller(sandbox, sandbox.namespace) as (bus, groups):
        home = GroupsHarness(sandbox, bus, groups)
        await bus.ensure("payments.landing", 3, {})
        await bus.publish("payments.landing", 1, b"a customer", b"a payment")
        await home.apply("payments", topics=["orders"])
        await home.apply("orders", topics=["orders"])

        async def refused() -> bool:
            return await home.condition("payments", "Accepted") == "False TopicRefused"

        await until(refused)
        assert "payments.landing has records that are not" in await home.message(
            "payments", "Accepted"
        )
        assert await bus.partitions("payments.landing") == 3
        await two_consumers(home, "orders")
