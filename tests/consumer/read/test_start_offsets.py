"""Where partitions begin, while some leaders are away or lag."""

from collections.abc import Collection, Mapping

import pytest

from binwright.consumer.read.start_offsets import (
    RECHECK_S,
    Lookup,
    PendingStart,
    StartOffsets,
    StartPosition,
)
from binwright.protocol.errors import BrokerUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset
from binwright.runtime.clock import loop_s
from binwright.testing.data_topics import FakeDataReader, FakeTopics

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
pytestmark = pytest.mark.looptime(noop_cycles=1)


class LaggingReader(FakeDataReader):
    """A reader whose first query about the ends is answered by a leader that lags."""

    def __init__(self, topics: FakeTopics, *ends: int) -> None:
        super().__init__(topics)
        self.ends = list(ends)

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        found = await super().bounds(partitions)
        if not self.ends:
            return found
        end = self.ends.pop(0)
        return {p: (begin, end) for p, (begin, _) in found.items()}


def topics_with(records: int) -> FakeTopics:
    topics = FakeTopics({"orders": 2})
    for partition in (P, Q):
        topics.produce(partition, *[b"v"] * records)
    return topics


async def find(
    reader: FakeDataReader, *batch: PendingStart, from_latest: bool = False
) -> list[object]:
    starts = StartOffsets(reader, from_latest=from_latest, is_current=lambda _: True)
    found: list[object] = []
    try:
        async for result in starts.find("orders", "orders-1", batch):
            found += [result]  # what comes before an error counts
    except BrokerUnavailable as exc:
        found.append(str(exc))
    return found


async def test_a_short_end_is_looked_at_twice_before_it_is_a_cut() -> None:
    """A leader that has just been elected may not know the end yet."""
    pending = PendingStart(P, Lookup.OUT_OF_RANGE, 5, seen=True)
    begun = loop_s()
    assert await find(LaggingReader(topics_with(5), 3), pending) == [StartPosition(pending, 5)]
    assert loop_s() - begun >= RECHECK_S


async def test_an_end_that_stays_short_is_a_cut_at_the_first_look() -> None:
    pending = PendingStart(P, Lookup.OUT_OF_RANGE, 9, seen=True)
    found = await find(LaggingReader(topics_with(5), 3), pending)
    assert found == [StartPosition(pending, 3, cut=True)]


async def test_an_end_that_decreases_is_no_answer() -> None:
    pending = PendingStart(P, Lookup.OUT_OF_RANGE, 9, seen=True)
    assert await find(LaggingReader(topics_with(5), 4, 3), pending) == [
        "the end of orders-0 decreases, from 4 to 3"
    ]


@pytest.mark.parametrize("need", [Lookup.BEGIN, Lookup.OUT_OF_RANGE])
async def test_a_first_start_waits_for_no_leader_of_another_partition(need: Lookup) -> None:
    topics = topics_with(5)
    topics.log(P).leader = None
    unled, led = PendingStart(P, need, 3), PendingStart(Q, Lookup.BEGIN)
    assert await find(FakeDataReader(topics), unled, led) == [
        StartPosition(led, 0),
        "no leader answers for orders-0",
    ]
    out_of_range = PendingStart(Q, Lookup.OUT_OF_RANGE, 3)
    assert await find(FakeDataReader(topics), unled, out_of_range) == [
        StartPosition(out_of_range, 3),
        "no leader answers for orders-0",
    ]


async def test_with_latest_the_groups_first_start_is_committed() -> None:
    """The table's writer may claim hours later: what was staged until then must land."""
    topics = topics_with(5)
    reader, pending = FakeDataReader(topics, "g"), PendingStart(P, Lookup.BEGIN)
    assert await find(reader, pending, from_latest=True) == [StartPosition(pending, 5)]
    topics.produce(P, b"later")
    assert await find(reader, pending, from_latest=True) == [StartPosition(pending, 5)]
    assert topics.offsets["g"] == {P: GroupOffset(5, "orders-1")}


async def test_with_earliest_nothing_is_committed_at_a_start() -> None:
    topics = topics_with(5)
    await find(FakeDataReader(topics, "g"), PendingStart(P, Lookup.BEGIN))
    assert not topics.offsets["g"]


async def test_reading_begins_at_the_end_where_offsets_cannot_be_committed() -> None:
    class NoRight(FakeDataReader):
        async def commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
            raise BrokerUnavailable(f"no right to commit {len(offsets)} offsets")

    pending = PendingStart(P, Lookup.BEGIN)
    found = await find(NoRight(topics_with(5), "g"), pending, from_latest=True)
    assert found == [StartPosition(pending, 5)]
