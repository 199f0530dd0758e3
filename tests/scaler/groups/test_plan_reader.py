"""What a member of a group reads of a topic of plans, without Kafka."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from binwright.protocol import wire
from binwright.protocol.group_plans import GroupPlan
from binwright.runtime.backoff import Backoff
from binwright.scaler.groups.plan_reader import PlanReader
from binwright.scaler.groups.plans import plan_partition

pytestmark = pytest.mark.looptime(noop_cycles=1)
TOPIC, GROUP = "plans", "orders-billing"


class FakeConsumer:
    """A consumer of a topic whose number of partitions may change; 0: there is no topic."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.records: dict[TopicPartition, list[Any]] = {}
        self.offset = 0
        self._client = self

    def get_random_node(self) -> int:
        return 0

    async def send(self, broker: int, request: object) -> Any:
        del broker, request
        return SimpleNamespace(topics=[(0 if self.count else 3, TOPIC, False, [()] * self.count)])

    def assign(self, partitions: list[TopicPartition]) -> None:
        (self.assigned,) = partitions

    async def seek_to_beginning(self, partition: TopicPartition) -> None:
        assert partition == self.assigned

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {p: len(self.records.get(p, ())) for p in partitions}

    async def position(self, partition: TopicPartition) -> int:
        assert partition == self.assigned
        return self.offset

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        assert topic == TOPIC
        return set(range(self.count)) or None

    async def getmany(
        self, partition: TopicPartition, timeout_ms: int
    ) -> dict[TopicPartition, list[Any]]:
        found = self.records.get(partition, [])[self.offset :]
        self.offset += len(found)
        if not found:
            await asyncio.sleep(timeout_ms / 1000)
        return {partition: found}

    def publish(self, generation: int) -> None:
        plan = GroupPlan(
            group=GROUP, generation=generation, at_ms=0, valid_ms=1, bins=(), reason="a test"
        )
        record = SimpleNamespace(key=wire.key(plan), value=wire.encode(plan))
        number = plan_partition(GROUP, self.count)
        self.records.setdefault(TopicPartition(TOPIC, number), []).append(record)


@pytest.mark.parametrize("count", [0, 8])
async def test_reading_ends_when_the_topic_has_grown_or_is_gone(count: int) -> None:
    """Then it begins anew: the group's plans may be in another partition."""
    consumer, reader = FakeConsumer(1), PlanReader(GROUP)
    consumer.publish(1)
    reading = asyncio.create_task(reader._read(consumer, TOPIC, Backoff()))
    await reader.has_read.wait()
    assert reader.plan is not None
    assert reader.plan.generation == 1
    consumer.count = count
    async with asyncio.timeout(5):
        await reading


async def test_a_topic_that_can_be_read_again_is_soon_read_again_after_the_next_failure() -> None:
    consumer, reader, pause = FakeConsumer(1), PlanReader(GROUP), Backoff(first_s=1.0)
    shortest = pause.next()
    reading = asyncio.create_task(reader._read(consumer, TOPIC, pause))
    await reader.has_read.wait()
    consumer.count = 0
    await reading
    assert pause.next() == shortest


async def test_without_a_topic_nothing_is_waited_for() -> None:
    reader = PlanReader(GROUP)
    await reader._read(FakeConsumer(0), TOPIC, Backoff())
    assert reader.has_read.is_set()
    assert reader.plan is None
