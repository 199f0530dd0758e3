"""Plans as a controller publishes them, and waits for what follows from them."""

import asyncio
from collections.abc import Callable, Sequence

from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.plans_topic import (
    PLANS_CONFIG,
    PLANS_PARTITIONS,
    PLANS_TOPIC,
    publish_plan,
)

DEADLINE_S = 40.0
VALID_MS = 600_000


async def publish(
    kafka: KafkaSettings, group: str, bins: Sequence[Sequence[TopicPartition]], *, age_ms: int = 0
) -> None:
    """Publish a plan of equal loads, as if it had been published `age_ms` ago."""
    async with KafkaControlTopics(kafka) as bus:
        await bus.ensure(PLANS_TOPIC, PLANS_PARTITIONS, PLANS_CONFIG)
        plan = GroupPlan(
            group=group,
            generation=1,
            at_ms=wall_ms() - age_ms,
            valid_ms=VALID_MS,
            bins=tuple(dict.fromkeys(inside, 100) for inside in bins),
            reason="a test",
        )
        await publish_plan(bus, PLANS_TOPIC, plan)


async def until(
    condition: Callable[[], bool], seen: Callable[[], object], patience_s: float = DEADLINE_S
) -> None:
    """Wait for a condition; `seen` says in a failure what there was instead."""
    try:
        async with asyncio.timeout(patience_s):
            while not condition():  # noqa: ASYNC110 - processes tell nobody
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"after {patience_s:.0f} s: {seen()}") from None


def names(bins: Sequence[Sequence[TopicPartition]]) -> list[set[str]]:
    return [{str(partition) for partition in inside} for inside in bins]
