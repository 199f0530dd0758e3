"""A table with every kind of fault against a real topic; and how fresh its rows were."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.integration.audit.place import (
    BEYOND,
    DOUBLES,
    EMPTY,
    MISSING,
    RECORDS,
    RETENTION,
    STRANGE,
    TAIL,
    TRANSACTIONS,
    WHOLE,
    Place,
)

from binwright.inspect.audit import AuditResult, PartitionAudit, audit
from binwright.inspect.row_ages import freshness
from binwright.inspect.topic_extents import Range
from binwright.protocol.errors import TopicMissing
from binwright.runtime.settings.consumer import LakeSettings

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def place(
    broker: str, spark: Any, spark_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Place:
    """A topic of eight partitions and its table: one question to Spark answers most tests."""
    place = Place(broker, spark, spark_url, tmp_path_factory.mktemp("lake"), "audit.faults")

    async def make() -> None:
        await place.fill(8)
        await place.forget(RETENTION, 20)
        await place.transact(TRANSACTIONS)

    asyncio.run(make())
    everything = range(RECORDS)
    place.land(
        {
            WHOLE: everything[:30],
            MISSING: sorted({*everything} - {0, 10, 11, 12, 20}),
            TAIL: everything[:45],
            DOUBLES: everything,
            RETENTION: [*range(10), *range(20, RECORDS)],
            TRANSACTIONS: [*everything, *range(50, 55), *range(63, 67)],
            BEYOND: range(RECORDS + 2),
            STRANGE: [0],
        }
    )
    place.land({WHOLE: everything[30:], DOUBLES: [3, 4, 4]})
    return place


@pytest.fixture(scope="module")
def result(place: Place) -> AuditResult:
    return asyncio.run(place.audit())


@pytest.fixture(scope="module")
def found(result: AuditResult) -> dict[int, PartitionAudit]:
    return {partition.partition: partition for partition in result.tables[0].partitions}


async def test_faults_are_reported_line_by_line(place: Place, result: AuditResult) -> None:
    assert not result.clean
    assert result.faults() == (
        f"{place.topic}-1: 5 missing (0, 10-12, 20)",
        f"{place.topic}-2: 5 missing (45-49)",
        f"{place.topic}-3: 3 too many (3, 4)",
        f"{place.topic}-5: 1 missing (62)",
        f"{place.topic}-6: 2 beyond the topic's end (50)",
        f"{place.topic}-8: 1 beyond the topic's end (0)",
    )


async def test_a_partition_with_everything_once_is_clean(found: dict[int, PartitionAudit]) -> None:
    whole = found[WHOLE]

    assert whole.clean
    assert (whole.start, whole.end) == (0, RECORDS)
    assert (whole.rows, whole.first, whole.last) == (RECORDS, 0, RECORDS - 1)


async def test_missing_ranges_are_listed(found: dict[int, PartitionAudit]) -> None:
    missing = found[MISSING]

    assert missing.lost == 5
    assert missing.lost_ranges == (Range(0, 0), Range(10, 12), Range(20, 20))
    assert (missing.unread, missing.surplus, missing.beyond) == (0, 0, 0)


async def test_a_missing_tail_is_a_missing_range_up_to_the_end(
    found: dict[int, PartitionAudit],
) -> None:
    assert found[TAIL].lost_ranges == (Range(45, 49),)


async def test_doubled_rows_are_surplus_rows(found: dict[int, PartitionAudit]) -> None:
    doubles = found[DOUBLES]

    assert (doubles.rows, doubles.surplus, doubles.doubles) == (RECORDS + 3, 3, (3, 4))
    assert (doubles.lost, doubles.unread) == (0, 0)


async def test_landed_records_that_retention_deleted_are_not_missing(
    found: dict[int, PartitionAudit],
) -> None:
    kept = found[RETENTION]

    assert (kept.start, kept.first, kept.rows) == (20, 0, 40)
    assert kept.clean


async def test_where_there_are_transactions_offsets_without_a_row_vanish(
    found: dict[int, PartitionAudit],
) -> None:
    """They may have been markers, or records that were aborted: nobody can look any more."""
    kept = found[RETENTION]

    assert (kept.vanished, kept.lost_to_retention) == (10, 0)
    assert kept.gone_ranges == (Range(10, 19),)


async def test_markers_and_aborted_records_need_no_row(found: dict[int, PartitionAudit]) -> None:
    """Of 50 to 67 only 62 carries a record that has none."""
    settled = found[TRANSACTIONS]

    assert settled.end == 68
    assert (settled.lost_ranges, settled.unread) == ((Range(62, 62),), 0)


async def test_rows_beyond_the_end_of_the_topic_are_reported(
    found: dict[int, PartitionAudit],
) -> None:
    assert (found[BEYOND].beyond, found[BEYOND].lost) == (2, 0)
    assert (found[STRANGE].beyond, found[STRANGE].end) == (1, 0)


async def test_a_partition_without_records_lacks_none(found: dict[int, PartitionAudit]) -> None:
    assert (found[EMPTY].rows, found[EMPTY].first, found[EMPTY].clean) == (0, None, True)


async def test_a_group_that_reads_uncommitted_must_land_aborted_records(place: Place) -> None:
    (table,) = (await place.audit(isolation="read_uncommitted")).tables

    assert table.partitions[TRANSACTIONS].lost_ranges == (Range(56, 60), Range(62, 62))


async def test_what_could_not_be_checked_in_time_is_not_called_clean(place: Place) -> None:
    (table,) = (await place.audit(check_s=0)).tables
    tail = table.partitions[TAIL]

    assert (tail.lost, tail.unread, tail.clean) == (0, 5, False)


async def test_without_a_table_everything_is_missing(place: Place, lake: Path) -> None:
    elsewhere = LakeSettings(path=str(lake), spark=place.lake.spark)
    result = await audit([place.topic], place.kafka, elsewhere)

    assert result.faults()[:2] == (
        f"{place.topic}: there is no table at {lake}/{place.topic}",
        f"{place.topic}-0: 50 missing (0-49)",
    )
    assert not result.clean


async def test_a_topic_that_does_not_exist_is_reported(place: Place) -> None:
    with pytest.raises(TopicMissing, match=r"there is no topic audit\.none"):
        await audit(["audit.none"], place.kafka, place.lake)


# --- freshness ---------------------------------------------------------------------------------


async def test_ages_are_those_at_the_commit(
    broker: str, spark: Any, spark_url: str, lake: Path
) -> None:
    """Rows of ten minutes and, one in fifty, of an hour; known until their first files go."""
    place = Place(broker, spark, spark_url, lake, "ages")
    now = datetime.now(UTC)
    place.land({0: range(49)}, now - timedelta(minutes=10))
    place.land({0: [49]}, now - timedelta(minutes=60))

    (fresh,) = await freshness([place.topic], place.lake)

    # How long the commits took is all that is not known.
    assert (fresh.rows, fresh.undated) == (50, 0)
    assert fresh.p50_s == pytest.approx(600, abs=300)
    assert fresh.p99_s == pytest.approx(3600, abs=300)
    assert fresh.max_s == fresh.p99_s

    spark.sql(f"OPTIMIZE delta.`{place.table}`").collect()
    assert await freshness([place.topic], place.lake) == (fresh,)

    delete_first_files(spark, place)
    (rewritten,) = await freshness([place.topic], place.lake)
    assert (rewritten.rows, rewritten.undated, rewritten.p50_s) == (0, 50, None)


def delete_first_files(spark: Any, place: Place) -> None:
    """Delete the files that are not in the table any more, as a vacuum does."""
    rows = spark.read.format("delta").load(place.table)
    current = {unquote(urlsplit(uri).path) for uri in rows.inputFiles()}
    for file in Path(place.table).glob("*.parquet"):
        if str(file) not in current:
            file.unlink()


async def test_a_table_that_does_not_exist_has_no_ages(place: Place) -> None:
    (fresh,) = await freshness(["none"], place.lake)

    assert (fresh.rows, fresh.undated, fresh.p99_s) == (0, 0, None)
