"""Rows that a table keeps for some days only, and what an audit makes of those that are gone."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.audit.place import Place

from binwright.consumer.land.lake.delta import old_rows
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.protocol.keeping import KEEP_S, KEPT_SINCE_MS
from binwright.runtime.clock import wall_ms
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Table

pytestmark = pytest.mark.integration

DAY_S = 86_400.0
OLD, NEW = range(20), range(20, 50)
COLUMNS = parse_columns("timestamp STRING, partition INT, c STRUCT<offset: INT>")


async def produced(place: Place) -> tuple[datetime, datetime]:
    """Write twenty records of ten days ago and thirty of now; return when."""
    now = datetime.now(UTC)
    old = now - timedelta(days=10)
    await place.create(1)
    async with AIOKafkaProducer(bootstrap_servers=place.kafka.bootstrap_servers) as producer:
        for offset in (*OLD, *NEW):
            at_ms = round((old if offset in OLD else now).timestamp() * 1000)
            await producer.send(place.topic, b"x", partition=0, timestamp_ms=at_ms)
    return old, now


async def keep(place: Place, days: float, *, raw: bool) -> int:
    """Open the table with that setting, as a new writer does; return what it deletes."""
    keep_s = days * DAY_S
    table = Table(place.topic, "g", "c", None if raw else COLUMNS, keep_s=keep_s)
    async with SparkLake(place.lake, f"{place.lake.path}/_staging", 60.0) as lake:
        await lake.open(table)
        return await lake.expire(place.topic, keep_s) if days else 0


async def test_old_rows_are_deleted_and_no_audit_misses_them(fresh: Place) -> None:
    old, now = await produced(fresh)
    fresh.land_columns({0: OLD}, old)
    fresh.land_columns({0: NEW[:10]}, old - timedelta(days=5))  # it is wrong: they are of now
    fresh.land_columns({0: NEW[10:]}, now)
    assert await keep(fresh, 20, raw=False) == 0
    assert await keep(fresh, 7, raw=False) == 30
    assert await keep(fresh, 7, raw=False) == 0

    (table,) = (await fresh.audit()).tables
    (part,) = table.partitions
    assert (part.rows, part.expired, part.lost) == (20, len(OLD), 10)
    assert table.faults() == (f"{fresh.topic}-0: 10 missing (20-29)",)
    assert f"{fresh.topic}: 20 records are older than the table keeps rows" in table.remarks()

    await keep(fresh, 0, raw=False)  # from now on for ever: what is gone is gone
    assert (await fresh.audit()).tables[0].partitions[0].expired == len(OLD)
    fresh.sql(f"ALTER TABLE {{}} UNSET TBLPROPERTIES ('{KEEP_S}', '{KEPT_SINCE_MS}')")
    assert (await fresh.audit()).tables[0].partitions[0].lost == len(OLD) + 10


async def test_what_the_topic_no_longer_keeps_is_not_called_lost(fresh: Place) -> None:
    old, now = await produced(fresh)
    fresh.land({0: [0, *NEW]}, now)
    fresh.land({0: [*OLD[1:]]}, old)
    assert await keep(fresh, 7, raw=True) == len(OLD) - 1
    await fresh.forget(0, before=30)
    result = await fresh.audit()

    assert result.clean
    (part,) = result.tables[0].partitions
    assert (part.vanished, part.lost_to_retention) == (len(OLD) - 1, 0)


async def test_a_row_without_a_time_stays(fresh: Place) -> None:
    old, _ = await produced(fresh)
    fresh.land({0: OLD}, old)
    fresh.sql("UPDATE {} SET timestamp = NULL WHERE offset < 5")
    assert await keep(fresh, 7, raw=True) == len(OLD) - 5


@pytest.mark.parametrize("ahead_days", [4_000, -15])
async def test_of_two_clocks_the_one_behind_counts(
    spark: Any, lake: Path, ahead_days: float
) -> None:
    """A clock that runs ahead would delete everything."""
    place = Place("", spark, "sc://unused", lake, "clocks")
    place.land({0: OLD}, datetime.now(UTC) - timedelta(days=10))
    now_ms = wall_ms() + round(ahead_days * DAY_S * 1000)
    assert old_rows(spark, place.table, 12 * DAY_S, now_ms) is None
    assert (old_rows(spark, place.table, 7 * DAY_S, now_ms) is None) is (ahead_days < 0)
