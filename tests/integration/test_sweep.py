"""A sweep as a Spark job gives the same numbers, and a Delta table of them."""

import asyncio
from pathlib import Path

import pytest
from tests.lab.sweep.points import WALK, point

from binwright.lab.sweep.points import run_points
from binwright.lab.sweep.results import rows, write_table
from binwright.lake.lake_reader import lake_reader
from binwright.protocol.errors import LakeUnavailable
from binwright.streams import streams
from binwright.streams.generated import generate

pytestmark = pytest.mark.integration


async def test_spark_gives_what_one_process_gives(spark_url: str, tmp_path: Path) -> None:
    file = tmp_path / "walk.json"
    streams.write(file, list(generate(WALK)))
    points = [point(30, "sticky"), point(60, "mwf"), point(60, "sticky", file=file)]
    there = await asyncio.to_thread(run_points, points, lambda _: None, 1, spark_url)
    assert there == run_points(points, lambda _: None, 1)

    table = str(tmp_path / "results")
    await asyncio.to_thread(write_table, there, spark_url, table)
    async with lake_reader(spark_url) as lake:
        found = await lake.run(
            "read the results", lambda spark: spark.read.format("delta").load(table).collect()
        )
    assert sorted((row.asDict() for row in found), key=lambda row: row["label"]) == sorted(
        rows(there), key=lambda row: row["label"]
    )
    with pytest.raises(LakeUnavailable, match=r"write the results to .*PATH_EXISTS"):
        await asyncio.to_thread(write_table, there, spark_url, table)
