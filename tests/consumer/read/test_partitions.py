"""Partitions are read from the right offset, under every fault of their log and topic."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.consumer.harness import CONFIG, C, ConsumerHarness, P, Q, harness, numbered, until

from binwright.protocol.errors import TableRefused
from binwright.protocol.landing import OffsetRange
from binwright.protocol.metadata import Report, Started
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset, Record, UndecodableBatch
from binwright.tables.masks import MaskSettings
from binwright.tables.ports import Footer
from binwright.tables.settings import TableSettings
from binwright.tables.targets import Target
from binwright.testing.records import in_columns
from binwright.testing.staging import FakeStaging

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


async def test_a_partition_without_a_leader_delays_no_first_start_of_another() -> None:
    async with harness({"orders": 2}) as b:
        b.topics.produce(Q, *numbered(5))
        b.topics.log(P).leader = None
        await b.read({P: None, Q: None})
        await until(lambda: b.staged_end(Q) == 5, 5)
        await until(lambda: b.report().reading == {P: None, Q: 5})
        b.topics.log(P).leader = 1
        b.topics.produce(P, b"x")
        await until(lambda: b.staged_end(P) == 1)


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


@pytest.mark.parametrize("away", [False, True])
async def test_what_retention_deleted_and_was_staged_is_announced_again_and_first(
    *, away: bool
) -> None:
    """Its announcement expired while the table took no rows: the file has the last copy of them."""
    async with harness({"orders": 2}) as b:
        b.topics.produce(P, *numbered(50))

        async def leave(name: str, topic_id: str, ranges: Mapping[int, tuple[int, int]]) -> None:
            rows = {
                TopicPartition("orders", p): [Record(o, 0, None, b"x") for o in range(*each)]
                for p, each in ranges.items()
            }
            count = sum(map(len, rows.values()))
            footer = Footer(topic_id, count, ranges, cut=frozenset({0}), topic="orders")
            await b.staging.write("orders", name, in_columns(rows), footer)

        await leave("3-7-2-0a1b2c3d.parquet", "orders-1", {0: (20, 30)})
        await leave("3-7-1-0a1b2c3d.parquet", "orders-1", {0: (5, 20), 1: (0, 2)})
        await leave("3-7-3-0a1b2c3d.parquet", "orders-1", {0: (30, 50)})  # Kafka has these
        await leave("3-7-4-0a1b2c3d.parquet", "an earlier one", {0: (10, 30)})
        b.topics.delete_records(P, 30)
        if away:
            b.staging.write_error = "away"
        await b.read({P: 10})
        if away:
            await asyncio.sleep(30)
            assert b.staged() == [], "behind what is announced now they would be lost"
            b.staging.write_error = ""
        await until(lambda: b.staged_end(P) == 50)
        first, second, own = b.staged()
        assert [first.file[:5], second.file[:5]] == ["3-7-1", "3-7-2"]
        assert (first.rows, first.slot, first.epoch, first.cut) == (17, 3, 7, (P,))
        assert b.staging.files["orders"][first.file].footer.agrees(first)
        assert [*own.ranges.items()] == [(P, OffsetRange(10, 50))]
        b.topics.produce(P, b"x")
        await until(lambda: b.staged_end(P) == 51)
        assert len(b.staged()) == 4, "once"


async def test_a_partition_that_ends_in_a_marker_is_announced_up_to_its_end() -> None:
    """Else its table's writer would find it behind for ever."""
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 5)
        b.topics.skip(P, 1)
        await until(lambda: b.staged_end(P) == 6)
        assert b.ranges(P) == [(0, 5), (5, 6)]
        assert b.staged()[-1].rows == 0
        await until(lambda: b.report().reading == {P: 6})


async def test_a_marker_that_retention_deletes_after_it_was_read_is_no_lost_record() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        b.topics.skip(P, 1)
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 6)
        b.topics.delete_records(P, 6)
        for _ in range(3):
            stopped = await b.stop(P)
            await b.read(stopped.next)
            await asyncio.sleep(10)
        assert b.report().lost_offsets == 0


async def test_lost_records_are_counted_once_also_if_none_follows() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(50))
        b.topics.delete_records(P, 50)
        await b.read({P: 10})
        await until(lambda: b.staged_end(P) == 50)
        for _ in range(3):
            stopped = await b.stop(P)
            await b.read(stopped.next)
            await asyncio.sleep(10)
        assert b.report().lost_offsets == 40


# --- batches that cannot be decoded --------------------------------------------------------------

BATCH = UndecodableBatch(5, 8, "CorruptRecordException: Invalid CRC", b"stored")


async def test_a_batch_that_cannot_be_decoded_is_kept_counted_and_stepped_over() -> None:
    async with harness({"orders": 1}) as b:
        b.reader.torn[P] = BATCH
        b.topics.produce(P, *numbered(15))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 15)
        assert b.values(P) == numbered(5) + numbered(7, 8)
        assert list(b.staging.kept.values()) == [b"stored"]
        ((topic, name),) = b.staging.kept
        assert topic == "orders"
        assert name.startswith("undecodable-0-5-")
        await until(lambda: b.report().lost_offsets == 3)


