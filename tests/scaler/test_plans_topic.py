"""Where plans are published."""

from binwright.protocol.group_plans import GroupPlan
from binwright.scaler.plans_topic import last_plans, plan_partition, publish_plan
from binwright.testing.control_topics import FakeControlTopics

TOPIC = "binwright.plans"
PLAN = GroupPlan(group="shop", generation=3, at_ms=0, valid_ms=1, bins=(), reason="even")


def test_a_group_has_the_partition_that_kafkas_producers_choose() -> None:
    """By Java: `Utils.toPositive(Utils.murmur2("21".getBytes())) % 8`, and so on."""
    known = {"21": -973932308, "foobar": -790332482, "abc": 479470107}
    assert {group: plan_partition(group, 8) for group in known} == {
        group: (hashed & 0x7FFFFFFF) % 8 for group, hashed in known.items()
    }


async def published() -> FakeControlTopics:
    bus = FakeControlTopics({TOPIC: 8})
    await publish_plan(bus, TOPIC, PLAN)
    return bus


async def test_the_last_plan_of_a_group_is_found() -> None:
    assert await last_plans(await published(), TOPIC, {"shop", "other"}) == {"shop": PLAN}


async def test_a_record_that_is_no_plan_is_skipped() -> None:
    bus = await published()
    for partition in range(8):
        await bus.publish(TOPIC, partition, b"shop", b"{}")
    assert await last_plans(bus, TOPIC, {"shop"}) == {"shop": PLAN}


async def test_a_plan_that_was_ended_is_none() -> None:
    bus = await published()
    await bus.remove(TOPIC, plan_partition("shop", 8), b"shop")
    assert await last_plans(bus, TOPIC, {"shop"}) == {}
