"""Lost staged files are read again; topics are truncated and recreated."""

from dataclasses import replace

import pytest

from binwright.kafka.control_records import LANDING_PARTITIONS, landing_partition
from binwright.testing.lake import Failure

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


async def test_rows_are_read_again_when_all_files_of_a_table_are_lost() -> None:
    async with writing() as (scene, writer):
        for n in range(5):
            await scene.land({P: (n * 10, n * 10 + 10)})
        scene.staging.lose("orders")
        await seconds(3)
        await scene.stage({P: (writer.gaps[0][P], 50)})
        await seconds(5)

    assert scene.landed() == once(50)


async def test_a_file_lost_during_a_commit_without_a_verdict_lands_once() -> None:
    """The commit has read the file, and lands after it was announced again."""
    async with writing() as (scene, writer):
        writer.lake.write_timeout_s, writer.lake.latency_s = 4.5, 8.0
        file = await scene.land({P: (0, 10)})
        await seconds(5)
        writer.lake.latency_s = 0.1
        del scene.staging.files["orders"][file]
        await seconds(5)
        await scene.stage({P: (0, 10)})
        await seconds(30)

    assert scene.landed() == once(10)


async def test_a_read_failure_without_a_damaged_file_is_a_refusal() -> None:
    async with writing() as (scene, writer):
        writer.lake.fail_next(Failure.UNREADABLE)
        await scene.land({P: (0, 10)})
        await seconds(3)
        assert writer.report().state == "refused"
        assert not writer.gaps
        await seconds(15)

        assert writer.report().state == "landing"
    assert scene.landed() == once(10)


async def test_a_lost_announcement_is_detected_by_the_next_one() -> None:
    async with writing() as (scene, writer):
        scene.produce(P, 20)
        await scene.stage({P: (0, 10)}, announce=False)
        await scene.stage({P: (10, 20)})
        await seconds(8)
        assert writer.gaps == [{P: 0}]
        await scene.stage({P: (0, 10)})
        await seconds(5)

    assert scene.landed() == once(20)


async def test_a_lost_last_announcement_is_detected_by_kafkas_end_offset() -> None:
    async with writing() as (scene, writer):
        scene.produce(P, 10)
        await seconds(50)

        assert {P: 0} in writer.gaps


async def test_a_recreated_landing_topic_is_read_from_its_beginning() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        for n in range(3):
            await scene.land({P: (n * 10, n * 10 + 10)})
            await seconds(3)
        scene.bus.delete(LANDING)
        await scene.bus.ensure(LANDING, LANDING_PARTITIONS, {})
        await scene.land({P: (30, 40)})
        await seconds(60)

        assert writer.claims == 2
        assert not writer.lost
    assert scene.landed() == once(40)


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


async def test_a_recreated_topic_lands_from_its_own_beginning() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 30), Q: (0, 5)})
        await seconds(5)
        late = await scene.land({P: (40, 50)})  # of the old topic: no range joins it
        scene.topics.delete("orders")
        scene.topics.create("orders", 1)
        scene.storage.tables["orders"].rows.clear()  # to distinguish the rows of the new topic
        await scene.land({P: (0, 20)})
        await seconds(60)

        assert writer.report().committed == {P: 20}
        assert scene.landed() == once(20)
        assert late not in scene.files()
        assert scene.topics.offsets["g"][P].topic_id == "orders-2"
    async with process(scene, "orders", name="w2") as next_writer:
        await seconds(5)
        assert next_writer.report().committed == {P: 20}


async def test_a_truncated_log_lands_from_its_end_and_nothing_twice() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 30)})
        await seconds(5)
        scene.topics.cut(P, 20)
        scene.produce(P, 15)
        await scene.stage({P: (20, 35)}, cut=True)
        await seconds(5)

        assert writer.report().committed[P] == 35
        assert scene.landed() == once(35) + once(30, first=20)  # other records of these offsets
    async with process(scene, "orders", name="w2") as next_writer:
        await seconds(5)
        assert next_writer.report().committed[P] == 35
        assert scene.landed() == once(35) + once(30, first=20)


async def test_a_cut_counts_once_if_its_announcement_is_read_twice() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        await scene.land({P: (0, 30)})
        await seconds(5)
        scene.topics.cut(P, 20)
        scene.produce(P, 15)
        await scene.land({Q: (50, 60)})  # keeps the announcements from here on
        await scene.stage({P: (20, 35)}, cut=True)
        await seconds(5)
        await scene.land({P: (35, 40)})
        await seconds(5)
        assert writer.report().committed[P] == 40
    async with process(scene, "orders", name="w2") as next_writer:
        await seconds(10)
        assert next_writer.report().committed[P] == 40

    assert scene.landed() == once(40) + once(30, first=20)


# --- histories that were cleaned up -------------------------------------------------------------


async def test_a_table_without_its_history_continues_behind_its_rows() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 30), Q: (0, 5)})
        await seconds(5)
    table = scene.storage.table("orders")
    table.add_commit("another writer's")
    scene.storage.forget("orders", before=len(table.commits) - 1)
    scene.topics.offsets["g"].clear()
    await scene.stage({P: (0, 30)})
    async with process(scene, "orders", name="w2") as next_writer:
        await scene.land({P: (30, 40)})
        await seconds(30)
        assert next_writer.report().committed == {P: 40, Q: 5}

    assert scene.landed() == once(40)


async def test_without_a_history_rows_of_an_earlier_topic_do_not_count() -> None:
    """The group's offsets show to which topic the rows belong."""
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 30)})
        await seconds(5)
    scene.topics.delete("orders")
    scene.topics.create("orders", 1)
    table = scene.storage.table("orders")
    table.add_commit("another writer's")
    scene.storage.forget("orders", before=len(table.commits) - 1)
    async with process(scene, "orders", name="w2") as next_writer:
        await seconds(10)
        assert next_writer.report().committed == {P: 0}


async def test_records_of_an_open_transaction_are_not_missing() -> None:
    """Its reader gets none of them, nor those behind it, until it ends."""
    async with writing() as (scene, writer):
        await scene.land({P: (0, 10)})
        await seconds(20)
        scene.topics.log(P).open_from = 10
        scene.produce(P, 7)
        await seconds(300)
        assert writer.gaps == []
        assert writer.report().fault == ""
        scene.topics.log(P).open_from = None
        await seconds(60)
        assert {P: 10} in writer.gaps, "from then on they are"


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
