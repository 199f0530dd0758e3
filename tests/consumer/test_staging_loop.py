"""What a consumer stages, and what it announces: ranges that tell the truth, whatever happens."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest

from binwright.core.messages import Gap, Goodbye, Report, Started, StateQuery
from binwright.core.model import TopicPartition
from binwright.core.ports import GroupOffset

from .bench import METADATA, RULES, C, P, Q, bench, until

pytestmark = pytest.mark.looptime(noop_cycles=1)


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % n for n in range(first, first + count)]


async def test_it_is_ready_without_any_topic_and_says_so() -> None:
    async with bench({}) as b:
        await until(lambda: b.sent(Report) and b.report().ready)
        assert asyncio.get_running_loop().time() < 1.0


async def test_what_is_fetched_is_staged_and_announced_with_its_range() -> None:
    async with bench({"orders": 2}) as b:
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
        await until(lambda: b.reach(P) == 8)
        assert b.ranges(P) == [(2, 5), (5, 8)], "offsets without a record lie inside"
        await until(lambda: b.report().staged_rows == 4)


async def test_without_an_offset_it_begins_where_the_group_is() -> None:
    async with bench({"orders": 3}) as b:
        b.topics.produce(P, *numbered(5))
        b.topics.produce(Q, *numbered(5))
        other = TopicPartition("orders", 2)
        await b.intake.commit({P: GroupOffset(3, "orders-1"), Q: GroupOffset(3, "orders-0")})
        await b.read({P: None, Q: None, other: None})
        await until(lambda: b.sent(Started))
        begun = {p: o for m in b.sent(Started) for p, o in m.offsets.items()}
        assert begun == {P: 3, Q: 0, other: 0}, "an offset of another topic of this name is none"


async def test_latest_begins_at_the_end() -> None:
    async with bench({"orders": 1}, replace(RULES, from_latest=True)) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: None})
        await until(lambda: b.sent(Started))
        assert b.sent(Started)[0].offsets == {P: 5}


async def test_a_stop_is_answered_with_what_is_staged_next() -> None:
    async with bench({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.reach(P) == 5)
        b.topics.produce(P, *numbered(5))
        await asyncio.sleep(0.5)
        stopped = await b.stop(P, Q)
        assert stopped.next == {P: 5, Q: None}
        await asyncio.sleep(5)
        assert b.reach(P) == 5, "what was not staged is dropped"


async def test_a_stop_during_a_write_counts_what_is_being_staged() -> None:
    async with bench({"orders": 1}) as b:
        b.staging.latency_s = 5.0
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await asyncio.sleep(3)
        stopped = await b.stop(P)
        assert stopped.next == {P: 5}
        assert not b.staged()
        await until(lambda: b.ranges(P) == [(0, 5)])


async def test_a_missing_topic_concerns_only_its_own_partitions() -> None:
    async with bench({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({C: None, P: None, TopicPartition("orders", 7): 3})
        await until(lambda: b.reach(P) == 5, 5)
        assert b.report().reading[C] is None
        b.topics.create("clicks", 1)
        b.topics.produce(C, b"x")
        await until(lambda: b.reach(C) == 1)


async def test_no_command_waits_for_a_topic_of_which_kafka_tells_nothing() -> None:
    """B11: neither reports nor replies may stand behind it."""
    async with bench({"orders": 1, "clicks": 1}) as b:
        b.topics.silent.add("clicks")
        b.topics.produce(P, *numbered(5))
        await b.read({C: None, P: 0})
        await until(lambda: b.reach(P) == 5, 5)
        before = len(b.sent(Report))
        assert (await b.stop(P)).next == {P: 5}
        await asyncio.sleep(10)
        assert len(b.sent(Report)) > before + 8


async def test_topics_whose_files_cannot_be_checked_leave_room_for_the_others() -> None:
    async with bench({"orders": 1, "clicks": 1}) as b:
        b.topics.grow(P, 200_000)
        b.topics.grow(C, 50_000)
        await b.read({C: 0, P: 0})
        await until(lambda: b.reach(P) > 0 and b.reach(C) > 0)
        refused = b.intake.topic_id

        async def topic_id(topic: str) -> str | None:
            if topic == "orders":
                await healed.wait()
            return await refused(topic)

        healed = asyncio.Event()
        b.intake.topic_id = topic_id  # type: ignore[method-assign]
        stood = b.reach(P)
        await asyncio.sleep(60)
        assert b.reach(P) <= stood + 200
        assert b.reach(C) > 50 * 50
        healed.set()
        b.topics.grow(P, 0)
        await until(lambda: b.reach(P) == b.topics.bounds(P)[1])
        assert b.values(P) == [bytes(1_000)] * b.reach(P), "and nothing is left out"


async def test_a_partition_that_is_read_again_leaves_nothing_out() -> None:
    async with bench({"orders": 1}) as b:
        b.topics.produce(P, *numbered(50))
        await b.read({P: 0})
        await until(lambda: b.reach(P) == 50)
        b.topics.produce(P, *numbered(50, 50))
        await asyncio.sleep(0.3)
        await b.read({P: 20})
        await until(lambda: b.reach(P) == 100)
        assert b.ranges(P) == [(0, 50), (20, 100)]
        assert b.values(P) == [*numbered(50), *numbered(80, 20)]


async def test_a_topic_made_anew_is_read_from_its_beginning_under_its_own_id() -> None:
    async with bench({"orders": 2}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0, Q: 0})
        await until(lambda: b.reach(P) == 5)
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


async def test_a_topic_made_anew_that_is_shorter_is_noticed_too() -> None:
    async with bench({"orders": 1}) as b:
        b.topics.produce(P, *numbered(50))
        await b.read({P: 0})
        await until(lambda: b.reach(P) == 50)
        b.topics.delete("orders")
        await asyncio.sleep(20)
        b.topics.create("orders", 1)
        b.topics.produce(P, *numbered(3, 100))
        await until(lambda: b.values(P)[50:] == numbered(3, 100))
        assert b.staged()[-1].topic_id == "orders-2"
        assert not b.staged()[-1].cut


async def test_a_log_that_was_cut_goes_on_at_its_end_and_says_so() -> None:
    """A5: nothing of it is staged as if it were new from the beginning."""
    async with bench({"orders": 1}) as b:
        b.topics.produce(P, *numbered(50))
        await b.read({P: 0})
        await until(lambda: b.reach(P) == 50)
        b.topics.cut(P, 40)
        await asyncio.sleep(5)
        b.topics.produce(P, *numbered(3, 100))
        await until(lambda: len(b.ranges(P)) == 2)
        assert b.ranges(P)[1] == (40, 43)
        assert b.staged()[-1].cut == (P,)
        b.topics.produce(P, b"later")
        await until(lambda: len(b.ranges(P)) == 3)
        assert b.staged()[-1].cut == ()


async def test_an_offset_beyond_the_end_that_the_group_landed_is_a_cut() -> None:
    async with bench({"orders": 2}) as b:
        b.topics.produce(P, *numbered(5))
        b.topics.produce(Q, *numbered(5))
        await b.intake.commit({P: GroupOffset(9, "orders-1"), Q: GroupOffset(9, "orders-0")})
        await b.read({P: 9, Q: 9})
        await asyncio.sleep(10)
        b.topics.produce(P, b"p")
        b.topics.produce(Q, b"q")
        await until(lambda: b.reach(P) == 6 and b.reach(Q) == 6)
        assert b.ranges(P) == [(5, 6)]
        assert b.ranges(Q)[0][0] == 0, "what another topic of this name had proves nothing"


async def test_what_retention_took_is_counted_and_lies_inside_the_range() -> None:
    async with bench({"orders": 1}) as b:
        b.topics.produce(P, *numbered(50))
        b.topics.delete_records(P, 30)
        await b.read({P: 10})
        await until(lambda: b.reach(P) == 50)
        assert b.ranges(P) == [(10, 50)]
        await until(lambda: b.report().lost_offsets == 20)


async def test_a_staging_place_that_refuses_for_long_loses_nothing() -> None:
    async with bench({"orders": 1}) as b:
        b.topics.grow(P, 20_000)
        await b.read({P: 0})
        await until(lambda: b.reach(P) > 0)
        b.staging.refuses = "disk full"
        await asyncio.sleep(300)
        held = b.intake.positions[P] - b.reach(P)
        assert held * 1_000 <= 1.2 * RULES.batch.cap_bytes, "fetching pauses"
        assert b.report().busy > 0.5
        b.staging.refuses = ""
        b.topics.grow(P, 0)
        await until(lambda: b.reach(P) == b.topics.bounds(P)[1], 300)
        ranges = b.ranges(P)
        assert all(a[1] == b_[0] for a, b_ in pairwise(ranges))


async def test_a_place_that_refuses_at_the_start_is_waited_for() -> None:
    async with bench({"orders": 1}) as b:
        b.staging.refuses = "no right"
        await asyncio.sleep(20)
        assert not b.report().ready
        b.staging.refuses = ""
        await until(lambda: b.report().ready)


async def test_announcements_outlast_an_outage_of_kafka() -> None:
    async with bench({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.reach(P) == 5)
        await b.bus.go_down()
        b.topics.produce(P, *numbered(5, 5))
        await asyncio.sleep(200)
        await b.bus.come_up()
        await until(lambda: b.reach(P) == 10)
        assert b.values(P) == numbered(10)


async def test_a_landing_topic_that_was_deleted_is_made_again() -> None:
    async with bench({"orders": 1}) as b:
        b.bus.delete("g.landing")
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: "g.landing" in b.bus.configs)
        await until(lambda: b.reach(P) == 5)


async def test_fetching_pauses_while_too_much_waits_to_be_landed() -> None:
    async with bench({"orders": 1}, replace(RULES, staged_bytes=500_000)) as b:
        b.topics.grow(P, 50_000)
        await b.read({P: 0})
        await asyncio.sleep(60)
        stood = b.reach(P)
        assert 500_000 <= b.staging.bytes < 700_000
        await asyncio.sleep(60)
        assert b.reach(P) == stood
        await b.staging.delete("orders", list(b.staging.files["orders"])[:-1])
        await until(lambda: b.reach(P) > stood, 10)


async def test_files_that_nobody_deleted_are_collected_by_age() -> None:
    async with bench({"orders": 1}, replace(RULES, staged_keep_s=40.0)) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.staging.files.get("orders"))
        await asyncio.sleep(30)
        b.topics.produce(P, *numbered(5))
        await asyncio.sleep(35)
        assert [f.rows[P][0].offset for f in b.staging.files["orders"].values()] == [5]


async def test_while_kafka_is_away_no_reports_gather() -> None:
    """C2: a reply of that moment would stand behind them all."""
    async with bench({"orders": 1}) as b:
        await until(lambda: b.sent(Report))
        before = len(b.sent(Report))
        await b.bus.go_down()
        await asyncio.sleep(600)
        await b.bus.come_up()
        await asyncio.sleep(3.0)
        assert len(b.sent(Report)) - before <= 5


async def test_a_report_never_overtakes_a_reply() -> None:
    async with bench({"orders": 1}) as b:
        await b.read({P: 0})
        await until(lambda: b.sent(Report) and P in b.report().reading)
        b.bus.latency_s = 1.5
        await b.stop(P)
        await b.command(StateQuery(term=1))
        await asyncio.sleep(10)
        kinds = [m for m in b.messages() if not isinstance(m, Report) or P not in m.reading]
        first = next(i for i, m in enumerate(kinds) if isinstance(m, Report) and i > 1)
        assert any(type(m).__name__ == "Stopped" for m in kinds[:first])


async def test_gaps_are_asked_for_once() -> None:
    async with bench({"orders": 2}) as b:
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


async def test_a_consumer_alone_stages_nothing_more_and_says_goodbye() -> None:
    async with bench({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.reach(P) == 5)
        b.ingest.leave()
        await until(b.running.done)
        assert b.sent(Goodbye)[0].next == {P: 5}
        assert asyncio.get_running_loop().time() < 20


async def test_noise_for_it_is_skipped() -> None:
    async with bench({"orders": 1}) as b:
        await b.bus.publish(METADATA, 1, b"noise", b"[]")
        b.topics.produce(P, b"x")
        await b.read({P: 0})
        await until(lambda: b.reach(P) == 1)
