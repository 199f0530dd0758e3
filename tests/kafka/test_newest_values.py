"""A bounded sample of the newest records, by a deadline; faults are part of it."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import TopicAuthorizationFailedError

from binwright.kafka.newest_values import MOST_PARTITIONS, NewestValues

MOST_RETURNED = 7
"""Records of one poll."""


class FakeConsumer:
    """Logs whose records have their offsets as values; a multiple of `gap` has none."""

    def __init__(self, gap: int = 0, fault: Exception | None = None, silent: int = -1) -> None:
        self.gap, self.fault, self.silent = gap, fault, silent
        self.at: dict[KafkaPartition, int] = {}
        self.paused: set[KafkaPartition] = set()

    def assign(self, partitions: list[KafkaPartition]) -> None:
        self.at, self.paused = dict.fromkeys(partitions, 0), set()

    def seek(self, partition: KafkaPartition, offset: int) -> None:
        self.at[partition] = offset

    def pause(self, partition: KafkaPartition) -> None:
        self.paused.add(partition)

    async def position(self, partition: KafkaPartition) -> int:
        return self.at[partition]

    async def getmany(self, *partitions: KafkaPartition, timeout_ms: int) -> dict[Any, Any]:
        await asyncio.sleep(timeout_ms / 1000)
        if self.fault:
            raise self.fault
        assert not self.paused & set(partitions)
        return {p: self._next(p) for p in partitions if p.partition != self.silent}

    def _next(self, partition: KafkaPartition) -> list[Any]:
        first = self.at[partition]
        self.at[partition] = end = first + MOST_RETURNED
        offsets = [n for n in range(first, end) if not self.gap or n % self.gap]
        return [SimpleNamespace(offset=n, value=b"%d" % n) for n in offsets]


async def read(
    consumer: FakeConsumer, bounds: dict[int, tuple[int, int]], wanted: int = 20
) -> tuple[list[int], str]:
    until = asyncio.get_running_loop().time() + 10
    found = await NewestValues(consumer).read("t", bounds, wanted, until)
    return sorted(int(value or b"") for value in found.values), found.fault


pytestmark = pytest.mark.looptime


async def test_the_newest_of_one_partition_are_read_and_none_beyond_the_end() -> None:
    assert await read(FakeConsumer(), {0: (0, 100)}) == ([*range(80, 100)], "")


async def test_each_partition_gives_its_share() -> None:
    found, _ = await read(FakeConsumer(), {0: (0, 100), 1: (0, 1_000), 2: (7, 7)})
    assert found == [*range(90, 100), *range(990, 1_000)]


async def test_the_partitions_that_keep_the_most_are_read() -> None:
    bounds = {number: (0, 10 + number) for number in range(MOST_PARTITIONS + 5)}
    found, _ = await read(FakeConsumer(), bounds, MOST_PARTITIONS)
    assert found == [9 + number for number in range(5, MOST_PARTITIONS + 5)]


async def test_what_compaction_has_removed_is_not_waited_for() -> None:
    assert await read(FakeConsumer(gap=2), {0: (0, 30)}) == ([*range(11, 30, 2)], "")


async def test_a_topic_without_records_is_not_read() -> None:
    consumer = FakeConsumer(fault=AssertionError())
    assert await read(consumer, {0: (5, 5)}) == ([], "")
    assert await read(consumer, {}) == ([], "")


async def test_a_missing_right_is_the_fault() -> None:
    found, fault = await read(FakeConsumer(fault=TopicAuthorizationFailedError("t")), {0: (0, 9)})
    assert not found
    assert "TopicAuthorizationFailedError" in fault


async def test_what_came_in_time_counts_although_a_partition_is_silent() -> None:
    found, fault = await read(FakeConsumer(silent=1), {0: (0, 10), 1: (0, 10)})
    assert found == [*range(10)]
    assert fault == "the newest records did not come in time"
