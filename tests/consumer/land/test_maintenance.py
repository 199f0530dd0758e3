"""Compaction and vacuum, concurrent with commits."""

import asyncio

import pytest

from binwright.consumer.decide.land.compaction import CompactionConfig
from binwright.consumer.land.maintenance import MaintenanceConfig
from binwright.protocol.errors import LakeUnavailable
from binwright.protocol.model import TopicPartition
from binwright.tables.ports import Compaction, Portion, SmallFiles
from binwright.testing.staging import ROW_OVERHEAD

from .scene import P, Process, Scene, once, process, seconds

pytestmark = pytest.mark.looptime

LANDED_BYTES = 10 * (10 + ROW_OVERHEAD)  # of a commit
EVERY_TEN = MaintenanceConfig(CompactionConfig(11))  # the table of orders: after 10


async def land(scene: Scene, commits: int, first: int = 0) -> None:
    for n in range(first, first + commits):
        await scene.land({P: (n * 10, n * 10 + 10)})
        await seconds(2)


def jobs(writer: Process, name: str) -> int:
    return sum(call == name for call, _ in writer.lake.calls)


async def test_a_table_is_compacted_when_a_reader_opens_too_many_files() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:
        await land(scene, 9)
        assert jobs(writer, "compact") == 0
        await land(scene, 2, first=9)
        assert jobs(writer, "compact") == 1
        await land(scene, 11, first=11)

        assert jobs(writer, "compact") == 2
    assert scene.landed() == once(220)
    assert scene.storage.table("orders").files <= 3


async def test_files_are_listed_after_a_claim_and_when_a_table_may_be_due() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:
        await land(scene, 9)
        assert jobs(writer, "small_files") == 1
        await land(scene, 3, first=9)

        assert jobs(writer, "compact") == 1
        assert jobs(writer, "small_files") == 2


async def test_where_no_files_are_listed_those_count_that_were_committed() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:
        writer.lake.lists_files = False
        await land(scene, 9)
        assert jobs(writer, "compact") == 0
        await land(scene, 12, first=9)

        assert jobs(writer, "compact") == 1


async def test_a_new_writer_counts_the_small_files_of_earlier_writers() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await land(scene, 12)
    async with process(scene, "orders", name="next", maintenance=EVERY_TEN) as next_writer:
        await seconds(5)

        assert jobs(next_writer, "compact") == 1
    assert scene.storage.table("orders").files == 1


async def test_portions_follow_each_other_until_little_is_left() -> None:
    scene = await Scene().prepare()
    sizes, portions = [30_000_000 - n for n in range(12)], []
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:

        async def listed(table: str) -> tuple[SmallFiles, ...]:  # noqa: ARG001 - of the port
            return (SmallFiles(tuple(sizes)),)

        async def compact(table: str, portion: Portion | None = None) -> Compaction:  # noqa: ARG001 - of the port
            assert portion
            merged = [size for size in sizes if size < portion.below_bytes]
            sizes[:] = [size for size in sizes if size not in merged]
            portions.append(len(merged))
            return Compaction(len(merged), 1)

        writer.lake.small_files = listed  # type: ignore[method-assign]
        writer.lake.compact = compact  # type: ignore[method-assign]
        await seconds(20)

    assert portions == [4, 4, 4]


async def test_the_cost_of_compactions_is_reported() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:
        await land(scene, 9)
        before = writer.report().compaction
        assert before
        assert (before.small_files, before.files_read) == (9, 0)
        writer.lake.latency_s = 0.5
        await land(scene, 3, first=9)

        after = writer.report().compaction
        assert after
        assert (after.files_read, after.files_written) == (11, 1)
        assert (after.bytes_read, after.bytes_written) == (11_000, 11_000)
        assert after.seconds >= 1.0


async def test_what_sorting_costs_is_reported_too_also_without_compaction() -> None:
    scene = await Scene().prepare()
    scene.cluster_by = ("id",)
    config = MaintenanceConfig(cluster_bytes=4 * LANDED_BYTES)
    async with process(scene, "orders", maintenance=config) as writer:
        await land(scene, 1)
        before = writer.report().compaction
        assert before
        assert (before.files_read, before.seconds) == (0, 0.0)
        writer.lake.latency_s = 0.5
        await land(scene, 3, first=1)
        await seconds(2)

        after = writer.report().compaction
        assert after
        assert after.files_read == after.files_written == 4
        assert after.bytes_read == after.bytes_written > 0
        assert after.seconds >= 0.5


