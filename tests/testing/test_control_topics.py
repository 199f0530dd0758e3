"""The fake bus has the guarantees of the real one."""

import asyncio

import pytest

from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.testing.control_topics import READ_RECORDS, FakeControlTopics

pytestmark = pytest.mark.looptime


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_records_have_the_loops_time() -> None:
    bus = FakeControlTopics({"t": 1})
    await asyncio.sleep(2.5)
    await bus.publish("t", 0, b"k", b"v")
    assert bus.records("t")[0].timestamp_ms == 2500


async def test_a_read_without_records_ends_with_the_timeout() -> None:
    reader = await FakeControlTopics({"t": 1}).reader("t", 0, 0)
    assert await reader.read(5) == ()
    assert now() == 5


async def test_a_waiting_reader_is_woken_by_its_record() -> None:
    bus = FakeControlTopics({"t": 2})
    waiting = asyncio.create_task((await bus.reader("t", 0, 0)).read(60))
    await asyncio.sleep(3)
    await bus.publish("t", 1, b"k", b"of another partition")
    await asyncio.sleep(3)
    await bus.publish("t", 0, b"k", b"v")
    assert [r.value for r in await waiting] == [b"v"]
    assert now() == 6


async def test_readers_do_not_share_a_position() -> None:
    bus = FakeControlTopics({"t": 1})
    await bus.publish("t", 0, b"k", b"v")
    for _ in range(2):
        reader = await bus.reader("t", 0, 0)
        assert len(await reader.read(0)) == 1
        assert await reader.read(0) == ()


async def test_one_read_is_bounded() -> None:
    bus = FakeControlTopics({"t": 1})
    for _ in range(READ_RECORDS + 1):
        await bus.publish("t", 0, b"k", b"v")
    reader = await bus.reader("t", 0, 0)
    assert [len(await reader.read(0)) for _ in range(3)] == [READ_RECORDS, 1, 0]


async def test_concurrent_publishes_keep_the_order_of_calls() -> None:
    bus = FakeControlTopics({"t": 1}, latency_s=1)
    await bus.go_down()
    calls = [asyncio.create_task(bus.publish("t", 0, b"k", b"%d" % n)) for n in range(5)]
    await asyncio.sleep(3)
    await bus.come_up()
    assert await asyncio.gather(*calls) == list(range(5))
    assert [r.value for r in bus.records("t")] == [b"%d" % n for n in range(5)]


async def test_a_failed_publish_may_have_landed_or_not() -> None:
    bus = FakeControlTopics({"t": 1})
    bus.fail_next()
    bus.fail_next(landed=True)
    for value in (b"lost", b"landed"):
        with pytest.raises(BrokerUnavailable, match="injected failure"):
            await bus.publish("t", 0, b"k", value)
    assert [r.value for r in bus.records("t")] == [b"landed"]


async def test_calls_wait_through_an_outage_or_fail_after_the_patience() -> None:
    bus = FakeControlTopics({"t": 1}, patience_s=30)
    reader = await bus.reader("t", 0, 0)
    await bus.go_down()
    assert await reader.read(20) == ()
    with pytest.raises(BrokerUnavailable):
        await reader.read(20)
    with pytest.raises(BrokerUnavailable):
        await bus.publish("t", 0, b"k", b"v")
    assert now() == 70
    await bus.come_up()
    assert await bus.publish("t", 0, b"k", b"v") == 0
    assert len(await reader.read(1)) == 1


async def test_a_missing_topic_raises() -> None:
    bus = FakeControlTopics({"t": 1})
    for call in (bus.publish("u", 0, b"k", b"v"), bus.end("t", 1), bus.reader("u", 0, 0)):
        with pytest.raises(TopicMissing):
            await call
    assert await bus.partitions("u") == 0


async def test_ensure_creates_grows_and_never_shrinks() -> None:
    bus = FakeControlTopics()
    await bus.ensure("t", 2, {"a": "b"})
    await bus.ensure("t", 3, {"c": "d"})
    await bus.ensure("t", 1, {})
    assert (await bus.partitions("t"), bus.configs) == (3, {"t": {"a": "b"}})


async def test_retention_moves_readers_to_the_oldest_record() -> None:
    bus = FakeControlTopics({"t": 1})
    for n in range(5):
        await bus.publish("t", 0, b"k", b"%d" % n)
    early = await bus.reader("t", 0, 0)
    bus.trim("t", 0, before=3)
    late = await bus.reader("t", 0, 0)
    for reader in (early, late):
        assert [r.offset for r in await reader.read(0)] == [3, 4]


async def test_compaction_keeps_the_last_of_each_key_and_its_offset() -> None:
    bus = FakeControlTopics({"t": 1})
    for key in (b"a", b"b", b"a"):
        await bus.publish("t", 0, key, b"v")
    bus.compact("t", 0)
    assert [r.offset for r in bus.records("t")] == [1, 2]
    assert await bus.end("t", 0) == 3


async def test_a_recreated_topic_has_another_id() -> None:
    bus = FakeControlTopics({"t": 1})
    await bus.publish("t", 0, b"k", b"v")
    reader = await bus.reader("t", 0, 1)
    bus.delete("t")
    await bus.ensure("t", 1, {})
    with pytest.raises(TopicMissing, match="recreated"):
        await reader.read(0)
    with pytest.raises(TopicMissing, match="ends at 0"):
        await bus.reader("t", 0, 1)


async def test_a_closed_reader_cannot_read() -> None:
    reader = await FakeControlTopics({"t": 1}).reader("t", 0, 0)
    await reader.close()
    with pytest.raises(RuntimeError, match="closed"):
        await reader.read(0)
