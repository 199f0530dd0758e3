"""What the docs say of reading a table, on a table of ours and the real libraries."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import ROOT, Block, blocks
from tests.integration.lake.tables import LEASE, P, records, stage_file

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging

pytestmark = pytest.mark.integration

QUERIES = [b for b in blocks("python") if b.page == ROOT / "docs" / "how-to" / "query.md"]


@pytest.mark.parametrize("block", QUERIES, ids=str)
async def test_every_snippet_counts_the_rows(
    block: Block, tables: SparkLake, staging: FileStaging, lake: Path, spark_url: str
) -> None:
    rows = {P: records(1234)}
    await tables.append("orders", await stage_file(staging, rows), LEASE, "stamp")
    code = block.text.replace("/lake/orders", f"{lake}/orders")
    code = code.replace("sc://localhost:15002", spark_url)
    done = subprocess.run(  # noqa: ASYNC221 - nothing else happens meanwhile
        (sys.executable, "-W", "ignore", "-c", code),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "1233" in done.stdout or "1234" in done.stdout


def test_there_is_a_snippet_for_each_library() -> None:
    for library in ("pyspark", "deltalake", "polars", "duckdb"):
        assert any(f"{library}" in block.text for block in QUERIES)
