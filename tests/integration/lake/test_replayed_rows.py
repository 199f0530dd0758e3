"""Bad records that are read again leave their table: against a real Spark with Delta."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.column_tables import (
    EPOCH,
    ITEMS,
    TOPIC_ID,
    Decoded,
    bad_offsets,
    landed,
    offsets,
    stage_decoded,
)
from tests.integration.lake.tables import LEASE, new_lake

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.errors import StagedUnreadable, TableRefused
from binwright.protocol.model import TopicPartition
from binwright.tables.masks import MASKED_REASON
from binwright.tables.operations import REPLAY, Cursor
from binwright.tables.ports import BadPlace, BadPortion, BadQuery

pytestmark = pytest.mark.integration

ZERO, ONE = TopicPartition("items", 0), TopicPartition("items", 1)
EPOCH_MS = round(EPOCH.timestamp() * 1000)
ALL = BadQuery(topic_ids={"items": TOPIC_ID}, below={ZERO: 100, ONE: 100})


@pytest.fixture
async def tables(lake: Path, spark_url: str, staging: FileStaging) -> AsyncIterator[SparkLake]:
    """The lake under test: six bad records, one of them of an earlier topic, one without a time."""
    await staging.write_lease("items", LEASE)
    async with new_lake(lake, spark_url) as tables:
        await tables.open(ITEMS)
        bad = [*map(Decoded, range(3)), Decoded(0, partition=1), Decoded(1, partition=1)]
        bad[1] = replace(bad[1], timeless=True)
        await tables.append_bad("items", stage_decoded(lake, bad), LEASE, "stamp")
        earlier = stage_decoded(lake, [Decoded(7)], name="b.parquet", topic_id="earlier")
        await tables.append_bad("items", earlier, LEASE, "stamp")
        yield tables


def places(read: BadPortion) -> list[tuple[int, int]]:
    return [(row.place.partition.partition, row.place.offset) for row in read.rows]


async def test_a_portion_has_the_first_records_that_are_meant(tables: SparkLake) -> None:
    async def read(**wanted: object) -> list[tuple[int, int]]:
        return places(await tables.bad_portion("items", replace(ALL, **wanted)))  # type: ignore[arg-type]

    every = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert await read() == every
    assert await read(most_rows=2) == every[:2]
    assert await read(most_bytes=500) == every[:2]
    assert await read(most_bytes=1) == every[:1]
    assert await read(after=Cursor("items", 0, 1)) == every[2:]
    assert await read(after=Cursor("items", 1, 1)) == []
    assert await read(below={ZERO: 2, ONE: 1}) == [(0, 0), (0, 1), (1, 0)]
    assert await read(below={ONE: 1}) == [(1, 0)]
    assert await read(but={ZERO: (1, 9), ONE: (0, 1)}) == [(0, 0), (1, 1)]
    assert await read(classes=("json",)) == every
    assert await read(classes=("malformed",)) == []
    assert await read(since_ms=1) == every
    assert await read(since_ms=2**43) == []
    assert await read(topic_ids={"items": "earlier"}) == [(0, 7)]
    assert await read(topic_ids={"items": None}) == [(0, 0), (0, 1), (0, 2), (0, 7), *every[3:]]
    assert await read(topic_ids={"others": None}) == []
    first, second, *_ = (await tables.bad_portion("items", ALL)).rows
    assert first.place == BadPlace(TOPIC_ID, ZERO, 0, EPOCH_MS)
    assert (first.record.value, first.record.key) == (b"x" * 10, b"k")
    assert first.record.headers == (("h", b"1"),)
    assert (first.kind, first.reason) == ("json", "at 0")
    assert second.place.timestamp_ms == -1


async def test_masked_values_are_counted_and_not_read(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    spark.sql(
        f"UPDATE delta.`{lake}/items__bad` SET value = NULL, reason = '{MASKED_REASON}' "  # noqa: S608 - a test's own names
        "WHERE _kafka.offset = 2"
    ).collect()
    read = await tables.bad_portion("items", ALL)
    assert (places(read), read.masked) == ([(0, 0), (0, 1), (1, 0), (1, 1)], 1)
    assert (
        await tables.bad_portion("items", replace(ALL, after=Cursor("items", 0, 0)))
    ).masked == 0


async def test_records_leave_and_others_get_their_new_reason(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    rows = (await tables.bad_portion("items", ALL)).rows
    removed = [row.place for row in rows[:2]]
    record = replace(rows[2].record, value=None)
    changed = [replace(rows[2], kind="incompatible", reason="new", record=record)]
    for _ in range(2):  # it may be repeated
        await tables.change_bad("items", removed, changed, "a note")
        found = landed(spark, lake, "items__bad")
        assert bad_offsets(spark, lake) == [2, 7, 0, 1]
        assert (found[0]["kind"], found[0]["reason"]) == ("incompatible", "new")
        assert found[0]["value"] is None
        assert found[0]["topic_id"] == TOPIC_ID
    history = spark.sql(f"DESCRIBE HISTORY delta.`{lake}/items__bad`").collect()
    assert (history[0]["operation"], history[0]["userMetadata"]) == ("MERGE", "a note")
    versions = len(history)
    await tables.change_bad("items", (), (), "nothing")
    assert len(spark.sql(f"DESCRIBE HISTORY delta.`{lake}/items__bad`").collect()) == versions


async def test_a_record_of_an_earlier_topic_stays_where_it_is(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    other = BadPlace(TOPIC_ID, ZERO, 7, EPOCH_MS + 7000)
    later = BadPlace(TOPIC_ID, ZERO, 0, EPOCH_MS + 1)
    await tables.change_bad("items", [other, later], (), "a note")
    assert bad_offsets(spark, lake) == [0, 1, 2, 7, 0, 1]


async def test_what_a_table_has_of_its_bad_records_is_found(
    tables: SparkLake, lake: Path, spark: SparkSession
) -> None:
    there = [Decoded(0, {"id": 0}), replace(Decoded(1, {}), timeless=True), Decoded(8, {})]
    batch = stage_decoded(lake, there, name="c.parquet")
    await tables.append("items", replace(batch, work=REPLAY), LEASE, "stamp")
    both = await tables.landed_bad("items", {ZERO: (0, 9), ONE: (0, 9)})
    assert sorted(place.offset for place in both) == [0, 1]
    assert [each.offset for each in await tables.landed_bad("items", {ZERO: (1, 2)})] == [1]
    await tables.change_bad("items", both, (), "settled")
    assert bad_offsets(spark, lake) == [2, 7, 0, 1]
    assert offsets(spark, lake) == [0, 1, 8]


async def test_a_portion_is_refused_without_a_lease_or_a_table(
    tables: SparkLake, lake: Path, staging: FileStaging
) -> None:
    batch = replace(stage_decoded(lake, [Decoded(0, {})], name="c.parquet"), work=REPLAY)
    await staging.delete_other_leases("items", "another")
    with pytest.raises(StagedUnreadable):
        await tables.append("items", batch, LEASE, "stamp")
    with pytest.raises(TableRefused):
        await tables.bad_portion("absent", ALL)