@pytest.mark.parametrize("masked", [True, False])
async def test_a_batch_of_a_topic_with_a_mask_is_not_kept(masked: bool) -> None:
    """Nor is one whose tables are not known."""
    mask = MaskSettings(key="null")
    entry = TableSettings(topics=("orders",), format="raw", mask=mask)

    def targets(topic: str) -> list[Target]:
        if not masked:
            raise TableRefused("injected")
        return [Target(topic, topic), Target(topic, "other", entry)]

    config = replace(CONFIG, targets=targets)
    async with harness({"orders": 1}, config) as b:
        b.reader.torn[P] = BATCH
        b.topics.produce(P, *numbered(15))
        await b.read({P: 0})
        await until(lambda: bool(b.sent(Report)) and b.report().lost_offsets == 3)
        assert not b.staging.kept


async def test_a_batch_at_the_end_is_stepped_over_in_a_range_of_its_own() -> None:
    async with harness({"orders": 1}) as b:
        b.reader.torn[P] = BATCH
        b.topics.produce(P, *numbered(8))
        await b.read({P: 5})
        await until(lambda: b.ranges(P) == [(5, 8)])
        assert b.staged()[0].rows == 0


async def test_a_batch_is_stepped_over_only_once_it_is_kept() -> None:
    async with harness({"orders": 2}) as b:
        b.reader.torn[P] = BATCH
        b.staging.write_error = "No space left on device"
        b.topics.produce(P, *numbered(15))
        await b.read({P: 5, Q: 0})
        await asyncio.sleep(100)
        assert b.reader.positions.keys() == {Q}
        assert b.report().lost_offsets == 0
        b.staging.write_error = ""
        await until(lambda: b.staged_end(P) == 15)
        assert len(b.staging.kept) == 1


async def test_a_partition_that_is_stopped_meanwhile_is_not_read_behind_the_batch() -> None:
    async with harness({"orders": 1}) as b:
        b.reader.torn[P] = BATCH
        b.staging.latency_s = 5.0
        b.topics.produce(P, *numbered(15))
        await b.read({P: 5})
        await asyncio.sleep(2)
        assert (await b.stop(P)).next == {P: 5}
        await asyncio.sleep(20)
        assert P not in b.reader.positions
        assert b.report().lost_offsets == 0


# --- large batches -------------------------------------------------------------------------------

LARGE = UndecodableBatch(5, 8, "it inflates to more than", b"stored", large=True)


@asynccontextmanager
async def large_batch(staging: FakeStaging) -> AsyncIterator[ConsumerHarness]:
    """Run a consumer until it has met a large batch at offset 5, which is not there as a whole."""
    async with harness({"orders": 1}, staging=staging) as b:
        b.reader.torn[P] = LARGE
        b.topics.produce(P, *numbered(6))
        before = len(marks(staging))
        await b.read({P: 0})
        await until(lambda: len(marks(staging)) > before)
        yield b


def marks(staging: FakeStaging) -> list[str]:
    return sorted(name[-6:] for _, name in staging.kept if name.endswith(".mark"))


async def test_a_large_batch_is_decoded_behind_a_mark_which_goes_when_its_rows_are() -> None:
    async with large_batch(FakeStaging()) as b:
        await until(lambda: b.staged_end(P) == 6)
        await asyncio.sleep(5)
        assert marks(b.staging) == ["1.mark"], "some of its rows are not decoded yet"
        b.topics.produce(P, *numbered(2, 6))
        await until(lambda: not b.staging.kept)
        assert b.values(P) == numbered(8)
        assert b.report().lost_offsets == 0


async def test_a_mark_goes_when_rows_are_decoded_though_their_file_cannot_be_written() -> None:
    """Who ends meanwhile was not ended by the batch."""
    async with large_batch(FakeStaging()) as b:
        await until(lambda: b.staged_end(P) == 6)
        b.staging.latency_s = 20.0
        b.topics.produce(P, *numbered(2, 6))
        await until(lambda: not b.staging.kept)
        assert b.staged_end(P) == 6
        await until(lambda: b.staged_end(P) == 8)
        assert b.values(P) == numbered(8)


async def test_a_batch_that_ended_two_consumers_is_kept_and_stepped_over_by_the_third() -> None:
    """Else it would end every consumer of the group, one after the other."""
    staging = FakeStaging()
    for ended in range(2):
        async with large_batch(staging):
            assert len(marks(staging)) == ended + 1
    async with harness({"orders": 1}, staging=staging) as b:
        b.reader.torn[P] = LARGE
        b.topics.produce(P, *numbered(10))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 10)
        assert b.values(P) == numbered(5) + numbered(2, 8)
        await until(lambda: b.report().lost_offsets == 3)
    assert b"stored" in staging.kept.values()


async def test_a_partition_that_is_stopped_takes_its_mark_along() -> None:
    """A move is no death."""
    staging = FakeStaging()
    for _ in range(3):
        async with large_batch(staging) as b:
            await b.stop(P)
            await until(lambda: not staging.kept)


async def test_who_ended_for_another_reason_counts_no_more_once_the_batch_is_staged() -> None:
    staging = FakeStaging()
    async with large_batch(staging):
        pass
    async with large_batch(staging) as b:
        assert marks(staging) == ["1.mark", "2.mark"]
        b.topics.produce(P, *numbered(2, 6))
        await until(lambda: not staging.kept)
