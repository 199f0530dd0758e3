"""What Prometheus sees of a steered group."""

import asyncio
from dataclasses import replace

import pytest
from tests.scaler.steering.fakes import World

from binwright.protocol.errors import BrokerUnavailable
from binwright.runtime.metrics import METRICS
from binwright.scaler.groups.descriptions import GroupDescription
from binwright.scaler.steering.steered_group import SteeredGroup

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
