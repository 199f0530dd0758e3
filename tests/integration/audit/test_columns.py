"""Tables of columns, and of their bad records."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.integration.audit.place import RECORDS, Place

from binwright.inspect.audit import AuditResult, PartitionAudit
from binwright.inspect.row_ages import freshness
from binwright.protocol.names import BAD_SUFFIX

pytestmark = pytest.mark.integration

BAD = (0, 7, 8, RECORDS - 1)
GOOD = sorted({*range(RECORDS)} - {*BAD})
ONCE, ONLY_BAD, IN_BOTH, IN_NEITHER, BAD_TWICE, ROW_TWICE = range(6)


@pytest.fixture(scope="module")
def result(
    broker: str, spark: object, spark_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AuditResult:
    """An audit of six partitions with bad records: it answers most tests."""
    place = Place(broker, spark, spark_url, tmp_path_factory.mktemp("lake"), "audit.columns")

    async def make() -> AuditResult:
        await place.create(6)
        await place.produce(*range(6))
        rows = {ONCE: GOOD, IN_BOTH: [*GOOD, 7], IN_NEITHER: GOOD[1:], BAD_TWICE: GOOD}
        place.land_columns({**rows, ROW_TWICE: [*GOOD, 1]})
        bad = {ONCE: BAD, ONLY_BAD: range(RECORDS), IN_BOTH: BAD, IN_NEITHER: BAD[:-1]}
        place.land_bad({**bad, ROW_TWICE: BAD}, await place.topic_id())
        place.land_bad({BAD_TWICE: BAD}, None)  # as from a Kafka without ids
        place.land_bad({BAD_TWICE: [8]}, await place.topic_id())
        return await place.audit()

    return asyncio.run(make())


@pytest.fixture(scope="module")
def parts(result: AuditResult) -> dict[int, PartitionAudit]:
    return {part.partition: part for part in result.tables[0].partitions}


async def test_each_offset_in_one_of_both_tables_is_clean(parts: dict[int, PartitionAudit]) -> None:
    once = parts[ONCE]

    assert once.clean
    assert (once.rows, once.bad, once.first, once.last) == (RECORDS, len(BAD), 0, RECORDS - 1)


async def test_a_partition_of_bad_records_alone_is_clean(parts: dict[int, PartitionAudit]) -> None:
    assert (parts[ONLY_BAD].clean, parts[ONLY_BAD].bad) == (True, RECORDS)


async def test_what_is_in_both_tables_in_neither_or_twice_is_a_fault(result: AuditResult) -> None:
    topic = result.tables[0].topic

    assert result.faults() == (
        f"{topic}-2: 1 too many (7)",
        f"{topic}-3: 2 missing (1, 49)",
        f"{topic}-4: 1 too many (8)",
        f"{topic}-5: 1 too many (1)",
    )


async def test_bad_records_are_counted_and_remarked(result: AuditResult) -> None:
    (table,) = result.tables
    bad = 4 * len(BAD) + len(BAD[:-1]) + 1 + RECORDS

    assert (result.bad, result.to_json()["bad"]) == (bad, bad)
    assert result.remarks() == (
        f"{table.topic}: {bad} rows are bad records, in {table.path}{BAD_SUFFIX}",
    )


async def test_without_a_table_of_bad_records_there_are_none(fresh: Place) -> None:
    await fresh.create(1)
    await fresh.produce(0)
    fresh.land_columns({0: range(RECORDS)})
    result = await fresh.audit()

    assert (result.clean, result.rows, result.bad) == (True, RECORDS, 0)
    assert result.remarks() == ()


async def test_beside_raw_records_a_table_of_that_name_is_of_another_topic(fresh: Place) -> None:
    await fresh.create(1)
    await fresh.produce(0)
    fresh.land({0: range(RECORDS)})
    fresh.land_bad({0: [3]}, await fresh.topic_id())
    result = await fresh.audit()

    assert (result.clean, result.bad) == (True, 0)


async def test_bad_records_of_an_earlier_topic_are_recognised_by_its_id(fresh: Place) -> None:
    await fresh.create(2)
    await fresh.produce(0)
    fresh.land_columns({0: GOOD}, stamp=await fresh.stamp({0: RECORDS}))
    fresh.land_bad({0: BAD}, await fresh.topic_id())
    await fresh.delete()
    await fresh.create(1)
    await fresh.produce(0)
    fresh.land_columns({0: range(8, RECORDS)}, stamp=await fresh.stamp({0: RECORDS}))
    fresh.land_bad({0: range(7)}, await fresh.topic_id())
    result = await fresh.audit()
    (part,) = result.tables[0].partitions

    assert result.faults() == (f"{fresh.topic}-0: 1 missing (7)",)
    assert (part.rows, part.earlier, part.bad) == (2 * RECORDS - 1, RECORDS, len(BAD) + 7)


async def test_bad_records_of_before_a_truncation_are_not_recognised(fresh: Place) -> None:
    """The log had 10 records more, of which 40 to 59 were cut; 41 was bad before, 45 is now."""
    await fresh.create(1)
    await fresh.produce(0)
    before, after = [*range(41), *range(42, 60)], [*range(40, 45), *range(46, RECORDS)]
    fresh.land_columns({0: before}, stamp=await fresh.stamp({0: 60}))
    fresh.land_columns(
        {0: after}, stamp=await fresh.stamp({0: RECORDS}, cuts=fresh.offsets({0: 9}))
    )
    fresh.land_bad({0: [41, 45]}, await fresh.topic_id())
    (table,) = (await fresh.audit()).tables

    assert table.faults() == (f"{fresh.topic}-0: 1 too many (41)",)
    assert (table.partitions[0].rewritten, table.partitions[0].bad) == (19, 2)


# --- freshness ---------------------------------------------------------------------------------


async def test_ages_are_of_the_record_not_of_a_column_of_its_value(fresh: Place) -> None:
    now = datetime.now(UTC)
    fresh.land_columns({}, now)
    (empty,) = await freshness([fresh.topic], fresh.lake)
    fresh.land_columns({0: range(49)}, now - timedelta(minutes=10))
    fresh.land_columns({0: [49]}, now - timedelta(minutes=60))
    torn = Path(fresh.table) / "part-00000-torn-c000.snappy.parquet"
    torn.write_bytes(fresh.files()[0].read_bytes()[:500])  # of a write that was given up
    (found,) = await freshness([fresh.topic], fresh.lake)

    assert (empty.rows, empty.undated, empty.p50_s) == (0, 0, None)
    assert (found.rows, found.undated) == (50, 0)
    assert found.p50_s == pytest.approx(600, abs=300)
    assert found.max_s == pytest.approx(3600, abs=300)


async def test_records_without_a_value_need_no_row_where_the_table_skips_them(
    broker: str, spark: object, spark_url: str, tmp_path: Path
) -> None:
    place = Place(broker, spark, spark_url, tmp_path, "audit.tombstones")
    await place.create(1)
    await place.produce(0, records=5)
    await place.produce(0, records=3, value=None)
    place.land_columns({0: range(5)})
    (part,) = (await place.audit()).tables[0].partitions
    assert (part.clean, part.lost, part.skipped) == (False, 3, 0)

    place.sql("ALTER TABLE {} SET TBLPROPERTIES ('binwright.skipped' = 'tombstones')")
    found = await place.audit()
    (part,) = found.tables[0].partitions
    assert (part.clean, part.lost, part.skipped) == (True, 0, 3)
    assert found.remarks() == ("audit.tombstones: 3 records are skipped, as the settings want",)

    await place.produce(0, records=1)
    (part,) = (await place.audit()).tables[0].partitions
    assert (part.clean, part.lost, part.skipped) == (False, 1, 3)
