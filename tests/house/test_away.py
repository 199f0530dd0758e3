"""Spark, or a topic's past, is gone for a while: consumers wait, and count what is lost."""

import asyncio

import pytest

from binwright.core.messages import Report
from binwright.core.model import Slot
from binwright.testing.lake import Failure

from .world import P, Process, World, until, world

pytestmark = pytest.mark.looptime

CAP = 200_000
RECORD = 1_000  # bytes of each


def only(w: World) -> Process:
    worker = w.fleet.worker(Slot(0))
    assert isinstance(worker, Process)
    return worker


def fetched(w: World) -> int:
    """Return how many records the only consumer has taken."""
    return sum(only(w).intake.positions.values())


def holes(w: World) -> int:
    return max((m.holes for m in w.heard() if isinstance(m, Report)), default=0)


async def begun(w: World) -> None:
    w.cap_bytes = CAP
    w.load(dict.fromkeys(P, 20_000.0))
    await until(w.steady)


@pytest.mark.parametrize("failure", [Failure.UNCLEAR, Failure.UNCLEAR_LANDED, Failure.CONFLICT])
async def test_spark_is_away_for_minutes_then_everything_lands_once(failure: Failure) -> None:
    async with world({"orders": 4}) as w:
        await begun(w)
        only(w).lake.fail_next(*[failure] * 120)
        await asyncio.sleep(150)
        assert w.fleet.born == {Slot(0): 1}, "nobody gave up, and nobody was declared dead"
        only(w).lake.mend()
        await w.settled(300.0)


async def test_while_spark_is_away_fetching_stops_at_the_cap() -> None:
    async with world({"orders": 4}) as w:
        await begun(w)
        only(w).lake.fail_next(*[Failure.UNCLEAR] * 200)
        await asyncio.sleep(60)
        before = fetched(w)
        await asyncio.sleep(60)
        assert fetched(w) == before
        # The batch that is sent again and again, and the next one.
        assert CAP / 2 < (fetched(w) - w.landed()) * RECORD <= 2 * CAP
        only(w).lake.mend()
        await w.settled(300.0)


async def test_what_retention_takes_meanwhile_is_counted_and_nothing_else_is_lost() -> None:
    async with world({"orders": 4}) as w:
        await begun(w)
        only(w).lake.fail_next(*[Failure.UNCLEAR] * 200)
        await asyncio.sleep(90)
        w.load(dict.fromkeys(P, 0.0))
        taken = {p: w.topics.bounds(p)[1] - 3 for p in P[:2]}
        for partition, before in taken.items():
            w.topics.delete_records(partition, before)
        only(w).lake.mend()
        await w.settled(300.0)
        ends = sum(w.topics.bounds(p)[1] for p in P)
        await until(lambda: holes(w) > 0)
        assert holes(w) == ends - w.landed()
