"""The watch on three real brokers: it proposes, and moves what is approved."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from binwright.balancer.__main__ import broker_watch
from binwright.balancer.admin_client import AdminClient
from binwright.balancer.commands.approve import approve_plan, withdraw_plan
from binwright.balancer.decide.proposals import CopiesStarted
from binwright.balancer.settings import BalancerProgramSettings, BrokerSettings
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings

from .helpers import DEADLINE_S, fill, make_topic, placement, plan_records, throttles

pytestmark = pytest.mark.integration

TOPIC, PLANS = "watched", "watched.plans"
MB = 1_000_000
HOURLY = 2 * MB + MB // 2
Logs = list[MutableMapping[str, Any]]


def settings(kafka: KafkaSettings, **brokers: Any) -> BalancerProgramSettings:
    wanted = BrokerSettings(
        topic=PLANS, interval_s=1, bytes_per_hour=HOURLY, probe=False, **brokers
    )
    return BalancerProgramSettings(kafka=kafka, group="watched", brokers=wanted)


@asynccontextmanager
async def watching(found: BalancerProgramSettings, bus: KafkaControlTopics) -> AsyncIterator[None]:
    task = asyncio.create_task(broker_watch(found, bus).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def logged(
    logs: Logs, event: str, of: Callable[[Mapping[str, Any]], bool]
) -> Mapping[str, Any]:
    """Return the first such event, as soon as it is there."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            for each in logs:
                if each["event"] == event and of(each):
                    return each
            await asyncio.sleep(0.1)


async def settled(admin: AdminClient) -> None:
    """Wait until nothing is being copied."""
    async with asyncio.timeout(DEADLINE_S):
        while (await admin.state()).reassignments:  # noqa: ASYNC110 - Kafka tells nobody
            await asyncio.sleep(0.1)


async def copied(bus: KafkaControlTopics) -> list[int]:
    """Return the bytes of each start of copies, by the topic of plans."""
    records = await plan_records(bus, PLANS)
    return [message.bytes for _, message in records if isinstance(message, CopiesStarted)]


@pytest.mark.nightly
async def test_observe_proposes_an_approval_moves_and_the_budget_holds(
    kafka: KafkaSettings, admin: AdminClient
) -> None:
    await make_topic(kafka, TOPIC, dict.fromkeys(range(9), (1,)))
    await fill(kafka, {TopicPartition(TOPIC, number): MB for number in range(9)})
    before = await admin.state()
    async with KafkaControlTopics(kafka) as bus:
        with capture_logs() as logs:
            async with watching(settings(kafka), bus):
                await logged(logs, "balance.proposed", lambda each: "plan" not in each)
        assert placement(await admin.state(), TOPIC) == placement(before, TOPIC)
        with capture_logs() as logs:
            async with watching(settings(kafka, mode="approve"), bus):
                proposed = await logged(logs, "balance.proposed", lambda each: each["waits"])
                assert proposed["bytes"] > HOURLY
                assert placement(await admin.state(), TOPIC) == placement(before, TOPIC)
                await approve_plan(bus, PLANS, proposed["plan"], DEADLINE_S)
                await logged(logs, "reassignment.paused", _of_this_hour)
                await settled(admin)  # a withdrawal takes back what is still being copied
                await withdraw_plan(bus, PLANS, proposed["plan"])
                await logged(logs, "reassignment.stopped", lambda _: True)
        sizes = await copied(bus)
    after = placement(await admin.state(), TOPIC)
    assert 0 < sum(sizes) <= HOURLY
    assert sum(replicas != (1,) for replicas in after.values()) == 2
    assert (await throttles(admin)).ours == {}


def _of_this_hour(paused: Mapping[str, Any]) -> bool:
    return any("started within the last hour" in reason for reason in paused["reasons"])
