"""Partitions are read from the right offset, under every fault of their log and topic."""

import asyncio
from dataclasses import replace

import pytest
from tests.consumer.harness import CONFIG, C, P, Q, harness, numbered, until

from binwright.protocol.messages import Report, Started
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset

pytestmark = pytest.mark.looptime(noop_cycles=1)


async def test_without_an_offset_reading_begins_at_the_groups_offset() -> None:
    async with harness({"orders": 3}) as b:
        b.topics.produce(P, *numbered(5))
        b.topics.produce(Q, *numbered(5))
        other = TopicPartition("orders", 2)
        await b.reader.commit({P: GroupOffset(3, "orders-1"), Q: GroupOffset(3, "orders-0")})
        await b.read({P: None, Q: None, other: None})
        await until(lambda: b.sent(Started))
        begun = {p: o for m in b.sent(Started) for p, o in m.offsets.items()}
        assert begun == {P: 3, Q: 0, other: 0}, (
            "an offset of another topic of this name does not count"
        )


async def test_latest_begins_at_the_end() -> None:
    async with harness({"orders": 1}, replace(CONFIG, from_latest=True)) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: None})
        await until(lambda: b.sent(Started))
        assert b.sent(Started)[0].offsets == {P: 5}


async def test_a_missing_topic_delays_only_its_own_partitions() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({C: None, P: None, TopicPartition("orders", 7): 3})
        await until(lambda: b.staged_end(P) == 5, 5)
        assert b.report().reading[C] is None
        b.topics.create("clicks", 1)
        b.topics.produce(C, b"x")
        await until(lambda: b.staged_end(C) == 1)


async def test_no_command_waits_for_a_topic_that_kafka_does_not_describe() -> None:
    """Neither reports nor replies may wait for it."""
    async with harness({"orders": 1, "clicks": 1}) as b:
        b.topics.silent.add("clicks")
        b.topics.produce(P, *numbered(5))
        await b.read({C: None, P: 0})
        await until(lambda: b.staged_end(P) == 5, 5)
        before = len(b.sent(Report))
        assert (await b.stop(P)).next == {P: 5}
        await asyncio.sleep(10)
        assert len(b.sent(Report)) > before + 8


async def test_a_topic_whose_id_is_unavailable_leaves_room_for_other_topics() -> None:
    async with harness({"orders": 1, "clicks": 1}) as b:
        b.topics.grow(P, 200_000)
        b.topics.grow(C, 50_000)
        await b.read({C: 0, P: 0})
        await until(lambda: b.staged_end(P) > 0 and b.staged_end(C) > 0)
        refused = b.reader.topic_id

        async def topic_id(topic: str) -> str | None:
            if topic == "orders":
                await healed.wait()
            return await refused(topic)

        healed = asyncio.Event()
        b.reader.topic_id = topic_id  # type: ignore[method-assign]
        before = b.staged_end(P)
        await asyncio.sleep(60)
        assert b.staged_end(P) <= before + 200
        assert b.staged_end(C) > 50 * 50
        healed.set()
        b.topics.grow(P, 0)
        await until(lambda: b.staged_end(P) == b.topics.bounds(P)[1])
        assert b.values(P) == [bytes(1_000)] * b.staged_end(P), "and no record is omitted"


async def test_a_partition_that_is_read_again_omits_no_record() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(50))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 50)
        b.topics.produce(P, *numbered(50, 50))
        await asyncio.sleep(0.3)
        await b.read({P: 20})
        await until(lambda: b.staged_end(P) == 100)
        assert b.ranges(P) == [(0, 50), (20, 100)]
        assert b.values(P) == [*numbered(50), *numbered(80, 20)]


async def test_a_recreated_topic_is_read_from_its_beginning_under_its_own_id() -> None:
    async with harness({"orders": 2}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0, Q: 0})
        await until(lambda: b.staged_end(P) == 5)
        b.topics.delete("orders")
        b.topics.create("orders", 2)
        b.topics.produce(P, *numbered(9, 100))
        b.topics.produce(Q, *numbered(1, 200))
        await until(lambda: any(m.topic_id == "orders-2" and P in m.ranges for m in b.staged()))
        await asyncio.sleep(5)
        new = [m for m in b.staged() if m.topic_id == "orders-2"]
        old = [m for m in b.staged() if m.topic_id == "orders-1"]
        assert [m.ranges for m in old] == [{P: (0, 5)}]
        assert {p: r for m in new for p, r in m.ranges.items()} == {P: (0, 9), Q: (0, 1)}
        assert b.report().reading == {P: 9, Q: 1}


async def test_a_recreated_topic_that_is_shorter_is_detected() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(50))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 50)
        b.topics.delete("orders")
        await asyncio.sleep(20)
        b.topics.create("orders", 1)
        b.topics.produce(P, *numbered(3, 100))
        await until(lambda: b.values(P)[50:] == numbered(3, 100))
        assert b.staged()[-1].topic_id == "orders-2"
        assert not b.staged()[-1].cut


async def test_a_truncated_log_is_read_from_its_end_and_announced_as_cut() -> None:
    """It is not staged again from the beginning as if it were new."""
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(50))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 50)
        b.topics.cut(P, 40)
        await asyncio.sleep(5)
        b.topics.produce(P, *numbered(3, 100))
        await until(lambda: len(b.ranges(P)) == 2)
        assert b.ranges(P)[1] == (40, 43)
        assert b.staged()[-1].cut == (P,)
        b.topics.produce(P, b"later")
        await until(lambda: len(b.ranges(P)) == 3)
        assert b.staged()[-1].cut == ()


async def test_a_landed_offset_beyond_the_end_shows_a_truncated_log() -> None:
    async with harness({"orders": 2}) as b:
        b.topics.produce(P, *numbered(5))
        b.topics.produce(Q, *numbered(5))
        await b.reader.commit({P: GroupOffset(9, "orders-1"), Q: GroupOffset(9, "orders-0")})
        await b.read({P: 9, Q: 9})
        await asyncio.sleep(10)
        b.topics.produce(P, b"p")
        b.topics.produce(Q, b"q")
        await until(lambda: b.staged_end(P) == 6 and b.staged_end(Q) == 6)
        assert b.ranges(P) == [(5, 6)]
        assert b.ranges(Q)[0][0] == 0, "an offset of another topic of this name proves nothing"


async def test_offsets_deleted_by_retention_are_counted_and_lie_inside_the_range() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(50))
        b.topics.delete_records(P, 30)
        await b.read({P: 10})
        await until(lambda: b.staged_end(P) == 50)
        assert b.ranges(P) == [(10, 50)]
        await until(lambda: b.report().lost_offsets == 20)