async def test_a_failed_compaction_delays_no_commit_is_reported_and_is_tried_again_later() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:
        real, tries = writer.lake.compact, []

        async def failing(table: str, portion: Portion | None = None) -> Compaction:
            tries.append(asyncio.get_running_loop().time())
            await seconds(15)
            if len(tries) <= 2:
                raise LakeUnavailable("a person's commit came first")
            return await real(table, portion)

        writer.lake.compact = failing  # type: ignore[method-assign]
        await land(scene, 23)
        assert len(tries) == 1
        assert scene.landed() == once(230)
        failed = writer.report().compaction
        assert failed
        assert "a person's commit" in failed.fault
        await seconds(400)

        first, second, third = tries
        assert second - first > 60
        assert third - second > 120
        done = writer.report().compaction
        assert done
        assert not done.fault
    assert scene.storage.table("orders").files < 10


async def test_a_compaction_that_merges_nothing_is_not_tried_again_at_once() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:

        async def without_effect(table: str, portion: Portion | None = None) -> Compaction:  # noqa: ARG001 - of the port
            writer.lake.calls.append(("compact", table))
            return Compaction(0, 0)

        writer.lake.compact = without_effect  # type: ignore[method-assign]
        await land(scene, 25)

        assert jobs(writer, "compact") == 1


async def test_the_writer_of_a_clustered_table_compacts_by_what_it_committed() -> None:
    scene = await Scene().prepare()
    scene.cluster_by = ("id",)
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:
        await land(scene, 12)

        assert jobs(writer, "small_files") == 0
        assert jobs(writer, "compact") == 1


async def test_one_job_runs_at_a_time_and_tables_take_turns() -> None:
    scene = await Scene({"orders": 1, "clicks": 1}).prepare()
    clicks = TopicPartition("clicks", 0)
    config = MaintenanceConfig(CompactionConfig(3))
    async with process(scene, "orders", "clicks", maintenance=config) as writer:
        running, most, done = [0], [0], []

        async def slow(table: str, portion: Portion | None = None) -> Compaction:  # noqa: ARG001 - of the port
            running[0] += 1
            most[0] = max(most[0], running[0])
            await seconds(10)
            running[0] -= 1
            done.append(table)
            return Compaction(3, 1)

        writer.lake.compact = slow  # type: ignore[method-assign]
        for n in range(30):
            await scene.land({P: (n * 10, n * 10 + 10)})
            await scene.land({clicks: (n * 10, n * 10 + 10)})
            await seconds(2)

        assert most == [1]
        assert abs(done.count("orders") - done.count("clicks")) <= 1


async def test_a_server_that_hangs_keeps_no_table_of_another_from_maintenance() -> None:
    scene = await Scene({"orders": 1, "clicks": 1}).prepare()
    config = MaintenanceConfig(CompactionConfig(3), vacuum_interval_s=3_600.0)
    servers = {"clicks": "sc://frozen"}
    async with process(
        scene, "orders", "clicks", maintenance=config, servers=servers, freshness_s=1.0
    ) as writer:
        real = writer.lake.small_files

        async def hanging(table: str) -> tuple[SmallFiles, ...] | None:
            if table == "clicks":
                await asyncio.Future[None]()
            return await real(table)

        writer.lake.small_files = hanging  # type: ignore[method-assign]
        await land(scene, 9)
        await seconds(7_300)
        assert jobs(writer, "compact") >= 2
        assert jobs(writer, "vacuum") == 2
    assert scene.landed() == once(90)


async def test_a_table_is_vacuumed_once_an_interval_however_often_its_role_moves() -> None:
    scene = await Scene().prepare()
    config = MaintenanceConfig(vacuum_interval_s=7_200.0)
    for number in range(14):  # of half an hour each: three intervals and a half
        async with process(scene, "orders", name=f"w{number}", maintenance=config):
            await seconds(1_795)
        await seconds(5)

    assert scene.storage.table("orders").vacuums in {3, 4}


async def test_tables_are_vacuumed_at_times_of_their_own() -> None:
    topics = [f"t{n}" for n in range(4)]
    scene = await Scene(dict.fromkeys(topics, 1)).prepare()
    config = MaintenanceConfig(vacuum_interval_s=7_200.0)
    async with process(scene, *topics, maintenance=config) as writer:
        seen = []
        for _ in range(72):
            await seconds(100)
            seen.append(jobs(writer, "vacuum"))

    assert seen[-1] == 4
    assert len(set(seen)) > 2


async def test_a_clustered_table_is_sorted_when_enough_has_landed_and_before_a_vacuum() -> None:
    scene = await Scene().prepare()
    scene.cluster_by = ("id",)
    config = MaintenanceConfig(cluster_bytes=16 * LANDED_BYTES, vacuum_interval_s=3_600.0)
    async with process(scene, "orders", maintenance=config) as writer:

        def done() -> list[str]:
            return [call for call, _ in writer.lake.calls if call in {"cluster", "vacuum"}]

        await land(scene, 13)
        assert done() == []
        await land(scene, 3, first=13)
        assert done() == ["cluster"]
        await land(scene, 2, first=16)
        await seconds(3_600)
        assert done() == ["cluster", "cluster", "vacuum"]
        await seconds(3_600)
        assert done() == ["cluster", "cluster", "vacuum", "vacuum"]  # nothing new


