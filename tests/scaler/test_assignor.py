"""The assignor for aiokafka: the plans that it reads, and what it assigns with and without one."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from binwright.protocol import wire
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.model import TopicPartition
from binwright.runtime.backoff import Backoff
from binwright.runtime.clock import wall_ms
from binwright.scaler.assignor import PlannedAssignor, PlanReader, planned_assignor
from binwright.scaler.plans_topic import plan_partition

pytestmark = pytest.mark.looptime(noop_cycles=1)
TOPIC, GROUP = "plans", "orders-billing"
NUMBERS = range(4)
CLUSTER = SimpleNamespace(
    topics=lambda: {"orders"},
    partitions_for_topic=lambda _: set(NUMBERS),
    available_partitions_for_topic=lambda _: set(NUMBERS),
)


def plan(*bins: tuple[int, ...], age_ms: int = 0) -> GroupPlan:
    return GroupPlan(
        group="shop",
        generation=0,
        at_ms=wall_ms() - age_ms,
        valid_ms=60_000,
        bins=tuple({TopicPartition("orders", number): 1 for number in one} for one in bins),
        reason="a test",
    )


def assigned(reader: PlanReader, *members: type[PlannedAssignor]) -> list[list[int]]:
    """Have the first of these members assign, by encoded messages."""
    names = [f"m{number}" for number in range(len(members))]
    metadata = {n: m.metadata(["orders"]) for n, m in zip(names, members, strict=True)}
    members[0].plans = reader
    result = members[0].assign(CLUSTER, metadata)
    found = []
    for name, member in zip(names, members, strict=True):
        received = ConsumerProtocolMemberAssignment.decode(result[name].encode())
        member.on_assignment(received)
        found.append([partition.partition for partition in received.partitions()])
    return found


def test_members_get_the_bins_of_the_plan() -> None:
    reader = PlanReader("shop")
    reader.plan = plan((0,), (1, 2, 3))
    assert assigned(reader, planned_assignor(reader), planned_assignor(reader)) == [[0], [1, 2, 3]]


def test_a_member_keeps_what_it_reads_when_the_bins_change() -> None:
    reader = PlanReader("shop")
    members = planned_assignor(reader), planned_assignor(reader)
    reader.plan = plan((0,), (1, 2, 3))
    assigned(reader, *members)
    reader.plan = plan((1, 2), (0, 3))
    assert assigned(reader, *members) == [[0, 3], [1, 2]]


def test_without_a_valid_plan_members_get_as_many_partitions_each() -> None:
    reader = PlanReader("shop")
    reader.plan = plan((0,), (1, 2, 3), age_ms=61_000)
    found = assigned(reader, planned_assignor(reader), planned_assignor(reader))
    assert [len(numbers) for numbers in found] == [2, 2]


def test_a_reader_takes_the_plans_of_its_own_group_only() -> None:
    reader, found = PlanReader("shop"), plan((0,))
    reader.take(b"other", wire.encode(found))
    assert reader.plan is None
    reader.take(b"shop", wire.encode(found))
    assert reader.plan == found


def test_a_record_without_a_value_ends_the_plan() -> None:
    reader = PlanReader("shop")
    reader.plan = plan((0,))
    reader.take(b"shop", None)
    assert reader.valid_plan() is None


def test_a_record_that_is_no_plan_leaves_the_last_one() -> None:
    reader = PlanReader("shop")
    reader.plan = plan((0,))
    reader.take(b"shop", b"{}")
    assert reader.valid_plan() is not None


class FakeConsumer:
    """A consumer of a topic whose number of partitions may change; 0: there is no topic."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.records: dict[KafkaPartition, list[Any]] = {}
        self.offset = 0
        self._client = self

    def get_random_node(self) -> int:
        return 0

    async def send(self, broker: int, request: object) -> Any:
        del broker, request
        return SimpleNamespace(topics=[(0 if self.count else 3, TOPIC, False, [()] * self.count)])

    def assign(self, partitions: list[KafkaPartition]) -> None:
        (self.assigned,) = partitions

    async def seek_to_beginning(self, partition: KafkaPartition) -> None:
        assert partition == self.assigned

    async def end_offsets(self, partitions: list[KafkaPartition]) -> dict[KafkaPartition, int]:
        return {p: len(self.records.get(p, ())) for p in partitions}

    async def position(self, partition: KafkaPartition) -> int:
        assert partition == self.assigned
        return self.offset

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        assert topic == TOPIC
        return set(range(self.count)) or None

    async def getmany(
        self, partition: KafkaPartition, timeout_ms: int
    ) -> dict[KafkaPartition, list[Any]]:
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
        self.records.setdefault(KafkaPartition(TOPIC, number), []).append(record)


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
