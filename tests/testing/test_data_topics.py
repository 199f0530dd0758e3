"""The fake topics gain, hold and lose records as a broker's do."""

import asyncio
from collections.abc import Mapping

import pytest

from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import (
    NO_RECORDS,
    GroupOffset,
    LogSample,
    Records,
)
from binwright.testing.data_topics import FakeDataReader, FakeTopics
from binwright.testing.log_sampler import sample_topics
from binwright.testing.records import in_rows

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
pytestmark = pytest.mark.looptime


def offsets(fetched: Mapping[TopicPartition, Records], partition: TopicPartition = P) -> list[int]:
    return list(fetched.get(partition, NO_RECORDS).offsets)


async def test_produced_records_are_fetched_once_and_in_order() -> None:
    topics = FakeTopics({"orders": 1})
    intake = FakeDataReader(topics)
    assert topics.produce(P, b"a", None, b"c") == 0
    await intake.start(P, 1)

    fetched = await intake.fetch(1_000, 1)

    assert [(r.offset, r.value) for r in in_rows([fetched[P]])] == [(1, None), (2, b"c")]
    assert not await intake.fetch(1_000, 1)


async def test_a_partition_grows_on_the_clock() -> None:
    topics = FakeTopics({"orders": 1})
    topics.grow(P, bytes_per_s=2_000, record_bytes=100)
    await asyncio.sleep(10)
    topics.grow(P, bytes_per_s=500, record_bytes=50)
    await asyncio.sleep(10)

    assert topics.bounds(P) == (0, 300)
    assert (await sample_topics(topics, "orders"))["orders"] == {0: LogSample(1, 0, 300, 25_000)}


async def test_a_change_of_rate_loses_no_part_of_a_record() -> None:
    topics = FakeTopics({"orders": 1})
    for _ in range(10):
        topics.grow(P, bytes_per_s=40, record_bytes=100)
        await asyncio.sleep(1)

    assert topics.bounds(P) == (0, 4)


async def test_single_records_interleave_with_growth() -> None:
    topics = FakeTopics({"orders": 1})
    topics.grow(P, bytes_per_s=100, record_bytes=100)
    await asyncio.sleep(3)
    assert topics.produce(P, b"x") == 3
    await asyncio.sleep(2)
    intake = FakeDataReader(topics)
    await intake.start(P, 0)

    fetched = await intake.fetch(10_000, 1)

    assert [len(r.value or b"") for r in in_rows([fetched[P]])] == [100, 100, 100, 1, 100, 100]
    assert [r.timestamp_ms for r in in_rows([fetched[P]])] == [
        1_000,
        2_000,
        3_000,
        3_000,
        4_000,
        5_000,
    ]


async def test_a_fetch_waits_for_data_up_to_the_timeout() -> None:
    topics = FakeTopics({"orders": 1})
    intake = FakeDataReader(topics)
    loop = asyncio.get_running_loop()
    await intake.start(P, 0)
    asyncio.get_running_loop().call_later(3, topics.produce, P, b"x")

    assert not await intake.fetch(100, 2)
    assert loop.time() == 2
    assert offsets(await intake.fetch(100, 20)) == [0]
    assert loop.time() == 3


async def test_a_start_wakes_a_fetch_in_flight() -> None:
    topics = FakeTopics({"orders": 1})
    intake = FakeDataReader(topics)
    topics.produce(P, b"x")
    fetch = asyncio.create_task(intake.fetch(100, 60))
    await asyncio.sleep(1)
    await intake.start(P, 0)

    assert offsets(await fetch) == [0]
    assert asyncio.get_running_loop().time() < 2


async def test_a_fetch_is_bounded_and_starves_no_partition() -> None:
    topics = FakeTopics({"orders": 2})
    intake = FakeDataReader(topics)
    for partition in (P, Q):
        topics.produce(partition, *[b"x" * 100] * 10)
        await intake.start(partition, 0)

    first, second = await intake.fetch(300, 1), await intake.fetch(300, 1)

    assert offsets(first) == [0, 1, 2]
    assert offsets(second, Q) == [0, 1, 2]


async def test_no_records_of_a_stopped_partition_are_returned() -> None:
    topics = FakeTopics({"orders": 2})
    intake = FakeDataReader(topics)
    for partition in (P, Q):
        await intake.start(partition, 0)
        topics.produce(partition, b"x")
    intake.stop(P)

    assert set(await intake.fetch(1_000, 1)) == {Q}


