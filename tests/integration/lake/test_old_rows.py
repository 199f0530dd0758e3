"""Old rows are deleted from a table in which rows land."""

import asyncio
from collections import Counter
from itertools import count
from pathlib import Path

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.tables import LEASE, P, landed_offsets, records, stage_file

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.ports.kafka import Record
from binwright.runtime.clock import wall_ms

pytestmark = pytest.mark.integration

OLD, AT_ONCE = 30, 5


async def append(tables: SparkLake, staging: FileStaging, rows: list[Record]) -> None:
    batch = await stage_file(staging, {P: rows}, f"{rows[0].offset}.parquet")
    await tables.append("orders", batch, LEASE, "stamp")


async def test_rows_that_land_meanwhile_stop_no_deletion_and_are_kept(
    tables: SparkLake, staging: FileStaging, spark: SparkSession, lake: Path
) -> None:
    for first in range(0, OLD, 10):
        await append(tables, staging, records(10, first))
    landed = asyncio.Event()
    last = OLD

    async def land() -> None:
        nonlocal last
        for first in count(OLD, AT_ONCE):
            rows = [Record(first + n, wall_ms(), None, b"x") for n in range(AT_ONCE)]
            await append(tables, staging, rows)
            last = first + AT_ONCE
            landed.set()

    landing = asyncio.create_task(land())
    try:
        async with asyncio.timeout(120):
            await landed.wait()
            assert await tables.expire("orders", 86_400.0) == OLD
            landed.clear()
            await landed.wait()
    finally:
        landing.cancel()
        await asyncio.wait([landing])

    found = landed_offsets(spark, lake)
    assert found == Counter(dict.fromkeys([(0, n) for n in range(OLD, max(found)[1] + 1)], 1))
    assert len(found) >= last - OLD
