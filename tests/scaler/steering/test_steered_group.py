"""One ordinary group, looked at and steered, without Kafka."""

import asyncio
from dataclasses import replace

import pytest
from tests.scaler.steering.fakes import TOPIC, World

from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.assignor.members import Member
from binwright.scaler.groups.descriptions import GroupDescription
from binwright.scaler.groups.plans import plan_partition
from binwright.scaler.steering.last_plans import last_plans


async def test_a_plan_that_is_worth_it_is_published_and_the_group_rebalances() -> None:
    world = World()
    await world.steered().run_pass(10)
    plans = await last_plans(world.bus, TOPIC, {"shop"})
    assert [sorted(p.partition for p in one) for one in plans["shop"].bins] == [
        [1, 2, 3],
        [0],
    ]
    assert world.requests == [("shop", "binwright", "orders")]


async def test_a_second_look_at_a_group_that_has_not_moved_yet_asks_for_nothing() -> None:
    world = World()
    group = world.steered()
    await group.run_pass(10)
    await group.run_pass(10)
    assert len(world.requests) == 1


async def test_a_group_within_a_rebalance_is_left_alone() -> None:
    world = World()
    world.description = GroupDescription("PreparingRebalance", "", world.description.members)
    await world.steered().run_pass(10)
    assert await last_plans(world.bus, TOPIC, {"shop"}) == {}


@pytest.mark.parametrize(
    "description",
    [
        GroupDescription("Empty", "", {}),
        GroupDescription("Stable", "range", {"x": Member(topics=frozenset({"orders"}))}),
    ],
)
async def test_a_group_without_the_assignor_is_left_alone(description: GroupDescription) -> None:
    world = World(description=description)
    await world.steered().run_pass(10)
    assert await last_plans(world.bus, TOPIC, {"shop"}) == {}
    assert world.requests == []


async def test_nothing_is_decided_while_offsets_are_not_known() -> None:
    world = World(fault="its coordinator is not known")
    await world.steered().run_pass(10)
    assert await last_plans(world.bus, TOPIC, {"shop"}) == {}


async def test_nothing_is_decided_while_a_rate_is_not_known() -> None:
    world = World(rates={0: 80.0})
    await world.steered().run_pass(10)
    assert await last_plans(world.bus, TOPIC, {"shop"}) == {}


async def test_an_eager_group_has_the_cost_of_all_its_partitions() -> None:
    """The excess of 30/s spares 1,800 late records in a minute, of 1.5/s only 90."""
    world = World(rates={0: 80.0, 1: 5.5, 2: 6.0, 3: 10.0})
    members = world.description.members
    world.description = GroupDescription("Stable", "binwright-eager", members)
    await world.steered().run_pass(10)
    assert world.requests == []


async def test_a_new_controller_goes_on_from_the_last_plan() -> None:
    world = World()
    await world.steered().run_pass(10)
    plans = await last_plans(world.bus, TOPIC, {"shop", "other"})
    assert plans.keys() == {"shop"}
    assert plans["shop"].generation == 0


async def test_a_record_that_is_no_plan_is_skipped() -> None:
    world = World()
    await world.steered().run_pass(10)
    for partition in range(8):
        await world.bus.publish(TOPIC, partition, b"shop", b"{}")
    assert (await last_plans(world.bus, TOPIC, {"shop"})).keys() == {"shop"}


@pytest.mark.looptime
async def test_a_failure_is_followed_by_the_next_look() -> None:
    world = World()
    steered = world.steered()
    looks = 0

    async def describe(group: str) -> GroupDescription:
        nonlocal looks
        assert group == "shop"
        looks += 1
        if looks == 1:
            raise BrokerUnavailable("no answer in time")
        return world.description

    world.describe = describe  # type: ignore[method-assign]
    running = asyncio.create_task(steered.run(10))
    await asyncio.sleep(15)
    running.cancel()
    await asyncio.wait([running])
    assert (looks, len(world.requests)) == (2, 1)


def subscribed(world: World, *owned: TopicPartition) -> None:
    """Have the second member subscribe to another topic, and read these partitions of it."""
    members = dict(world.description.members)
    topics, reads = frozenset({"orders", "gone"}), members["y"].owned | frozenset(owned)
    members["y"] = replace(members["y"], topics=topics, owned=reads)
    world.description = replace(world.description, members=members)


async def test_a_subscribed_topic_that_does_not_exist_does_not_stop_steering() -> None:
    world = World()
    subscribed(world)
    await world.steered().run_pass(10)
    assert len(world.requests) == 1


async def test_nothing_is_decided_while_the_ends_of_a_topic_that_is_read_are_not_known() -> None:
    world = World()
    subscribed(world, TopicPartition("gone", 0))
    await world.steered().run_pass(10)
    assert await last_plans(world.bus, TOPIC, {"shop"}) == {}


async def test_a_new_controller_does_not_go_on_from_a_plan_that_was_ended() -> None:
    world = World()
    await world.steered().run_pass(10)
    await world.bus.remove(TOPIC, plan_partition("shop", 8), b"shop")
    assert await last_plans(world.bus, TOPIC, {"shop"}) == {}
