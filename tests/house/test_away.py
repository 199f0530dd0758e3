"""Spark, Kafka, the staging place or a topic's past is gone for a while: nothing lands twice."""

import asyncio
from dataclasses import replace

import pytest

from binwright.core.consumer.batch import BatchRules
from binwright.core.messages import Report
from binwright.core.model import Slot
from binwright.testing.lake import Failure

from .world import INGEST, P, World, until, world

pytestmark = pytest.mark.looptime(noop_cycles=1)

CAP = 200_000


async def begun(w: World) -> None:
    w.load(dict.fromkeys(P, 20_000.0))
    await until(w.steady)
    await until(lambda: w.landed() > 0)


@pytest.mark.parametrize(
    "failure", [Failure.UNCLEAR, Failure.UNCLEAR_LANDED, Failure.CONFLICT, Failure.UNREADABLE]
)
async def test_commits_fail_for_minutes_then_everything_lands_once(failure: Failure) -> None:
    async with world({"orders": 4}) as w:
        await begun(w)
        w.process(0).lake.fail_next(*[failure] * 120)
        await asyncio.sleep(150)
        assert w.fleet.born == {Slot(0): 1}, "nobody gave up, and nobody was declared dead"
        w.process(0).lake.mend()
        await w.settled(300.0)


async def test_while_spark_is_away_reading_goes_on() -> None:
    """For hours: what is read waits in the staging place."""
    async with world({"orders": 4}) as w:
        await begun(w)
        w.process(0).lake.fail_next(*[Failure.UNCLEAR] * 10_000)
        await asyncio.sleep(60)
        behind = [w.topics.bounds(p)[1] - w.process(0).intake.positions[p] for p in P]
        assert max(behind) < 60
        assert w.staging.bytes > 40 * 80_000
        assert w.report(0).staged_bytes > 40 * 80_000
        assert w.report(0).writing["orders"].age_s > 50
        w.process(0).lake.mend()
        await w.settled(300.0)
        await until(lambda: not w.staging.files["orders"])


async def test_what_retention_takes_meanwhile_is_counted_and_nothing_else_is_lost() -> None:
    async with world({"orders": 4}) as w:
        w.ingest_rules = replace(INGEST, batch=BatchRules(50_000, 0.6, CAP))
        await begun(w)
        w.staging.refuses = "disk full"
        await asyncio.sleep(90)
        w.load(dict.fromkeys(P, 0.0))
        for partition in P[:2]:
            w.topics.delete_records(partition, w.topics.bounds(partition)[1] - 3)
        w.staging.refuses = ""
        await w.settled(300.0)
        ends = sum(w.topics.bounds(p)[1] for p in P)
        await until(lambda: w.report(0).lost_offsets > 0)
        assert w.report(0).lost_offsets == ends - w.landed()


async def test_while_nothing_can_be_staged_fetching_stops_at_the_cap() -> None:
    async with world({"orders": 4}) as w:
        w.ingest_rules = replace(INGEST, batch=BatchRules(50_000, 0.6, CAP))
        await begun(w)
        w.staging.refuses = "disk full"
        await asyncio.sleep(60)
        before = dict(w.process(0).intake.positions)
        await asyncio.sleep(60)
        assert w.process(0).intake.positions == before
        next_ = w.report(0).reading
        held = sum(before[p] - (next_[p] or 0) for p in P) * 1_000
        assert CAP / 2 < held <= 1.2 * CAP
        assert w.fleet.born == {Slot(0): 1}
        w.staging.refuses = ""
        await w.settled(300.0)


async def test_kafka_away_for_ten_minutes_leaves_no_pile_of_reports() -> None:
    """C2: a reply of that moment would stand behind them all."""
    async with world({"orders": 4}) as w:
        await begun(w)
        before = len(w.sent(Report))
        await w.bus.go_down()
        await asyncio.sleep(600)
        await w.bus.come_up()
        await asyncio.sleep(3.0)
        assert len(w.sent(Report)) - before < 10
        await until(w.steady)
        await w.settled(300.0)


async def test_the_staging_place_is_full_for_minutes() -> None:
    async with world({"orders": 4}) as w:
        await begun(w)
        w.staging.capacity = w.staging.bytes + 100_000
        await asyncio.sleep(200)
        w.staging.capacity = None
        await w.settled(300.0)
