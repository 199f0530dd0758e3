"""One ordinary group, looked at and steered, without Kafka."""

import asyncio
from dataclasses import replace

import pytest
from tests.scaler.steering_fakes import TOPIC, World

from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.runtime.metrics import METRICS
from binwright.scaler.decide.members import GroupDescription, GroupMember
from binwright.scaler.plans_topic import last_plans, plan_partition
from binwright.scaler.settings import SteeredGroupSettings
from binwright.scaler.steered_group import SteeredGroup
from binwright.scaler.steering import publisher, steering_policy


async def test_a_plan_that_is_worth_it_is_published_and_the_group_rebalances() -> None:
    world = World()
    await world.steered().run_pass(10)
    plans = await last_plans(world.bus, TOPIC, {"shop"})
    assert [sorted(p.partition for p in one) for one in plans["shop"].bins] == [
        [1, 2, 3],
        [0],
    ]
    assert world.requests == [("shop", "binwright", "orders")]


def by_least_loaded(world: World, commit_interval_s: float) -> SteeredGroup:
    """Return a group of 200 records/s and 0.5 s: a member serves 90 in time, of 180/s."""
    settings = SteeredGroupSettings(
        records_per_s=200,
        sla_s=0.5,
        pause_s=0.5,
        policy="least-loaded",
        commit_interval_s=commit_interval_s,
    )
    return replace(
        world.steered(),
        policy=steering_policy(settings),
        publisher=publisher(settings, 600.0, None),
        commit_interval_s=settings.commit_interval_s,
    )


def lagging() -> World:
    """Return a group whose first member has 105 records to catch up with, the other one 35."""
    return World(rates=dict.fromkeys(range(4), 20.0), lag=35)


async def test_a_member_with_too_much_lag_gives_partitions_to_one_with_room() -> None:
    world = lagging()
    await by_least_loaded(world, 0.0).run_pass(10)
    assert world.requests == [("shop", "binwright", "orders")]
    plans = await last_plans(world.bus, TOPIC, {"shop"})
    assert [len(inside) for inside in plans["shop"].bins] == [2, 2]


async def test_records_that_wait_for_the_next_commit_are_no_lag_to_steer_by() -> None:
    world = lagging()
    await by_least_loaded(world, 5.0).run_pass(10)
    assert world.requests == []


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
        GroupDescription("Stable", "range", {"x": GroupMember(topics=frozenset({"orders"}))}),
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


PREFIX = "binwright_steered_group_"


def seen(group: SteeredGroup) -> dict[str, float]:
    found = list(group.metrics.samples())
    assert {sample.labels["group"] for sample in found} == {"shop"}
    return {sample.name.removeprefix(PREFIX): sample.value for sample in found}


async def test_a_group_that_was_looked_at_has_every_metric_of_its_own() -> None:
    group = World().steered()
    await group.run_pass(10)
    assert {(sample.name, tuple(sample.labels)) for sample in group.metrics.samples()} == {
        (name, metric.labels) for name, metric in METRICS.items() if metric.where == "steering"
    }


async def test_a_group_is_seen_as_it_was_when_it_was_decided_on() -> None:
    """120 of 140 records/s are read by the first of two members; the plan moves two."""
    group = World().steered()
    await group.run_pass(10)
    numbers = seen(group)
    assert numbers.pop("imbalance") == pytest.approx(120 / 70)
    assert numbers == {
        "passes_total": 1,
        "fault": False,
        "rebalances_total": 1,
        "moved_partitions_total": 2,
        "plan_generation": 0,
        "members": 2,
    }


async def test_a_controller_that_takes_over_goes_on_from_the_last_generation() -> None:
    first = World().steered()
    await first.run_pass(10)
    second = replace(World().steered(), publisher=first.publisher)
    assert seen(second)["plan_generation"] == 0


@pytest.mark.parametrize(
    "world",
    [
        World(fault="its coordinator is not known"),
        World(rates={0: 80.0}),
        World(description=GroupDescription("Stable", "range", World().description.members)),
    ],
    ids=["offsets", "rates", "assignor"],
)
async def test_a_group_that_cannot_be_steered_has_a_fault_and_no_imbalance(world: World) -> None:
    group = world.steered()
    await group.run_pass(10)
    assert seen(group) == {
        "passes_total": 1,
        "fault": True,
        "rebalances_total": 0,
        "moved_partitions_total": 0,
    }


async def test_a_group_without_members_has_no_fault() -> None:
    """A group may be scaled to zero."""
    group = World(description=GroupDescription("Empty", "", {})).steered()
    await group.run_pass(10)
    numbers = seen(group)
    assert (numbers["fault"], numbers["members"]) == (False, 0)
    assert "imbalance" not in numbers


async def test_a_fault_is_over_with_the_next_decision() -> None:
    world = World(fault="its coordinator is not known")
    group = world.steered()
    await group.run_pass(10)
    world.fault = ""
    await group.run_pass(10)
    assert seen(group)["fault"] is False


@pytest.mark.looptime
async def test_a_rebalance_that_fails_is_a_fault() -> None:
    world = World()

    async def request(group: str, protocol: str, topic: str) -> None:
        raise BrokerUnavailable(f"{group} ({protocol}, {topic}) did not rebalance in time")

    world.request = request  # type: ignore[method-assign]
    group = world.steered()
    running = asyncio.create_task(group.run(10))
    await asyncio.sleep(5)
    running.cancel()
    await asyncio.wait([running])
    assert (seen(group)["fault"], seen(group)["rebalances_total"]) == (True, 1)