async def test_a_new_writer_sorts_what_others_left_before_its_first_vacuum() -> None:
    scene = await Scene().prepare()
    scene.cluster_by = ("id",)
    config = MaintenanceConfig(cluster_bytes=10**9, vacuum_interval_s=3_600.0)
    async with process(scene, "orders", maintenance=config) as writer:
        await seconds(7_200)

        assert (jobs(writer, "cluster"), jobs(writer, "vacuum")) == (1, 2)


async def test_a_failed_clustering_delays_no_commit_and_no_vacuum() -> None:
    scene = await Scene().prepare()
    scene.cluster_by = ("id",)
    config = MaintenanceConfig(vacuum_interval_s=600.0)
    async with process(scene, "orders", maintenance=config) as writer:

        async def failing(table: str) -> Compaction:
            raise LakeUnavailable(f"no room for {table}")

        writer.lake.cluster = failing  # type: ignore[method-assign]
        await land(scene, 2)
        await seconds(650)

        assert jobs(writer, "vacuum") == 1
    assert scene.landed() == once(20)


async def test_old_rows_are_deleted_before_each_vacuum() -> None:
    scene = await Scene().prepare()
    scene.keep_s = 86_400.0
    config = MaintenanceConfig(vacuum_interval_s=600.0)
    async with process(scene, "orders", maintenance=config) as writer:
        await seconds(1_250)

        done = [call for call, _ in writer.lake.calls if call in {"expire", "vacuum"}]
        assert done == ["expire", "vacuum"] * 2


async def test_a_failed_deletion_of_old_rows_delays_no_vacuum() -> None:
    scene = await Scene().prepare()
    scene.keep_s = 86_400.0
    config = MaintenanceConfig(vacuum_interval_s=600.0)
    async with process(scene, "orders", maintenance=config) as writer:

        async def failing(table: str, keep_s: float) -> int:
            raise LakeUnavailable(f"a commit of {table} came first: {keep_s}")

        writer.lake.expire = failing  # type: ignore[method-assign]
        await seconds(650)

        assert jobs(writer, "vacuum") == 1


async def test_a_released_table_is_no_longer_maintained() -> None:
    scene = await Scene().prepare()
    config = MaintenanceConfig(vacuum_interval_s=600.0)
    async with process(scene, "orders", maintenance=config) as writer:
        await seconds(60)
        before = jobs(writer, "vacuum")
        writer.writers.stop(["orders"])
        await seconds(2_000)

        assert jobs(writer, "vacuum") == before


async def test_a_table_is_registered_once_its_writer_has_the_role() -> None:
    scene = await Scene().prepare()
    scene.register_as = "main.sales.orders"
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:
        await land(scene, 12)

        assert writer.lake.registered == {"main.sales.orders": "orders"}
        assert jobs(writer, "register") == 1
        registration = writer.report().registration
        assert registration
        assert registration.registered
    async with process(scene, "orders", name="next") as after:
        await seconds(5)
        assert jobs(after, "register") == 1


async def test_a_table_that_cannot_be_registered_lands_and_it_is_tried_ever_more_seldom() -> None:
    scene = await Scene().prepare()
    scene.register_as = "main.sales.orders"
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:
        writer.lake.taken["main.sales.orders"] = "/lake/other"
        await land(scene, 25)

        assert scene.landed() == once(250)
        assert jobs(writer, "compact") == 2
        assert jobs(writer, "register") == 1
        registration = writer.report().registration
        assert registration
        assert not registration.registered
        assert "/lake/other" in registration.fault
        await seconds(300)
        assert jobs(writer, "register") == 3

        writer.lake.taken.clear()
        await seconds(600)
        registration = writer.report().registration
        assert registration
        assert (registration.registered, registration.fault) == (True, "")
        assert jobs(writer, "register") == 4


async def test_a_catalog_that_hangs_keeps_no_table_from_being_compacted() -> None:
    scene = await Scene().prepare()
    scene.register_as = "main.sales.orders"
    async with process(scene, "orders", maintenance=EVERY_TEN) as writer:
        asked = asyncio.Event()

        async def hanging(*_: str) -> None:
            asked.set()
            await asyncio.Event().wait()

        writer.lake.register = hanging  # type: ignore[method-assign, assignment]
        await land(scene, 12)

        assert asked.is_set()
        assert jobs(writer, "compact") == 1
