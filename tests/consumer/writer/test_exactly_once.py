"""The rules that lose or double rows when left out (design.md sec. 4), on the product's code."""

import asyncio

import pytest

from binwright.testing.lake import Failure

from .scene import P, Q, Scene, once, process, seconds, writing

pytestmark = pytest.mark.looptime


async def zombie(scene: Scene, lands_in_s: float) -> None:
    """Land P up to 10 by a writer; leave its commit of the next 10 on its way when it is killed."""
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


async def test_the_claim_is_committed_before_it_is_read_what_is_in_the_table() -> None:
    """A dead writer's commit landed while the claim was under way: it must be seen."""
    scene = await Scene().prepare()
    await zombie(scene, lands_in_s=7.0)
    async with process(scene, "orders") as writer:
        writer.lake.latency_s = 3.0
        await seconds(60)

    assert scene.landed(P) == scene.landed(Q) == once(20)


@pytest.mark.parametrize("failure", [Failure.CONFLICT, Failure.UNCLEAR])
async def test_a_claim_that_ends_in_a_conflict_or_without_a_word_proves_nothing(
    failure: Failure,
) -> None:
    """The dead writer's commit is still on its way when the heir believes that it has claimed."""
    scene = await Scene().prepare()
    await zombie(scene, lands_in_s=12.0)
    async with process(scene, "orders", freshness_s=30.0) as writer:
        writer.lake.fail_next(failure)
        await seconds(90)
        assert writer.claims == 2

    assert scene.landed(P) == scene.landed(Q) == once(20)


async def test_what_a_dead_writer_has_on_its_way_cannot_land_after_the_claim() -> None:
    scene = await Scene().prepare()
    await zombie(scene, lands_in_s=30.0)
    async with process(scene, "orders"):
        await seconds(10)
        assert scene.landed() == once(20)
        await seconds(60)

    assert scene.landed(P) == scene.landed(Q) == once(20)


async def test_a_claim_whose_word_was_lost_is_its_own_when_it_is_skipped() -> None:
    scene = await Scene().prepare()
    async with process(scene) as writer:
        writer.lake.fail_next(Failure.UNCLEAR_LANDED)
        writer.writers.start(["orders"], 1)
        await scene.land({P: (0, 10)})
        await seconds(10)

        assert not writer.lost
        assert scene.landed() == once(10)


async def test_of_two_that_claim_at_once_one_gives_up_the_role() -> None:
    scene = await Scene().prepare()
    async with process(scene, name="a") as one, process(scene, name="b") as other:
        one.lake.latency_s = other.lake.latency_s = 1.0
        one.writers.start(["orders"], 1)
        other.writers.start(["orders"], 1)
        await scene.land({P: (0, 10)})
        await seconds(30)

        assert sorted(one.lost + other.lost) == ["orders"]
        assert sorted([*one.writers.reports(), *other.writers.reports()]) == ["orders"]
        assert scene.landed() == once(10)


@pytest.mark.parametrize("failure", [Failure.UNCLEAR_LANDED, Failure.UNCLEAR, Failure.CONFLICT])
async def test_a_commit_without_a_verdict_is_sent_again_as_it_was(failure: Failure) -> None:
    """The same batch under the same version, though more was staged meanwhile."""
    async with writing() as (scene, writer):
        writer.lake.fail_next(failure)
        await scene.land({P: (0, 10)})
        await seconds(1)
        await scene.land({P: (10, 20)})
        await seconds(20)

        assert scene.landed() == once(20)
        assert not writer.lost
        assert writer.claims == 1
        assert writer.report().fault == ""


async def test_a_commit_that_overran_its_time_and_landed_later_lands_once() -> None:
    async with writing() as (scene, writer):
        writer.lake.write_timeout_s, writer.lake.latency_s = 2.0, 9.0
        await scene.land({P: (0, 10)})
        await seconds(2.5)
        writer.lake.latency_s = 0.5
        await scene.land({P: (10, 20)})
        await seconds(30)

    assert scene.landed() == once(20)


async def test_a_refusal_says_nothing_of_what_was_sent_before_without_a_verdict() -> None:
    """The first attempt lands while the table is waited for: only a new claim shuts it out."""
    async with writing() as (scene, writer):
        writer.lake.write_timeout_s, writer.lake.latency_s = 4.5, 8.0
        await scene.land({P: (0, 10)})
        await seconds(5)
        writer.lake.latency_s = 0.1
        writer.lake.fail_next(Failure.REFUSED)
        await seconds(40)

        assert writer.claims >= 2
    assert scene.landed() == once(10)


async def test_a_skipped_commit_that_has_no_stamp_of_its_own_was_shut_out() -> None:
    """It never landed, and a later writer claimed: its rows are the later writer's to land."""
    scene = await Scene().prepare()
    async with process(scene, "orders", name="old") as old:
        await seconds(5)
        old.lake.latency_s = 5.0
        old.lake.fail_next(Failure.UNCLEAR)
        file = await scene.land({P: (0, 10)})
        await seconds(3)
        async with process(scene, "orders", name="new", freshness_s=60.0) as new:
            await seconds(30)
            assert old.lost == ["orders"]
            assert file in scene.files(), "what never landed is not to be deleted"
            assert scene.topics.offsets["g"][P].offset == 0
            await seconds(60)
            assert not new.lost

    assert scene.landed() == once(10)


async def test_a_commit_that_is_skipped_at_once_was_shut_out() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", name="old", freshness_s=20.0) as old:
        await scene.land({P: (0, 10)})
        await seconds(5)
        async with process(scene, "orders", name="new"):
            await seconds(40)
            assert old.lost == ["orders"]

    assert scene.landed() == once(10)


async def test_a_staged_file_is_deleted_only_when_a_commit_with_a_verdict_holds_all_of_it() -> None:
    async with writing() as (scene, writer):
        writer.lake.fail_next(*[Failure.UNCLEAR] * 5, Failure.UNCLEAR_LANDED)
        file = await scene.land({P: (0, 10)})
        for _ in range(40):
            await seconds(0.1)
            assert file in scene.files() or scene.topics.offsets["g"][P].offset == 10
            assert file in scene.files() or scene.landed()
        await seconds(10)

    assert scene.landed() == once(10)
    assert file not in scene.files()


async def test_a_file_of_which_only_a_part_landed_stays() -> None:
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


async def test_what_two_readers_staged_lands_once() -> None:
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


async def test_a_range_that_begins_later_than_what_is_committed_waits() -> None:
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


async def test_a_verdict_is_looked_for_as_far_back_as_others_commits_need() -> None:
    """Hundreds of commits of somebody else's came between."""
    async with writing() as (scene, writer):
        writer.lake.fail_next(Failure.UNCLEAR_LANDED)
        await scene.land({P: (0, 10)})
        await seconds(1.2)
        for _ in range(300):
            scene.storage.table("orders").note()
        await seconds(10)

        assert not writer.lost
        assert writer.report().committed[P] == 10
    assert scene.landed() == once(10)


async def test_the_numbers_of_an_epoch_are_never_used_twice_by_an_attempt_that_begins_anew() -> (
    None
):
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        for n in range(5):
            await scene.land({P: (n * 10, n * 10 + 10)})
            await seconds(5)
            writer.writers._writing["orders"][0]._lose_landing("told to")
        await seconds(10)
        assert writer.claims == 6

    assert scene.landed() == once(50)
