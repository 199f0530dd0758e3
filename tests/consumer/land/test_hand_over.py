"""Table writers that stop, start, die or lose their table."""

import asyncio

import pytest

from binwright.testing.lake import Failure

from .scene import P, Scene, once, process, seconds, writing

pytestmark = pytest.mark.looptime


async def test_a_stop_waits_for_the_commit_in_flight() -> None:
    async with writing() as (scene, writer):
        writer.lake.latency_s = 4.0
        await scene.land({P: (0, 10)})
        await seconds(1)
        begun = asyncio.get_running_loop().time()
        writer.writers.stop(["orders"])
        await seconds(1)
        assert not writer.written
        assert not scene.landed()
        await seconds(10)

        assert scene.landed() == once(10)
        (topic, at), *more = writer.written
        assert (topic, more) == ("orders", [])
        assert 2.5 <= at - begun <= 4.1
        assert not scene.files(), "landed files are deleted before the stop ends"
        assert writer.writers.reports() == {}


async def test_a_commit_that_does_not_end_is_abandoned_after_some_seconds() -> None:
    """It lands later, or the next writer's claim fences it: never twice."""
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer, process(scene, name="next") as next_writer:
        await seconds(5)
        writer.lake.latency_s = 40.0
        await scene.land({P: (0, 10)})
        await seconds(1)
        begun = asyncio.get_running_loop().time()
        writer.writers.stop(["orders"])
        await seconds(6)
        ((_, at),) = writer.written
        assert at - begun == pytest.approx(5.0, abs=0.1)
        next_writer.writers.start(["orders"])
        await seconds(60)

        assert next_writer.report().committed[P] == 10
    assert scene.landed() == once(10)


async def test_the_next_writer_continues_while_the_last_ones_commit_is_in_flight() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", name="a") as one, process(scene, name="b") as other:
        for n in range(20):
            await scene.land({P: (n * 10, n * 10 + 10)})
            one.lake.latency_s = other.lake.latency_s = 0.3 * (n % 5)
            writer, next_writer = (one, other) if n % 2 else (other, one)
            writer.writers.stop(["orders"])
            next_writer.writers.start(["orders"])
            await seconds(2.0)
        one.lake.latency_s = other.lake.latency_s = 0.1
        one.writers.stop(["orders"])
        other.writers.stop(["orders"])
        other.writers.start(["orders"])
        await seconds(30)

        assert other.report().committed[P] == 200
    assert scene.landed() == once(200)


async def test_a_start_right_after_a_stop_waits_for_the_stop() -> None:
    async with writing() as (scene, writer):
        writer.lake.latency_s = 2.0
        await scene.land({P: (0, 10)})
        await seconds(1)
        writer.writers.stop(["orders"])
        writer.writers.start(["orders"])
        writer.writers.start(["orders"])
        await scene.land({P: (10, 20)})
        await seconds(30)

        assert [topic for topic, _ in writer.written] == ["orders"]
        assert writer.report().committed[P] == 20
        assert writer.claims == 2
    assert scene.landed() == once(20)


async def test_a_table_lost_to_another_writer_is_no_longer_reported() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", name="a") as one:
        await seconds(5)
        async with process(scene, "orders", name="b") as other:
            await seconds(5)
            await scene.land({P: (0, 10)})
            await seconds(5)

            assert one.lost == ["orders"]
            assert one.writers.reports() == {}
            assert other.report().committed[P] == 10
            one.writers.start(["orders"])  # the controller chooses the next writer
            await seconds(5)
            await scene.land({P: (10, 20)})
            await seconds(20)
            assert other.lost == ["orders"]
    assert scene.landed() == once(20)


async def test_two_concurrent_writers_land_each_row_once() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", name="a") as one:
        await seconds(3)
        async with process(scene, "orders", name="b") as other:
            for n in range(30):
                one.lake.latency_s, other.lake.latency_s = 0.1 * (n % 7), 0.1 * (n % 4)
                await scene.land({P: (n * 10, n * 10 + 10)})
                for each in (one, other):
                    each.writers.start(["orders"])  # the loser gets the table again
                await seconds(1.5)
            await seconds(30)
    assert scene.landed() == once(300)


async def test_a_long_outage_of_spark_costs_only_freshness() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 10)})
        await seconds(5)
        writer.lake.fail_next(*[Failure.UNCLEAR] * 999)
        for n in range(1, 10):
            await scene.land({P: (n * 10, n * 10 + 10)})
            await seconds(5)
        report = writer.report()
        assert report.age_s > 40
        assert report.pending_bytes > 0
        assert "the result is lost" in report.fault
        writer.lake.clear_failures()
        await seconds(20)

        assert writer.report().fault == ""
    assert scene.landed() == once(100)
