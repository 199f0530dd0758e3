"""What a consumer stages and announces: the ranges are right under every fault."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.consumer.harness import CONFIG, METADATA, C, P, Q, harness, until

from binwright.protocol.messages import Gap, Goodbye, Report, Started, StateQuery
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset

pytestmark = pytest.mark.looptime(noop_cycles=1)


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % n for n in range(first, first + count)]


async def test_a_consumer_without_topics_reports_ready() -> None:
    async with harness({}) as b:
        await until(lambda: b.sent(Report) and b.report().ready)
        assert asyncio.get_running_loop().time() < 1.0


async def test_fetched_records_are_staged_and_announced_with_their_range() -> None:
    async with harness({"orders": 2}) as b:
        b.topics.produce(P, *numbered(5))
        b.topics.skip(P, 2)
        await b.read({P: 2, Q: 0})
        await until(b.staged)
        (staged,) = b.staged()
        assert staged.ranges == {P: (2, 5)}
        assert (staged.topic_id, staged.rows, staged.cut) == ("orders-1", 3, ())
        assert b.values(P) == numbered(3, 2)
        assert staged.file.startswith(f"0-{b.epoch}-1-")
        b.topics.produce(P, *numbered(1, 7))
        await until(lambda: b.staged_end(P) == 8)
        assert b.ranges(P) == [(2, 5), (5, 8)], "offsets without a record lie inside"
        await until(lambda: b.report().staged_rows == 4)


async def test_without_an_offset_reading_begins_at_the_groups_offset() -> None:
    async with harness({"orders": 3}) as b:
        b.topics.produce(P, *numbered(5))
        b.topics.produce(Q, *numbered(5))
        other = TopicPartition("orders", 2)
        await b.intake.commit({P: GroupOffset(3, "orders-1"), Q: GroupOffset(3, "orders-0")})
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


async def test_the_reply_to_a_stop_has_the_next_offset_to_stage() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 5)
        b.topics.produce(P, *numbered(5))
        await asyncio.sleep(0.5)
        stopped = await b.stop(P, Q)
        assert stopped.next == {P: 5, Q: None}
        await asyncio.sleep(5)
        assert b.staged_end(P) == 5, "what was not staged is dropped"


async def test_a_stop_during_a_write_counts_the_rows_being_staged() -> None:
    async with harness({"orders": 1}) as b:
        b.staging.latency_s = 5.0
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await asyncio.sleep(3)
        stopped = await b.stop(P)
        assert stopped.next == {P: 5}
        assert not b.staged()
        await until(lambda: b.ranges(P) == [(0, 5)])


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
        refused = b.intake.topic_id

        async def topic_id(topic: str) -> str | None:
            if topic == "orders":
                await healed.wait()
            return await refused(topic)

        healed = asyncio.Event()
        b.intake.topic_id = topic_id  # type: ignore[method-assign]
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
        await b.intake.commit({P: GroupOffset(9, "orders-1"), Q: GroupOffset(9, "orders-0")})
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


async def test_a_long_outage_of_the_staging_location_loses_nothing() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.grow(P, 20_000)
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) > 0)
        b.staging.write_error = "disk full"
        await asyncio.sleep(300)
        buffered = b.intake.positions[P] - b.staged_end(P)
        assert buffered * 1_000 <= 1.2 * CONFIG.batch.cap_bytes, "fetching pauses"
        assert b.report().busy > 0.5
        b.staging.write_error = ""
        b.topics.grow(P, 0)
        await until(lambda: b.staged_end(P) == b.topics.bounds(P)[1], 300)
        ranges = b.ranges(P)
        assert all(a[1] == following[0] for a, following in pairwise(ranges))


async def test_a_consumer_is_not_ready_until_the_staging_location_is_writable() -> None:
    async with harness({"orders": 1}) as b:
        b.staging.write_error = "no right"
        await asyncio.sleep(20)
        assert not b.report().ready
        b.staging.write_error = ""
        await until(lambda: b.report().ready)


async def test_announcements_survive_an_outage_of_kafka() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 5)
        await b.bus.go_down()
        b.topics.produce(P, *numbered(5, 5))
        await asyncio.sleep(200)
        await b.bus.come_up()
        await until(lambda: b.staged_end(P) == 10)
        assert b.values(P) == numbered(10)


async def test_a_deleted_landing_topic_is_recreated() -> None:
    async with harness({"orders": 1}) as b:
        b.bus.delete("g.landing")
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: "g.landing" in b.bus.configs)
        await until(lambda: b.staged_end(P) == 5)


async def test_fetching_pauses_while_too_much_is_staged_and_not_landed() -> None:
    async with harness({"orders": 1}, replace(CONFIG, staged_bytes=500_000)) as b:
        b.topics.grow(P, 50_000)
        await b.read({P: 0})
        await asyncio.sleep(60)
        before = b.staged_end(P)
        assert 500_000 <= b.staging.bytes < 700_000
        await asyncio.sleep(60)
        assert b.staged_end(P) == before
        await b.staging.delete("orders", list(b.staging.files["orders"])[:-1])
        await until(lambda: b.staged_end(P) > before, 10)


async def test_files_that_were_not_deleted_are_collected_by_age() -> None:
    async with harness({"orders": 1}, replace(CONFIG, staged_keep_s=40.0)) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.staging.files.get("orders"))
        await asyncio.sleep(30)
        b.topics.produce(P, *numbered(5))
        await asyncio.sleep(35)
        assert [f.rows[P][0].offset for f in b.staging.files["orders"].values()] == [5]


async def test_during_an_outage_of_kafka_reports_do_not_pile_up() -> None:
    """Else a reply would wait behind all of them."""
    async with harness({"orders": 1}) as b:
        await until(lambda: b.sent(Report))
        before = len(b.sent(Report))
        await b.bus.go_down()
        await asyncio.sleep(600)
        await b.bus.come_up()
        await asyncio.sleep(3.0)
        assert len(b.sent(Report)) - before <= 5


async def test_a_report_never_overtakes_a_reply() -> None:
    async with harness({"orders": 1}) as b:
        await b.read({P: 0})
        await until(lambda: b.sent(Report) and P in b.report().reading)
        b.bus.latency_s = 1.5
        await b.stop(P)
        await b.command(StateQuery(term=1))
        await asyncio.sleep(10)
        kinds = [m for m in b.messages() if not isinstance(m, Report) or P not in m.reading]
        first = next(i for i, m in enumerate(kinds) if isinstance(m, Report) and i > 1)
        assert any(type(m).__name__ == "Stopped" for m in kinds[:first])


async def test_gaps_are_merged_into_one_message() -> None:
    async with harness({"orders": 2}) as b:
        await until(lambda: b.sent(Report))
        await b.bus.go_down()
        for offset in range(100):
            b.ingest.gap({P: offset})
        await asyncio.sleep(2)
        await b.bus.come_up()
        await until(lambda: b.sent(Gap))
        await asyncio.sleep(5)
        assert len(b.sent(Gap)) <= 2
        assert b.sent(Gap)[-1].committed == {P: 99}


async def test_a_leaving_consumer_without_commands_sends_goodbye() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 5)
        b.ingest.leave()
        await until(b.running.done)
        assert b.sent(Goodbye)[0].next == {P: 5}
        assert asyncio.get_running_loop().time() < 20


async def test_malformed_commands_are_skipped() -> None:
    async with harness({"orders": 1}) as b:
        await b.bus.publish(METADATA, 1, b"noise", b"[]")
        b.topics.produce(P, b"x")
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 1)
