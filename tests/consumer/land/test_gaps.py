"""Lost staged files are read again; topics are truncated and recreated."""

from dataclasses import replace

import pytest

from binwright.kafka.control_records import LANDING_PARTITIONS, landing_partition

from .scene import LANDING, P, Q, Scene, once, process, seconds, writing

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("harm", ["lost", "torn"])
async def test_rows_of_a_missing_or_damaged_file_are_read_again(harm: str) -> None:
    async with writing() as (scene, writer):
        unreadable = await scene.land({P: (0, 10)})
        if harm == "lost":
            del scene.staging.files["orders"][unreadable]
        else:
            scene.staging.files["orders"][unreadable].torn = True
        await scene.land({P: (10, 20), Q: (0, 10)})
        await seconds(3)
        assert writer.gaps[0] == {P: 0}
        assert scene.landed(Q) == once(10), "another partition does not wait"
        await scene.stage({P: (0, 10)})
        await seconds(5)

        assert scene.landed() == once(20)
        left = {unreadable} if harm == "torn" else set()
        assert scene.files() == left, "it is left to collection by age"
        assert writer.report().state == "landing"


async def test_a_recreated_landing_topic_longer_than_the_old_is_recognised_by_its_id() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 10)})
        await seconds(7)
        scene.bus.delete(LANDING)
        await scene.bus.ensure(LANDING, LANDING_PARTITIONS, {})
        for n in range(1, 6):
            await scene.land({P: (n * 10, n * 10 + 10)})
        await seconds(60)

        assert writer.claims == 2
    assert scene.landed() == once(60)


async def test_landing_recovers_after_the_landing_topic_was_missing() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 10)})
        await seconds(3)
        scene.bus.delete(LANDING)
        await seconds(120)
        assert "landing" in writer.report().fault
        await scene.bus.ensure(LANDING, LANDING_PARTITIONS, {})
        await scene.land({P: (10, 20)})
        await seconds(30)

        assert writer.report().fault == ""
    assert scene.landed() == once(20)


async def test_a_truncated_landing_topic_is_read_from_its_end() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        for n in range(3):
            await scene.land({P: (n * 10, n * 10 + 10)})
            await seconds(3)
        scene.bus.cut(LANDING, landing_partition("orders"), 1)
        await seconds(20)
        await scene.land({P: (30, 40)})
        await seconds(20)

        assert scene.landed() == once(40)
        assert writer.report().committed[P] == 40


# --- histories that were cleaned up -------------------------------------------------------------


async def test_a_file_that_has_the_last_copy_of_rows_lands_before_what_retention_left() -> None:
    """As its consumer announces it again, at the moment in which Kafka's records are gone."""
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 10)})
        await seconds(20)
    scene.produce(P, 20)
    kept = await scene.write({P: (10, 30)})
    scene.topics.delete_records(P, 30)
    scene.produce(P, 5)
    async with process(scene, "orders", name="next") as writer:
        await seconds(40)
        assert {P: 10} in writer.gaps
        left = replace(await scene.write({P: (10, 35)}), rows=5)
        file = scene.staging.files["orders"][left.file]
        file.rows = {P: [r for r in file.rows[P] if r.offset >= 30]}
        file.footer = replace(file.footer, rows=5)
        for message in (kept, left, kept):
            await scene.announce(message)
        await seconds(40)
        assert scene.landed(P) == once(35)
        assert scene.files() == set()
