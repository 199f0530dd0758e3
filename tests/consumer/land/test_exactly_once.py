"""The rules without which rows are lost or doubled (design/protocol.md), on the product's code."""

import asyncio

import pytest

from binwright.testing.lake import Failure

from .scene import P, Q, Scene, once, process, seconds, writing

pytestmark = pytest.mark.looptime


async def leave_commit_in_flight(scene: Scene, lands_in_s: float) -> None:
    """Land P up to 10 by a writer; kill it while its commit of the next 10 is in flight."""
    async with process(scene, "orders", name="dead") as dead:
        await seconds(5)
        await scene.land({P: (0, 10), Q: (0, 10)})
        await seconds(5)
        assert scene.landed() == once(10)
        dead.lake.latency_s = lands_in_s
        await scene.land({P: (10, 20), Q: (10, 20)})
        while not dead.appending("orders"):
            await seconds(0.01)
        dead.kill()
        await asyncio.sleep(0)


async def test_a_dead_writers_commit_in_flight_cannot_land_after_the_claim() -> None:
    scene = await Scene().prepare()
    await leave_commit_in_flight(scene, lands_in_s=30.0)
    async with process(scene, "orders"):
        await seconds(10)
        assert scene.landed() == once(20)
        await seconds(60)

    assert scene.landed(P) == scene.landed(Q) == once(20)


async def test_of_two_concurrent_claims_at_most_one_keeps_the_table() -> None:
    """Each may delete the other's lease; then both lose it, and the next grant decides."""
    scene = await Scene().prepare()
    async with process(scene, name="a") as one, process(scene, name="b") as other:
        one.lake.latency_s = other.lake.latency_s = 1.0
        one.writers.start(["orders"])
        other.writers.start(["orders"])
        await scene.land({P: (0, 10)})
        await seconds(30)

        assert one.lost or other.lost
        assert len(scene.staging.leases["orders"]) <= 1
        one.writers.start(["orders"])
        await seconds(30)
        assert scene.landed() == once(10)


@pytest.mark.parametrize(
    ("failure", "claims"),
    [(Failure.UNCLEAR_LANDED, 2), (Failure.UNCLEAR, 2), (Failure.CONFLICT, 1)],
)
async def test_a_commit_without_a_verdict_is_followed_by_a_claim(
    failure: Failure, claims: int
) -> None:
    """A conflict is a verdict: the rows go again under the same lease."""
    async with writing() as (scene, writer):
        writer.lake.fail_next(failure)
        await scene.land({P: (0, 10)})
        await seconds(1)
        await scene.land({P: (10, 20)})
        await seconds(20)

        assert scene.landed() == once(20)
        assert not writer.lost
        assert writer.claims == claims
        assert writer.report().fault == ""


async def test_a_commit_that_overran_its_limit_and_landed_later_lands_once() -> None:
    async with writing() as (scene, writer):
        writer.lake.write_timeout_s, writer.lake.latency_s = 2.0, 9.0
        await scene.land({P: (0, 10)})
        await seconds(2.5)
        writer.lake.latency_s = 0.5
        await scene.land({P: (10, 20)})
        await seconds(30)

    assert scene.landed() == once(20)


async def test_a_writer_whose_lease_is_gone_loses_the_table() -> None:
    """Its commit was on its way when another one claimed: it never lands."""
    scene = await Scene().prepare()
    async with process(scene, "orders", name="old") as old:
        await seconds(5)
        old.lake.latency_s = 5.0
        file = await scene.land({P: (0, 10)})
        await seconds(3)
        async with process(scene, "orders", name="new", freshness_s=60.0) as new:
            await seconds(30)
            assert old.lost == ["orders"]
            assert file in scene.files(), "a file that never landed must be kept"
            assert scene.topics.offsets["g"][P].offset == 0
            await seconds(60)
            assert not new.lost

    assert scene.landed() == once(10)


async def test_a_staged_file_is_deleted_only_after_a_confirmed_commit_of_all_its_rows() -> None:
    async with writing() as (scene, writer):
        writer.lake.fail_next(*[Failure.UNCLEAR] * 5, Failure.UNCLEAR_LANDED)
        file = await scene.land({P: (0, 10)})
        for _ in range(400):
            await seconds(0.1)
            assert file in scene.files() or scene.topics.offsets["g"][P].offset == 10
            assert file in scene.files() or scene.landed()
        await seconds(20)

    assert scene.landed() == once(10)
    assert file not in scene.files()


async def test_rows_staged_by_two_readers_land_once() -> None:
    scene = await Scene().prepare()
    scene.produce(P, 100)
    async with process(scene, "orders"):
        for first in range(0, 100, 10):
            await scene.stage({P: (first, first + 10)})
            await scene.stage({P: (max(first - 5, 0), first + 5)})
            await seconds(0.4)
        await seconds(10)

    assert scene.landed() == once(100)
    assert not scene.files()
