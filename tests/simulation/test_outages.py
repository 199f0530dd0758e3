"""Outages of Spark, Kafka, staging or a topic's records: nothing lands twice."""

import asyncio
from dataclasses import replace

import pytest
from tests.simulation.world import INGEST, P, World, until, world

from binwright.consumer.decide.buffer import BatchConfig
from binwright.protocol.metadata import Report
from binwright.protocol.model import Slot
from binwright.testing.lake import Failure

pytestmark = pytest.mark.looptime(noop_cycles=1)

CAP = 200_000


async def start_landing(w: World) -> None:
    w.load(dict.fromkeys(P, 20_000.0))
    await until(w.steady)
    await until(lambda: w.landed() > 0)


@pytest.mark.parametrize(
    "failure", [Failure.UNCLEAR, Failure.UNCLEAR_LANDED, Failure.CONFLICT, Failure.UNREADABLE]
)
async def test_after_minutes_of_failing_commits_everything_lands_once(failure: Failure) -> None:
    async with world({"orders": 4}) as w:
        await start_landing(w)
        w.process(0).lake.fail_next(*[failure] * 120)
        await asyncio.sleep(150)
        assert w.fleet.starts == {Slot(0): 1}, "no consumer gave up or was declared dead"
        w.process(0).lake.clear_failures()
        await w.all_landed_once(300.0)


async def test_while_spark_is_away_reading_continues() -> None:
    """Even for hours: records wait in the staging location."""
    async with world({"orders": 4}) as w:
        await start_landing(w)
        w.process(0).lake.fail_next(*[Failure.UNCLEAR] * 10_000)
        await asyncio.sleep(60)
        lags = [w.topics.bounds(p)[1] - w.process(0).reader.positions[p] for p in P]
        assert max(lags) < 60
        assert w.staging.bytes > 40 * 80_000
        assert w.report(0).staged_bytes > 40 * 80_000
        assert w.report(0).writing["orders"].age_s > 50
        w.process(0).lake.clear_failures()
        await w.all_landed_once(300.0)
        await until(lambda: not w.staging.files["orders"])


async def test_a_long_outage_of_spark_leaves_few_files_and_they_are_small_again_behind_it() -> None:
    async with world({"orders": 4}) as w:
        await start_landing(w)
        w.process(0).lake.fail_next(*[Failure.UNCLEAR] * 100_000)
        await asyncio.sleep(600)
        assert len(w.staging.files["orders"]) < 120
        w.process(0).lake.clear_failures()
        await until(lambda: len(w.staging.files["orders"]) < 5)
        await asyncio.sleep(40)
        before = w.staging.written
        await asyncio.sleep(60)
        assert w.staging.written - before > 40
        await w.all_landed_once(300.0)


async def test_offsets_lost_to_retention_are_counted_and_nothing_else_is_lost() -> None:
    async with world({"orders": 4}) as w:
        w.ingest_config = replace(INGEST, batch=BatchConfig(50_000, 0.6, CAP))
        await start_landing(w)
        w.staging.write_error = "disk full"
        await asyncio.sleep(90)
        w.load(dict.fromkeys(P, 0.0))
        for partition in P[:2]:
            w.topics.delete_records(partition, w.topics.bounds(partition)[1] - 3)
        w.staging.write_error = ""
        await w.all_landed_once(300.0)
        ends = sum(w.topics.bounds(p)[1] for p in P)
        await until(lambda: w.report(0).lost_offsets > 0)
        assert w.report(0).lost_offsets == ends - w.landed()


async def test_while_staging_fails_fetching_stops_at_the_cap() -> None:
    async with world({"orders": 4}) as w:
        w.ingest_config = replace(INGEST, batch=BatchConfig(50_000, 0.6, CAP))
        await start_landing(w)
        w.staging.write_error = "disk full"
        await asyncio.sleep(60)
        before = dict(w.process(0).reader.positions)
        await asyncio.sleep(60)
        assert w.process(0).reader.positions == before
        next_ = w.report(0).reading
        buffered_bytes = sum(before[p] - (next_[p] or 0) for p in P) * 1_000
        assert CAP / 2 < buffered_bytes <= 1.2 * CAP
        assert w.fleet.starts == {Slot(0): 1}
        w.staging.write_error = ""
        await w.all_landed_once(300.0)


async def test_ten_minutes_without_kafka_leave_no_backlog_of_reports() -> None:
    """C2: replies would queue behind the backlog."""
    async with world({"orders": 4}) as w:
        await start_landing(w)
        before = len(w.sent(Report))
        await w.bus.go_down()
        await asyncio.sleep(600)
        await w.bus.come_up()
        await asyncio.sleep(3.0)
        assert len(w.sent(Report)) - before < 10
        await until(w.steady)
        await w.all_landed_once(300.0)


async def test_the_staging_location_is_full_for_minutes() -> None:
    async with world({"orders": 4}) as w:
        await start_landing(w)
        w.staging.capacity = w.staging.bytes + 100_000
        await asyncio.sleep(200)
        w.staging.capacity = None
        await w.all_landed_once(300.0)
