"""Compaction and vacuum beside the commits."""

import pytest

from binwright.consumer.writer.housekeeping import HousekeepingRules
from binwright.core.errors import LakeUnavailable
from binwright.core.model import TopicPartition
from binwright.core.ports import Compaction

from .scene import P, Process, Scene, once, process, seconds

pytestmark = pytest.mark.looptime

EVERY_TEN = HousekeepingRules(compact_files=10)


async def land(scene: Scene, commits: int, first: int = 0) -> None:
    for n in range(first, first + commits):
        await scene.land({P: (n * 10, n * 10 + 10)})
        await seconds(2)


def jobs(writer: Process, name: str) -> int:
    return sum(call == name for call, _ in writer.lake.calls)


async def test_files_are_compacted_after_so_many_commits() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", housekeeping=EVERY_TEN) as writer:
        await land(scene, 9)
        assert jobs(writer, "compact") == 0
        await land(scene, 2, first=9)
        assert jobs(writer, "compact") == 1
        await land(scene, 10, first=11)

        assert jobs(writer, "compact") == 2
    assert scene.landed() == once(210)
    assert scene.storage.table("orders").files <= 3


async def test_without_such_rules_nothing_is_done() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders") as writer:
        await land(scene, 30)

        assert not {"files", "compact", "vacuum"} & {call for call, _ in writer.lake.calls}


async def test_a_writer_that_has_just_claimed_counts_what_others_left() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await land(scene, 12)
    async with process(scene, "orders", name="heir", housekeeping=EVERY_TEN) as heir:
        await seconds(5)

        assert jobs(heir, "compact") == 1
    assert scene.storage.table("orders").files == 1


async def test_large_files_that_others_left_are_none_to_compact() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await land(scene, 12)
    rules = HousekeepingRules(compact_files=10, target_file_bytes=2_000)
    async with process(scene, "orders", name="heir", housekeeping=rules) as heir:
        await seconds(5)

        assert jobs(heir, "files") == 1
        assert jobs(heir, "compact") == 0


async def test_a_compaction_that_fails_holds_up_nothing_and_is_tried_again_later() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", housekeeping=EVERY_TEN) as writer:
        real, tries = writer.lake.compact, []

        async def failing(topic: str) -> Compaction:
            tries.append(topic)
            await seconds(15)
            if len(tries) == 1:
                raise LakeUnavailable("no room")
            return await real(topic)

        writer.lake.compact = failing  # type: ignore[method-assign]
        await land(scene, 19)
        assert len(tries) == 1
        assert scene.landed() == once(190)
        await land(scene, 4, first=19)
        await seconds(20)

        assert len(tries) == 2
    assert scene.storage.table("orders").files < 10


async def test_one_job_at_a_time_and_the_busiest_table_starves_nobody() -> None:
    scene = await Scene({"orders": 1, "clicks": 1}).prepare()
    clicks = TopicPartition("clicks", 0)
    rules = HousekeepingRules(compact_files=3)
    async with process(scene, "orders", "clicks", housekeeping=rules) as writer:
        running, most, done = [0], [0], []

        async def slow(topic: str) -> Compaction:
            running[0] += 1
            most[0] = max(most[0], running[0])
            await seconds(10)
            running[0] -= 1
            done.append(topic)
            return Compaction(3, 1)

        writer.lake.compact = slow  # type: ignore[method-assign]
        for n in range(30):
            await scene.land({P: (n * 10, n * 10 + 10)})
            await scene.land({clicks: (n * 10, n * 10 + 10)})
            await seconds(2)

        assert most == [1]
        assert abs(done.count("orders") - done.count("clicks")) <= 1


async def test_a_table_is_vacuumed_some_time_after_the_claim_and_then_at_intervals() -> None:
    scene = await Scene().prepare()
    rules = HousekeepingRules(vacuum_interval_s=7_200.0)
    async with process(scene, "orders", housekeeping=rules):
        await seconds(3_000)
        assert scene.storage.table("orders").vacuums == 0
        await seconds(1_000)
        assert scene.storage.table("orders").vacuums == 1
        await seconds(7_200)
        assert scene.storage.table("orders").vacuums == 2


async def test_the_house_of_a_table_that_was_given_up_is_no_longer_kept() -> None:
    scene = await Scene().prepare()
    rules = HousekeepingRules(vacuum_interval_s=600.0)
    async with process(scene, "orders", housekeeping=rules) as writer:
        await seconds(60)
        writer.writers.stop(["orders"])
        await seconds(2_000)

        assert jobs(writer, "vacuum") == 0
