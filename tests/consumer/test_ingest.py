"""What a consumer replies and reports."""

import asyncio

import pytest
from tests.consumer.harness import COMMANDS, P, Q, harness, numbered, until

from binwright.consumer.events import RowsMissing
from binwright.protocol.commands import StateQuery
from binwright.protocol.metadata import Gap, Goodbye, Report

pytestmark = pytest.mark.looptime(noop_cycles=1)


async def test_a_consumer_without_topics_reports_ready() -> None:
    async with harness({}) as b:
        await until(lambda: b.sent(Report) and b.report().ready)
        assert asyncio.get_running_loop().time() < 1.0


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


async def test_each_staged_file_is_timed_and_a_write_that_failed_is_not() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *numbered(5))
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 5)
        assert b.timed() == len(b.staged()) == 1
        b.staging.write_error = "full"
        b.topics.produce(P, *numbered(5))
        await asyncio.sleep(10)
        assert b.timed() == 1
        b.staging.write_error = ""
        await until(lambda: b.staged_end(P) == 10)
        assert b.timed() == 2


async def test_a_consumer_is_not_ready_until_the_staging_location_is_writable() -> None:
    async with harness({"orders": 1}) as b:
        b.staging.write_error = "no right"
        await asyncio.sleep(20)
        assert not b.report().ready
        b.staging.write_error = ""
        await until(lambda: b.report().ready)


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
            b.ingest.apply_event(RowsMissing("orders", {P: offset}))
        await asyncio.sleep(2)
        await b.bus.come_up()
        await until(lambda: b.sent(Gap))
        await asyncio.sleep(5)
        assert len(b.sent(Gap)) <= 2
        assert b.sent(Gap)[-1].committed == {P: 99}


async def test_of_gaps_of_two_tables_the_lower_offset_is_read_again() -> None:
    async with harness({"orders": 2}) as b:
        await until(lambda: b.sent(Report))
        b.ingest.apply_event(RowsMissing("typed", {P: 7, Q: 1}))
        b.ingest.apply_event(RowsMissing("raw", {P: 9}))
        await until(lambda: b.sent(Gap))
        assert b.sent(Gap)[-1].committed == {P: 7, Q: 1}


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
        await b.bus.publish(COMMANDS, 0, b"noise", b"[]")
        b.topics.produce(P, b"x")
        await b.read({P: 0})
        await until(lambda: b.staged_end(P) == 1)
