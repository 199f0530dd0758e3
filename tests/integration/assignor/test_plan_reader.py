"""What a member of a group reads when the topic of plans changes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from structlog.testing import capture_logs
from tests.integration.assignor.plans import VALID_MS, until

from binwright.kafka.client import ClusterClient, client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.kafka import run_broker
from binwright.protocol.group_plans import GroupPlan
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.assignor import follow_plans
from binwright.scaler.plans_topic import PLANS_CONFIG, plan_partition, publish_plan

pytestmark = pytest.mark.integration
REFRESH_MS = 200  # how often a reader asks for the topic's metadata; five minutes by default
GROUP = "orders-billing"


@pytest.fixture
async def creating(tmp_path: Path) -> AsyncIterator[KafkaSettings]:
    """Run a broker that creates each topic that a client asks for."""
    async with run_broker(tmp_path, settings={"auto.create.topics.enable": "true"}) as running:
        yield KafkaSettings(bootstrap_servers=running.bootstrap_servers)


async def publish(bus: KafkaControlTopics, topic: str, partitions: int, generation: int) -> None:
    await bus.ensure(topic, partitions, PLANS_CONFIG)
    plan = GroupPlan(
        group=GROUP,
        generation=generation,
        at_ms=wall_ms(),
        valid_ms=VALID_MS,
        bins=(),
        reason="a test",
    )
    await publish_plan(bus, topic, plan)


async def test_plans_are_found_in_a_topic_that_has_grown(creating: KafkaSettings) -> None:
    assert plan_partition(GROUP, 8) > 0
    options = client_options(creating) | {"metadata_max_age_ms": REFRESH_MS}
    async with KafkaControlTopics(creating) as bus:
        await publish(bus, "few-plans", 1, 1)
        async with follow_plans(GROUP, topic="few-plans", **options) as plans:
            assert plans.plan is not None
            await publish(bus, "few-plans", 8, 2)
            await until(lambda: getattr(plans.plan, "generation", 0) == 2, lambda: plans.plan)


async def test_a_topic_of_plans_that_is_gone_is_not_created_by_its_readers(
    creating: KafkaSettings,
) -> None:
    options = client_options(creating) | {"metadata_max_age_ms": REFRESH_MS}
    async with KafkaControlTopics(creating) as bus:
        await publish(bus, "old-plans", 2, 1)
    admin = AIOKafkaAdminClient(**client_options(creating))
    await admin.start()
    try:
        with capture_logs() as events:
            async with follow_plans(GROUP, topic="old-plans", **options):
                await admin.delete_topics(["old-plans"])
                await until(
                    lambda: any(each["event"] == "plans.missing" for each in events),
                    lambda: events,
                )
                async with ClusterClient(creating) as cluster:
                    assert await cluster.leaders("old-plans") == {}
    finally:
        await admin.close()
