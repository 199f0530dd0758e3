"""A table's writer without faults."""

import subprocess
import sys

import pytest

from binwright.protocol.names import TABLE_LAYOUT
from binwright.protocol.ports.kafka import GroupOffset
from binwright.tables.ports import NotInPlace
from binwright.testing.lake import Failure

from .scene import COLUMNS, P, Q, Scene, once, process, seconds, writing

pytestmark = pytest.mark.looptime


async def test_staged_rows_land_within_the_freshness_and_their_file_is_deleted() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", freshness_s=5.0) as writer:
        await seconds(30)
        await scene.land({P: (0, 100), Q: (0, 50)})
        await seconds(3)
        assert not scene.landed(), "it waits for more rows within the freshness"
        await seconds(2)

        assert scene.landed(P) == once(100)
        assert scene.landed(Q) == once(50)
        assert not scene.files()
        report = writer.report()
        assert report.state == "landing"
        assert report.committed == {P: 100, Q: 50}
        assert (report.rows, report.pending_bytes, report.fault) == (150, 0, "")


async def test_a_commit_with_rows_is_timed_and_the_age_of_its_oldest_row_is_known() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", freshness_s=5.0) as writer:
        await seconds(30)
        registry = writer.context.timings.registry

        def seen(name: str) -> float | None:
            labels = {"group": "", "topic": "orders", "table": "orders"}
            return registry.get_sample_value(f"binwright_{name}", labels)

        def counts() -> tuple[float | None, float | None]:
            return seen("commit_seconds_count"), seen("oldest_row_age_seconds_count")

        assert counts() == (0, 0), "a claim and its stamp have no rows"
        writer.lake.latency_s = 0.2
        await scene.land({P: (0, 100)})
        await seconds(2)
        await scene.land({Q: (0, 50)})
        await seconds(5)

        assert counts() == (1, 1)
        assert 0.2 <= (seen("commit_seconds_sum") or 0.0) < 1.0
        oldest_s = seen("oldest_row_age_seconds_sum") or 0.0
        assert 4.0 < oldest_s <= 5.0, "of the first file, which came two seconds before the other"


async def test_announcements_from_before_the_claim_land() -> None:
    scene = await Scene().prepare()
    for n in range(3):
        await scene.land({P: (n * 10, n * 10 + 10)})
    async with process(scene, "orders"):
        await seconds(10)

    assert scene.landed() == once(30)


async def test_landed_offsets_are_committed_to_kafka_with_the_topics_id() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 100)})
        await seconds(10)

    assert scene.topics.offsets["g"] == {
        P: GroupOffset(100, "orders-1"),
        Q: GroupOffset(0, "orders-1"),
    }


async def test_landing_goes_on_when_offsets_cannot_be_committed() -> None:
    async with writing() as (scene, writer):
        writer.reader.fail_next(3)
        await scene.land({P: (0, 100)})
        await seconds(3)
        assert scene.landed() == once(100)
        await seconds(60)

    assert scene.topics.offsets["g"][P].offset == 100


async def test_offsets_of_an_idle_table_are_committed_again() -> None:
    """Kafka deletes them after some days."""
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 100)})
        await seconds(10)
        scene.topics.offsets["g"].clear()
        await seconds(3_700)

    assert scene.topics.offsets["g"][P].offset == 100


async def test_the_lake_is_opened_once_and_only_for_the_first_table() -> None:
    scene = await Scene({"orders": 1, "clicks": 1}).prepare()
    async with process(scene) as writer:
        await seconds(5)
        assert writer.opened == 0
        writer.writers.start(["orders", "clicks"])
        await seconds(5)
        assert writer.opened == 1


def test_a_consumer_without_tables_loads_no_pyspark() -> None:
    code = (
        "import sys, binwright.consumer.__main__\n"
        "print(sorted({'pyspark', 'pandas', 'grpc', 'pyarrow'} & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "[]"


async def test_files_become_files_of_the_table_and_reports_have_why_not() -> None:
    scene = await Scene(columns=COLUMNS).prepare()
    scene.staging.in_place = True
    async with process(scene, "orders", in_place=True) as writer:
        await seconds(5)
        await scene.land({P: (0, 10)})
        await seconds(5)
        assert writer.report().appended == ""
        writer.lake.not_in_place = NotInPlace("it has constraints", of_table=True)
        await scene.land({P: (10, 20)})
        await seconds(5)
        assert writer.report().appended == "it has constraints"
        assert scene.landed() == once(20)
        assert not scene.files()
        writes = [name for name, _ in writer.lake.calls if name in {"add_files", "append"}]
        assert writes == ["add_files", "add_files", "append"]


async def test_a_writer_shows_consumers_that_it_reads_the_layout_of_tables() -> None:
    scene = await Scene(columns=COLUMNS).prepare()
    scene.staging.write_error = "no space left"
    async with process(scene, "orders", in_place=True) as writer:
        await seconds(5)
        assert "no space left" in writer.report().fault
        scene.staging.write_error = ""
        await seconds(60)
        assert writer.report().fault == ""
        assert ("orders", TABLE_LAYOUT) in scene.staging.kept


async def test_a_writer_shows_that_while_it_waits_for_spark() -> None:
    """Else what is staged meanwhile has to be appended."""
    scene = await Scene(columns=COLUMNS).prepare()
    async with process(scene, in_place=True) as writer:
        writer.lake.fail_next(*[Failure.UNAVAILABLE] * 9)
        writer.writers.start(["orders"])
        await seconds(5)
        assert "injected" in writer.report().fault
        assert ("orders", TABLE_LAYOUT) in scene.staging.kept
