"""The whole balancer as a process, on three real brokers under load: it moves by itself."""

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from binwright.balancer.admin_client import AdminClient
from binwright.balancer.decide.proposals import BrokerPlan, BrokersEnded, CopiesStarted
from binwright.balancer.plan_topic import PlanTopic
from binwright.balancer.ports import ClusterState, Replicas
from binwright.balancer.probe import TOPIC as PROBE_TOPIC
from binwright.balancer.settings import BalancerProgramSettings, BrokerSettings
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings

from .helpers import (
    DEADLINE_S,
    Load,
    balancer,
    check_nothing_is_lost,
    fill,
    make_topic,
    placement,
    plan_records,
    run,
    throttles,
    until,
    write_plan,
)
from .kafka_tool import verify

pytestmark = pytest.mark.integration

MB = 1_000_000
PLANS = BrokerSettings().topic
SIZES = (6, 4, 3, 2, 2, 1)
SLOW = 2 * MB
"""Small enough that copies take seconds, so that a kill meets some of them."""


def settings(kafka: KafkaSettings, group: str, **brokers: Any) -> BalancerProgramSettings:
    return BalancerProgramSettings(
        kafka=kafka, group=group, brokers=BrokerSettings(interval_s=1, **brokers)
    )


async def uneven(
    kafka: KafkaSettings, topic: str, replicas: Replicas, unit: int = MB
) -> list[TopicPartition]:
    """Make a topic of uneven partitions on these brokers that will hold what it holds today."""
    numbers = range(len(SIZES))
    await make_topic(kafka, topic, dict.fromkeys(numbers, replicas), {"retention.ms": "-1"})
    sizes = {TopicPartition(topic, n): SIZES[n] * unit for n in numbers}
    await fill(kafka, sizes)
    return [*sizes]


async def proposed(bus: KafkaControlTopics, group: str) -> BrokerPlan:
    """Return the plan of a group, as soon as there is one."""
    async with aclosing(PlanTopic(bus, PLANS)) as plans, asyncio.timeout(DEADLINE_S):
        while (found := plans.proposals.by_group.get(group)) is None:
            await plans.follow()
        return found


async def finished_well(bus: KafkaControlTopics, plan: BrokerPlan) -> None:
    """Wait until a plan is over; it must be carried out."""
    async with aclosing(PlanTopic(bus, PLANS)) as plans, asyncio.timeout(DEADLINE_S):
        await plans.read()
        await plans.until_over(plan.number)
    records = [each for _, each in await plan_records(bus, PLANS)]
    reason = "all is in place"
    assert BrokersEnded(plan=plan.number, done=True, reason=reason) in records


async def started_bytes(bus: KafkaControlTopics) -> int:
    records = await plan_records(bus, PLANS)
    return sum(each.bytes for _, each in records if isinstance(each, CopiesStarted))


async def logged(log: Path, text: str) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not _contains(log, text):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.1)


def _contains(log: Path, text: str) -> bool:
    return text in log.read_text()


def in_sync(state: ClusterState) -> bool:
    return all({*each.replicas} == each.in_sync for each in state.partitions.values())


@pytest.mark.nightly
async def test_a_balancer_that_is_killed_while_it_moves_finishes_its_plan_within_the_budget(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    loaded = await uneven(kafka, "killed", (1, 2))
    await uneven(kafka, "alone", (1,))
    act: dict[str, Any] = {"mode": "act", "probe": False, "throttle_bytes_per_s": SLOW}
    async with KafkaControlTopics(kafka) as bus, Load(kafka, loaded).running(0.02) as load:
        async with balancer(settings(kafka, "acting", **act), tmp_path) as first:
            plan = await proposed(bus, "acting")
            await until(admin, lambda state: bool(state.reassignments))
            await first.kill()
        assert (await throttles(admin)).ours

        # Enough for the plan if nothing counts twice; of that the first balancer started a part.
        hourly = plan.proposed.bytes + MB
        async with balancer(settings(kafka, "acting", **act, bytes_per_hour=hourly), tmp_path):
            await finished_well(bus, plan)
            state, left = await admin.state(), await throttles(admin)
            file = write_plan(tmp_path / "plan.json", plan.proposed.after)
            assert await verify(kafka.bootstrap_servers, file) == []
            assert (state.reassignments, in_sync(state)) == ({}, True)
            assert (left.ours, left.foreign) == ({}, {})

        await uneven(kafka, "later", (3,), 2 * MB)  # no plan may meet a half of it
        async with balancer(settings(kafka, "acting", **act, bytes_per_hour=hourly), tmp_path):
            await logged(tmp_path / "balancer.log", "started within the last hour")
        assert plan.proposed.bytes <= await started_bytes(bus) <= hourly
    assert (await throttles(admin)).ours == {}
    await check_nothing_is_lost(kafka, load)


@pytest.mark.nightly
async def test_a_balancer_moves_nothing_until_a_person_approves_its_plan(
    kafka: KafkaSettings, admin: AdminClient, tmp_path: Path
) -> None:
    await uneven(kafka, "asked", (2,), 15 * MB)
    before = placement(await admin.state(), "asked")
    async with KafkaControlTopics(kafka) as bus:
        async with balancer(settings(kafka, "asking", mode="approve"), tmp_path):
            plan = await proposed(bus, "asking")
            assert plan.proposed.waits
            spent = await started_bytes(bus)
            code, out, errors = await run(kafka, "status", "--json")
            assert code == 0, errors
            stages = {each["number"]: each["stage"] for each in json.loads(out)["plans"]}
            assert stages[plan.number] == "waits"
            assert placement(await admin.state(), "asked") == before

            code, out, errors = await run(kafka, "approve", str(plan.number))
            assert (code, out) == (0, f"plan {plan.number} goes ahead\n"), errors
            await finished_well(bus, plan)
        assert await started_bytes(bus) - spent >= plan.proposed.bytes
    state = await admin.state()
    assert {p: state.partitions[p].replicas for p in plan.proposed.after} == plan.proposed.after
    assert placement(state, "asked") != before
    assert PROBE_TOPIC not in {partition.topic for partition in state.partitions}
    assert (await throttles(admin)).ours == {}