async def test_retention_past_the_position_is_a_jump() -> None:
    topics = FakeTopics({"orders": 1})
    intake = FakeDataReader(topics)
    topics.produce(P, *[b"x"] * 10)
    await intake.start(P, 2)
    topics.delete_records(P, 5)

    assert offsets(await intake.fetch(1_000, 1)) == [5, 6, 7, 8, 9]
    assert intake.jumps() == {P: (2, 5)}
    assert intake.jumps() == {}


async def test_a_log_that_ends_before_the_position_is_stopped() -> None:
    """Its offsets are of other records now: only a new `start` continues."""
    topics = FakeTopics({"orders": 1})
    intake = FakeDataReader(topics)
    topics.produce(P, b"x", b"x")
    await intake.start(P, 2)
    topics.delete("orders")
    topics.create("orders", 1)

    assert not await intake.fetch(1_000, 1)
    assert intake.jumps() == {P: (2, 0)}
    topics.produce(P, b"y", b"y", b"y")
    assert not await intake.fetch(1_000, 1)


async def test_offsets_without_records_are_skipped() -> None:
    topics = FakeTopics({"orders": 1})
    intake = FakeDataReader(topics)
    topics.produce(P, b"x")
    topics.skip(P, 3)
    topics.produce(P, b"y")
    await intake.start(P, 0)

    assert offsets(await intake.fetch(1_000, 1)) == [0, 4]


async def test_sizes_are_of_the_retained_records() -> None:
    topics = FakeTopics({"orders": 1})
    topics.produce(P, b"aaaa", b"bb", b"c")
    topics.delete_records(P, 1)
    topics.log(P).leader = None
    assert (await sample_topics(topics, "orders"))["orders"] == {0: None}
    topics.log(P).leader = 3

    assert (await sample_topics(topics, "orders"))["orders"] == {0: LogSample(3, 1, 3, 3)}


async def test_committed_offsets_belong_to_the_group() -> None:
    topics = FakeTopics({"orders": 2})
    offset = GroupOffset(5, "orders-1")
    await FakeDataReader(topics, "g").commit({P: offset})

    assert await FakeDataReader(topics, "g").committed([P, Q]) == {P: offset}
    assert await FakeDataReader(topics, "h").committed([P, Q]) == {}


async def test_a_truncated_log_continues_at_its_end() -> None:
    topics = FakeTopics({"orders": 1})
    topics.grow(P, bytes_per_s=100, record_bytes=100)
    await asyncio.sleep(5)
    topics.produce(P, b"x", b"y")
    topics.cut(P, 6)
    assert topics.bounds(P) == (0, 6)
    await asyncio.sleep(2)
    assert topics.bounds(P) == (0, 8)
    topics.cut(P, 3)
    topics.produce(P, b"z")
    intake = FakeDataReader(topics)
    await intake.start(P, 2)

    found = await intake.fetch(10_000, 1)
    assert [(r.offset, len(r.value or b"")) for r in in_rows([found[P]])] == [(2, 100), (3, 1)]


async def test_a_silent_topic_does_not_affect_the_others() -> None:
    topics = FakeTopics({"orders": 1, "clicks": 1})
    other = TopicPartition("clicks", 0)
    intake = FakeDataReader(topics)
    for partition in (P, other):
        await intake.start(partition, 0)
        topics.produce(partition, b"x")
    topics.silent.add("orders")
    with pytest.raises(BrokerUnavailable, match="no reply about orders"):
        await intake.topic_id("orders")

    assert set(await intake.fetch(1_000, 1)) == {other}


async def test_a_missing_topic_is_named() -> None:
    intake = FakeDataReader(FakeTopics())

    with pytest.raises(TopicMissing, match="orders-0"):
        await intake.bounds([P])
    with pytest.raises(TopicMissing, match="orders-0"):
        await intake.start(P, 0)


async def test_it_fails_as_often_as_requested() -> None:
    intake = FakeDataReader(FakeTopics({"orders": 1}))
    intake.fail_next(2)
    with pytest.raises(BrokerUnavailable):
        await intake.bounds([P])
    with pytest.raises(BrokerUnavailable):
        await intake.commit({})

    assert await intake.bounds([P]) == {P: (0, 0)}
