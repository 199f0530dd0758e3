"""`binwright schema check` tells what a schema would change in a real table."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.consumer.decode.avro import record
from tests.consumer.decode.json_schema import objects
from tests.integration.lake.column_tables import ITEMS

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Table

pytestmark = pytest.mark.integration


def check(topic: str, file: Path, spark: str, lake: Path, *more: str) -> Any:
    done = subprocess.run(
        (sys.executable, "-m", "binwright.cli", "schema", "check", topic, "--schema", str(file),
         "--spark", spark, "--lake", str(lake), *more),
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


async def test_what_a_schema_would_change_is_reported(
    tables: SparkLake, spark_url: str, lake: Path, tmp_path: Path
) -> None:
    columns = parse_columns("id INT, one STRUCT<a: STRING>")
    await tables.open(Table("checked", ITEMS.group, ITEMS.cluster, columns))
    text, avro = tmp_path / "columns.sql", tmp_path / "new.avsc"

    text.write_text("ID INT, one STRUCT<a: STRING>")
    servers = f"{spark_url},{spark_url}"
    assert check("checked", text, servers, lake, "--json")[:2] == (0, "[]\n")

    text.write_text("id BIGINT, one STRUCT<a: STRING, b: INT>, more DOUBLE")
    code, out, _ = check("checked", text, spark_url, lake, "--json")
    assert code == 1
    assert [tuple(change.values()) for change in json.loads(out)] == [
        ("id", "refused", "int", "bigint"),
        ("one.b", "added", None, "int"),
        ("more", "added", None, "double"),
    ]

    avro.write_text(json.dumps(record(("id", "long"), ("more", "string"))))
    code, out, _ = check("checked", avro, spark_url, lake)
    assert code == 1
    assert "stays: misfits are bad records" in out
    assert "is added" in out

    code, out, _ = check("not-there", avro, spark_url, lake, "--json")
    assert (code, [change["kind"] for change in json.loads(out)]) == (0, ["added"] * 2)


async def test_a_json_schema_is_compared_by_what_it_is_stored_as(
    tables: SparkLake, spark_url: str, lake: Path, tmp_path: Path
) -> None:
    columns = parse_columns("id BIGINT, any STRING, one STRUCT<a: STRING>")
    await tables.open(Table("checked-json", ITEMS.group, ITEMS.cluster, columns))
    file = tmp_path / "new.json"
    file.write_text(json.dumps(objects(id="integer", any={}, one=objects(a="string", b="number"))))
    code, out, _ = check("checked-json", file, spark_url, lake, "--json")
    assert code == 0
    assert [tuple(change.values()) for change in json.loads(out)] == [
        ("one.b", "added", None, "double"),
    ]

    file.write_text(json.dumps(objects(id="string")))
    code, out, _ = check("checked-json", file, spark_url, lake, "--json")
    assert code == 1
    assert [tuple(change.values()) for change in json.loads(out)] == [
        ("id", "kept", "bigint", "string"),
    ]


async def test_a_wider_column_and_one_of_keys_are_checked_by_the_settings(
    tables: SparkLake,
    spark_url: str,
    lake: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = parse_columns("id INT")
    await tables.open(Table("widens", ITEMS.group, ITEMS.cluster, columns))
    entry = {"topics": ["widens"], "format": "json", "columns": "id INT", "widen": True}
    monkeypatch.setenv("BINWRIGHT_TABLES", json.dumps([entry]))
    monkeypatch.setenv("COLUMNS", "200")  # so that no sentence is broken
    file = tmp_path / "columns.sql"
    file.write_text("id BIGINT")
    code, out, _ = check("widens", file, spark_url, lake, "--json")
    assert code == 0
    assert [tuple(change.values()) for change in json.loads(out)] == [
        ("id", "widened", "int", "bigint"),
    ]
    code, out, _ = check("widens", file, spark_url, lake)
    assert (code, "not read any more by deltalake, Polars" in out) == (0, True)
    code, out, _ = check("widens", file, spark_url, lake, "--key", "--json")
    assert (code, [change["column"] for change in json.loads(out)]) == (0, ["_kafka_key"])


async def test_what_cannot_be_checked_is_named(
    tables: SparkLake, spark_url: str, lake: Path, tmp_path: Path
) -> None:
    await tables.open(Table("raw", ITEMS.group, ITEMS.cluster))
    file = tmp_path / "columns.sql"
    file.write_text("id BIGINT")
    code, _, error = check("raw", file, spark_url, lake)
    assert code == 2
    assert "is one of raw records" in error

    file.write_text("id THING")
    code, _, error = check("raw", file, spark_url, lake)
    assert code == 2
    assert f"{file}: there is no type 'thing'" in error
    code, _, error = check("raw", tmp_path / "none.avsc", spark_url, lake)
    assert code == 2
    assert "none.avsc: No such file or directory" in error
