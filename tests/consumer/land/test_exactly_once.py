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


async def test_the_claim_is_committed_before_the_table_is_read() -> None:
    """A dead writer's commit landed while the claim was under way: it must be seen."""
    scene = await Scene().prepare()
    await leave_commit_in_flight(scene, lands_in_s=7.0)
    async with process(scene, "orders") as writer:
        writer.lake.latency_s = 3.0
        await seconds(60)

    assert scene.landed(P) == scene.landed(Q) == once(20)


@pytest.mark.parametrize("failure", [Failure.CONFLICT, Failure.UNCLEAR])
async def test_a_claim_that_ends_in_a_conflict_or_without_a_verdict_is_repeated(
    failure: Failure,
) -> None:
    """The dead writer's commit is still in flight when the next writer's claim ends."""
    scene = await Scene().prepare()
    await leave_commit_in_flight(scene, lands_in_s=12.0)
    async with process(scene, "orders", freshness_s=30.0) as writer:
        writer.lake.fail_next(failure)
        await seconds(90)
        assert writer.claims == 2

    assert scene.landed(P) == scene.landed(Q) == once(20)


async def test_a_dead_writers_commit_in_flight_cannot_land_after_the_claim() -> None:
    scene = await Scene().prepare()
    await leave_commit_in_flight(scene, lands_in_s=30.0)
    async with process(scene, "orders"):
        await seconds(10)
        assert scene.landed() == once(20)
        await seconds(60)

    assert scene.landed(P) == scene.landed(Q) == once(20)


async def test_a_claim_whose_reply_was_lost_is_sent_again() -> None:
    scene = await Scene().prepare()
    async with process(scene) as writer:
        writer.lake.fail_next(Failure.UNCLEAR_LANDED)
        writer.writers.start(["orders"])
        await scene.land({P: (0, 10)})
        await seconds(10)

        assert not writer.lost
        assert scene.landed() == once(10)


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


async def test_a_lost_lease_is_noticed_before_the_next_commit() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", name="old", freshness_s=20.0) as old:
        await scene.land({P: (0, 10)})
        await seconds(5)
        async with process(scene, "orders", name="new"):
            await seconds(40)
            assert old.lost == ["orders"]

    assert scene.landed() == once(10)


async def test_a_persons_change_of_the_table_makes_the_rows_go_again() -> None:
    async with writing() as (scene, writer):
        writer.lake.latency_s = 4.0
        await scene.land({P: (0, 10)})
        while not writer.appending("orders"):
            await seconds(0.01)
        scene.storage.table("orders").change_metadata()
        await seconds(20)

        assert writer.claims == 1
        assert not writer.lost
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


async def test_a_file_that_landed_in_part_is_kept() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await seconds(5)
        scene.produce(Q, 20)
        file = await scene.land({P: (0, 10), Q: (10, 20)})
        await seconds(3)
        assert scene.landed(P) == once(10)
        assert not scene.landed(Q)
        assert file in scene.files()
        await scene.stage({Q: (0, 10)})
        await seconds(3)

    assert scene.landed(P) == once(10)
    assert scene.landed(Q) == once(20)
    assert not scene.files()


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


async def test_a_range_beyond_the_committed_offset_waits() -> None:
    scene = await Scene().prepare()
    scene.produce(P, 30)
    async with process(scene, "orders"):
        await seconds(5)
        await scene.stage({P: (20, 30)})
        await scene.stage({P: (10, 20)})
        await seconds(3)
        assert not scene.landed()
        await scene.stage({P: (0, 10)})
        await seconds(3)

    assert scene.landed() == once(30)


async def test_the_history_is_read_back_beyond_other_processes_commits() -> None:
    """Hundreds of commits of other processes came between."""
    async with writing() as (scene, writer):
        writer.lake.fail_next(Failure.UNCLEAR_LANDED)
        await scene.land({P: (0, 10)})
        await seconds(0.5)
        for _ in range(300):
            scene.storage.table("orders").add_commit()
        await seconds(10)

        assert not writer.lost
        assert writer.report().committed[P] == 10
    assert scene.landed() == once(10)


async def test_a_restarted_attempt_claims_with_another_lease() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        for n in range(5):
            await scene.land({P: (n * 10, n * 10 + 10)})
            await seconds(5)
            writer.writers._tables["orders"].writer._landing_topic_lost("told to")
        await seconds(10)
        assert writer.claims == 6

    assert scene.landed() == once(50)


async def test_a_writer_whose_files_another_has_landed_and_deleted_takes_none_for_lost() -> None:
    """They went after its lease: it ends, and has nothing read again."""
    scene = await Scene().prepare()
    async with process(scene, "orders") as loser:
        await seconds(5)
        loser.lake.latency_s = 10.0
        file = await scene.land({P: (0, 10)})
        while not loser.appending("orders"):
            await seconds(0.01)
        await scene.staging.delete_other_leases("orders", "another's")
        await scene.staging.delete("orders", [file])
        await seconds(30)
        assert (loser.lost, loser.gaps) == (["orders"], [])
