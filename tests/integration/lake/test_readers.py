"""What each reader reads of each kind of table, as `docs/how-to/readers.md` has it.

A reader that begins to read a table, or no longer does, fails a test, so that the page is renewed.
"""

import importlib.metadata
import importlib.util
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars as pl
import pytest
from pyspark.sql.connect.session import SparkSession
from tests.docs.pages import ROOT
from tests.integration.lake.tables import LEASE, new_lake
from tests.integration.lake.test_keys import TOPIC, staged

from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.record_decoder import RecordDecoder
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Table, ValueDecoder

pytestmark = pytest.mark.integration

PAGE = ROOT / "docs" / "how-to" / "readers.md"
VALUES: list[Any] = [1, 2, None]
GIVEN: list[tuple[bytes | None, bytes | None]] = [
    (b'{"k":7}', b'{"v":1}'),
    (None, b'{"v":2}'),
    (b'{"k":8}', None),
]
EXTENSION = "duckdb_extension_delta"


def page_rows() -> dict[str, dict[str, str]]:
    """Return what the page has of each kind of table: reader -> what it does."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    header, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {kind: dict(zip(header[1:], cells, strict=True)) for kind, *cells in rows}


def spark_rows(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    frame = spark.read.format("delta").load(path)
    shown = "to_json(v) AS v" if dict(frame.dtypes)["v"] == "variant" else "v"
    rows: list[dict[str, Any]] = frame.selectExpr("_kafka", shown).toArrow().to_pylist()
    return rows


def deltalake_rows(_: SparkSession, path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = deltalake.DeltaTable(path).to_pyarrow_table().to_pylist()
    return rows


def polars_rows(_: SparkSession, path: str) -> list[dict[str, Any]]:
    return pl.scan_delta(path).collect().to_dicts()


def duckdb_extension() -> str:
    """Return the file of DuckDB's extension for Delta."""
    found = importlib.util.find_spec(EXTENSION)
    assert found is not None
    assert found.origin is not None, f"{EXTENSION} is not installed"
    place = Path(found.origin).parent / "extensions" / f"v{duckdb.__version__}"
    return str(place / "delta.duckdb_extension")


def duckdb_rows(_: SparkSession, path: str) -> list[dict[str, Any]]:
    with duckdb.connect() as database:
        database.load_extension(duckdb_extension())
        table = database.table_function("delta_scan", [path])  # Arrow would have no VARIANT
        return [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]


READERS: Mapping[str, Callable[[SparkSession, str], list[dict[str, Any]]]] = {
    "Spark": spark_rows,
    "deltalake": deltalake_rows,
    "Polars": polars_rows,
    "DuckDB": duckdb_rows,
}


def outcome(
    read: Callable[[SparkSession, str], list[dict[str, Any]]], spark: SparkSession, path: str
) -> str:
    """Return in the page's words how a reader reads a table."""
    try:
        rows = read(spark, path)
    except Exception as exc:  # noqa: BLE001 - whatever it raises, it does not read the table
        print(type(exc).__name__, exc)  # noqa: T201 - shown where the page is wrong
        return "no"
    ordered = sorted(rows, key=lambda row: row["_kafka"]["offset"])
    assert [row["_kafka"]["offset"] for row in ordered] == [*range(len(VALUES))]
    found = [row["v"] for row in ordered]
    if all(each is None or (isinstance(each, dict) and "metadata" in each) for each in found):
        return "encoded bytes"
    plain = [json.loads(each) if isinstance(each, str) else each for each in found]
    return "yes" if plain == VALUES else f"other values: {found}"


@pytest.fixture
async def tables(lake: Path, spark_url: str, staging: FileStaging) -> AsyncIterator[SparkLake]:
    await staging.write_lease(TOPIC, LEASE)
    async with new_lake(lake, spark_url) as tables:
        yield tables


@pytest.mark.parametrize("kind", page_rows())
async def test_each_reader_reads_what_the_page_has(
    kind: str, tables: SparkLake, staging: FileStaging, lake: Path, spark: SparkSession
) -> None:
    values = "v VARIANT" if kind == "VARIANT" else "v INT"
    of: ValueDecoder = JsonDecoder(parse_columns(values))
    table = Table(TOPIC, "g", "cluster-a", of.columns)
    match kind:
        case "keys":
            of = RecordDecoder(of, JsonDecoder(parse_columns("k INT")), "json", "row")
            table = replace(table, columns=of.columns)
        case "widened":
            table = replace(table, widen=True)
        case "partitioned":
            table = replace(table, by_date=True)
        case "clustered":
            table = replace(table, cluster_by=("v",))
    await tables.open(table)
    first, _ = await staged(staging, of, *GIVEN[:2], first=0)
    await tables.append(TOPIC, first, LEASE, "stamp")
    if kind == "widened":
        of = JsonDecoder(parse_columns("v BIGINT"))
        await tables.add_columns(TOPIC, of.columns)
    second, _ = await staged(staging, of, *GIVEN[2:], first=2)
    await tables.append(TOPIC, second, LEASE, "stamp")
    if kind == "clustered":
        assert (await tables.compact(TOPIC)).removed == 2

    path = f"{lake}/{TOPIC}"
    found = {name: outcome(read, spark, path) for name, read in READERS.items()}
    assert found == page_rows()[kind]


def test_the_page_names_the_versions_that_were_tried() -> None:
    names = {"Spark": "pyspark", "deltalake": "deltalake", "Polars": "polars", "DuckDB": "duckdb"}
    text = PAGE.read_text()
    for name, package in names.items():
        version = ".".join(importlib.metadata.version(package).split(".")[:2])
        assert f"{name} {version}" in text
