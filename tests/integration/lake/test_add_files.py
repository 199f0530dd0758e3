"""The extension that commits staged files as they are, on a real Spark Connect server."""

import errno
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import deltalake
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.tables import DEADLINE_S, sql
from tests.integration.lake.test_readers import duckdb_extension

from binwright.consumer.stage.parquet import COLUMNS, SCHEMA

pytestmark = pytest.mark.integration

NOON = datetime(2026, 11, 28, 12, 0, 0, 123_000, tzinfo=UTC)
KAFKA = pa.struct([SCHEMA.field(name) for name in SCHEMA.names if name != "value"])
KAFKA_SQL = "_kafka STRUCT<{}>".format(
    ", ".join(f"{name}: {type_}" for name, type_ in COLUMNS.items() if name != "value")
)
RAW_SQL = ", ".join(f"`{name}` {type_}" for name, type_ in COLUMNS.items())
SMALL_SQL = (
    "id BIGINT, at TIMESTAMP, name STRING, s STRUCT<a: INT, b: STRING>, l ARRAY<INT>, "
    "m MAP<STRING, STRUCT<a: INT, b: INT>>"
)
SMALL_TYPES: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
    "name": pa.string(),
    "s": pa.struct([("a", pa.int32()), ("b", pa.string())]),
    "l": pa.list_(pa.int32()),
    "m": pa.map_(pa.string(), pa.struct([("a", pa.int32()), ("b", pa.int32())])),
}
SMALL = pa.schema(SMALL_TYPES)


def small(count: int = 3, first: int = 0) -> pa.Table:
    rows = [
        {"id": n, "at": NOON, "name": f"n{n}", "s": {"a": n, "b": None}, "l": [n, None]}
        for n in range(first, first + count)
    ]
    return pa.Table.from_pylist(rows, schema=SMALL)


def changed(name: str, values: Any, type_: pa.DataType) -> pa.Table:
    """Return the small table with another column of this name."""
    table = small()
    column = pa.array(values, type_)
    if name not in table.column_names:
        return table.append_column(name, column)
    return table.set_column(table.column_names.index(name), name, column)


def raw(count: int, first: int = 0) -> pa.Table:
    rows = [
        {
            "topic": "orders",
            "partition": n % 3,
            "offset": n,
            "timestamp": NOON + timedelta(milliseconds=n) if n % 5 else None,
            "timestamp_type": 0,
            "key": b"k%d" % n if n % 2 else None,
            "value": os.urandom(30),
            "headers": [{"key": "h", "value": b"\xff"}] if n % 3 else [],
        }
        for n in range(first, first + count)
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


TYPES: Mapping[str, tuple[str, pa.DataType, Sequence[Any]]] = {
    # Spark's type, Arrow's, and values
    "b": ("BOOLEAN", pa.bool_(), [True, None, False]),
    "i8": ("TINYINT", pa.int8(), [-128, 127, None]),
    "i16": ("SMALLINT", pa.int16(), [-5, None, 7]),
    "i32": ("INT", pa.int32(), [1, 2, 3]),
    "i64": ("BIGINT", pa.int64(), [-(2**60), 2**60, None]),
    "f32": ("FLOAT", pa.float32(), [1.5, float("nan"), None]),
    "f64": ("DOUBLE", pa.float64(), [1.5, -2.5, None]),
    "small": ("DECIMAL(10,2)", pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("99.99"), None]),
    "large": (
        "DECIMAL(38,6)",
        pa.decimal128(38, 6),
        [Decimal("9" * 30), Decimal("0.000001"), None],
    ),
    "text": ("STRING", pa.string(), ["x" * 40, "ü" * 40, None]),
    "long": ("STRING", pa.string(), ["a" * 9_000, "b", None]),
    "bytes": ("BINARY", pa.binary(), [b"\x00", b"", None]),
    "day": ("DATE", pa.date32(), [date(1970, 1, 1), date(2026, 11, 28), None]),
    "at": ("TIMESTAMP", pa.timestamp("us", "UTC"), [NOON, NOON + timedelta(microseconds=7), None]),
    "local": (
        "TIMESTAMP_NTZ",
        pa.timestamp("us"),
        [NOON.replace(tzinfo=None), None, NOON.replace(tzinfo=None, year=1999)],
    ),
    "none": ("INT", pa.int32(), [None, None, None]),
    "list": ("ARRAY<STRING>", pa.list_(pa.string()), [["a", None], [], None]),
    "map": ("MAP<STRING, INT>", pa.map_(pa.string(), pa.int32()), [[("k", 1)], [], None]),
    "struct": (
        "STRUCT<a: INT, b: STRING>",
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        [{"a": 1, "b": "q"}, {"a": None, "b": None}, None],
    ),
}
TYPED_SQL = f"{KAFKA_SQL}, " + ", ".join(f"{name} {of[0]}" for name, of in TYPES.items())


def typed(times: int = 4) -> pa.Table:
    place = raw(3 * times).drop_columns(["value"]).to_pylist()
    columns: dict[str, pa.Array[Any]] = {"_kafka": pa.array(place, KAFKA)}
    for name, (_, arrow, values) in TYPES.items():
        columns[name] = pa.array([*values] * times, arrow)
    return pa.table(columns)


def quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


Reply = tuple[str, int | None, int | None, str | None]


@dataclass
class Place:
    """Tables, staged files and a lease of one test."""

    spark: SparkSession
    root: Path
    lease: str = field(init=False)

    def __post_init__(self) -> None:
        self.staged = self.root / "_staging" / "t"
        self.staged.mkdir(parents=True)
        self.lease = str(self.staged / "lease.parquet")
        pq.write_table(pa.table({"none": pa.array([], pa.int64())}), self.lease)

    def create(self, columns: str, more: str = "", *, table: str = "t") -> str:
        path = str(self.root / table)
        sql(self.spark, f"CREATE TABLE delta.`{path}` ({columns}) USING delta {more}")
        return path

    def stage(self, rows: pa.Table, name: str = "0-0-1-abcdef01.parquet", **how: Any) -> str:
        pq.write_table(rows, self.staged / name, **how)
        return str(self.staged / name)

    def call(self, *files: str, table: str = "t", lease: str | None = None) -> Reply:
        array = (
            f"array({', '.join(map(quoted, files))})" if files else "cast(array() AS array<string>)"
        )
        statement = (
            f"CALL binwright.add_files(table => {quoted(str(self.root / table))}, "
            f"lease => {quoted(lease or self.lease)}, stamp => 'a stamp', files => {array})"
        )
        (row,) = self.spark.sql(statement).collect()
        assert row.__fields__ == ["verdict", "version", "rows", "what"]
        return row[0], row[1], row[2], row[3]

    def actions(self, table: str = "t") -> list[dict[str, Any]]:
        """Return all actions of a table, in order."""
        logs = sorted((self.root / table / "_delta_log").glob("*.json"))
        return [json.loads(line) for log in logs for line in log.read_text().splitlines()]

    def statistics(self, table: str = "t") -> dict[str, Any]:
        """Return those of the newest file."""
        added = [each["add"] for each in self.actions(table) if "add" in each]
        statistics: dict[str, Any] = json.loads(added[-1]["stats"])
        return statistics

    def count(self, table: str = "t") -> int:
        return int(self.spark.read.format("delta").load(str(self.root / table)).count())

    def versions(self, table: str = "t") -> int:
        return len(list((self.root / table / "_delta_log").glob("*.json")))

    def files(self, table: str = "t") -> set[str]:
        """Return the names of data files, whether part of a version or not."""
        paths = (self.root / table).rglob("[!.]*.parquet*")  # without sums, which Spark leaves, too
        return {path.name for path in paths if "_delta_log" not in path.parts}


@pytest.fixture
def place(lake: Path, spark: SparkSession) -> Place:
    return Place(spark, lake)


def of_spark(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = spark.read.format("delta").load(path).toArrow().to_pylist()
    return rows


def of_deltalake(_: SparkSession, path: str) -> list[dict[str, Any]]:
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(path))
    rows: list[dict[str, Any]] = pa.table(query.execute("SELECT * FROM t").read_all()).to_pylist()
    return rows


def of_polars(_: SparkSession, path: str) -> list[dict[str, Any]]:
    return pl.scan_delta(path).collect().to_dicts()


def of_duckdb(_: SparkSession, path: str) -> list[dict[str, Any]]:
    with duckdb.connect() as database:
        database.load_extension(duckdb_extension())
        table = database.table_function("delta_scan", [path])
        return [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]


Reader = Callable[[SparkSession, str], list[dict[str, Any]]]
READERS: Mapping[str, Reader] = {
    "spark": of_spark, "deltalake": of_deltalake, "polars": of_polars, "duckdb": of_duckdb
}  # fmt: skip


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows in one order, NaN equal to itself."""
    return sorted(map(repr, rows))


def appended(place: Place, staged: str, columns: str) -> str:
    """Append a staged file's rows to another table, as Spark does; return its path."""
    path = place.create(columns, table="appended")
    schema = place.spark.table(f"delta.`{path}`").schema
    rows = place.spark.read.schema(schema).parquet(staged)
    rows.coalesce(1).write.format("delta").mode("append").save(path)
    return path


# --- what lands --------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["lz4", "zstd", "snappy", "none"])
@pytest.mark.parametrize("kind", ["raw", "typed"])
def test_each_reader_reads_what_an_append_of_the_same_rows_has(
    place: Place, kind: str, codec: str
) -> None:
    columns, rows = (RAW_SQL, raw(30)) if kind == "raw" else (TYPED_SQL, typed())
    path = place.create(columns)
    staged = place.stage(rows, compression=codec, row_group_size=8)

    assert place.call(staged) == ("landed", 1, rows.num_rows, None)
    expected = appended(place, staged, columns)
    for name, read in READERS.items():
        found = in_order(read(place.spark, path))
        assert len(found) == rows.num_rows
        assert found == in_order(read(place.spark, expected)), name
    read_back = place.spark.read.format("delta").load(path).toArrow()
    assert in_order(read_back.to_pylist()) == in_order(rows.cast(read_back.schema).to_pylist())


def test_statistics_are_those_that_an_append_writes(place: Place) -> None:
    """All but bounds of floats, which leave NaN out in a footer, and NULLs of arrays and maps."""
    place.create(TYPED_SQL)
    staged = place.stage(typed(), row_group_size=5)
    assert place.call(staged)[0] == "landed"
    appended(place, staged, TYPED_SQL)
    found, expected = place.statistics(), place.statistics("appended")

    for bound in ("minValues", "maxValues"):
        del expected[bound]["f32"], expected[bound]["f64"], expected[bound]["long"]
    del expected["nullCount"]["list"], expected["nullCount"]["map"]
    del expected["nullCount"]["_kafka"]["headers"]
    assert found == expected
    assert found["maxValues"]["large"] > found["minValues"]["large"]
    assert found["maxValues"]["text"] > "ü" * 32


def test_a_row_group_without_bounds_leaves_the_file_without(place: Place) -> None:
    """Arrow writes none for a value of more than 4 kB: others' bounds would hide its row."""
    path = place.create("name STRING")
    staged = place.stage(pa.table({"name": ["z" * 5_000, "a"]}), row_group_size=1)
    assert place.call(staged)[0] == "landed"

    assert "name" not in place.statistics()["maxValues"]
    read = place.spark.read.format("delta").load(path)
    assert read.where("name > 'y'").count() == 1


def test_bounds_are_tight_where_deletion_vectors_could_loosen_them(place: Place) -> None:
    columns = "id BIGINT"
    more = "TBLPROPERTIES ('delta.enableDeletionVectors' = '{}')"
    staged = place.stage(pa.table({"id": [1, 2]}))
    for table, enabled in (("with", "true"), ("without", "false")):
        place.create(columns, more.format(enabled), table=table)
        assert place.call(staged, table=table)[0] == "landed"
    assert place.statistics("with")["tightBounds"] is True
    assert "tightBounds" not in place.statistics("without")


def test_a_commit_is_an_append_of_the_history_with_its_stamp_and_metrics(place: Place) -> None:
    path = place.create(SMALL_SQL)
    files = [place.stage(small(3, 3 * n), f"{n}.parquet") for n in range(3)]
    assert place.call(*files) == ("landed", 1, 9, None)

    (newest,) = place.spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1").collect()
    assert (newest.operation, newest.userMetadata) == ("WRITE", "a stamp")
    assert newest.operationParameters["mode"] == "Append"
    assert newest.isBlindAppend
    size = sum(Path(file).stat().st_size for file in files)
    metrics = newest.operationMetrics
    assert (metrics["numFiles"], metrics["numOutputRows"]) == ("3", "9")
    assert metrics["numOutputBytes"] == str(size)


def test_a_commit_without_rows_has_its_stamp_and_no_file(place: Place) -> None:
    place.create(SMALL_SQL)
    assert place.call() == ("landed", 1, 0, None)
    assert place.call(place.stage(small(0))) == ("landed", 2, 0, None)
    assert not place.files()
    assert [a["commitInfo"].get("userMetadata") for a in place.actions() if "commitInfo" in a][
        1:
    ] == ["a stamp"] * 2


def test_a_file_that_is_committed_again_is_one_file(place: Place) -> None:
    place.create(SMALL_SQL)
    staged = place.stage(small())
    assert place.call(staged, staged) == ("landed", 1, 3, None)
    assert place.call(staged) == ("landed", 2, 3, None)
    assert place.count() == 3


OF_FEW = pa.struct([("a", pa.int32())])
LACKING: Mapping[str, tuple[str, Callable[[], pa.Table]]] = {
    # a table's columns, and rows that lack some, or have them in another order
    "columns": (SMALL_SQL, lambda: small().select(["l", "id"])),
    "fields": (SMALL_SQL, lambda: changed("s", [{"a": 1}, None, {"a": None}], OF_FEW)),
    "fields of elements": (
        "id BIGINT, l ARRAY<STRUCT<b: INT, a: INT>>",
        lambda: pa.table({"l": pa.array([[{"a": 1}, None], [], None], pa.list_(OF_FEW))}),
    ),
    "order of fields": (
        SMALL_SQL,
        lambda: changed(
            "s", [{"b": "x", "a": 1}] * 3, pa.struct([("b", pa.string()), ("a", pa.int32())])
        ),
    ),
}


@pytest.mark.parametrize("kind", LACKING)
def test_what_a_file_lacks_is_null_for_each_reader(place: Place, kind: str) -> None:
    columns, make = LACKING[kind]
    path = place.create(columns)
    staged = place.stage(make())
    assert place.call(staged)[0] == "landed"
    expected = appended(place, staged, columns)
    for name, read in READERS.items():
        assert in_order(read(place.spark, path)) == in_order(read(place.spark, expected)), name
    nulls, appended_nulls = (
        place.statistics()["nullCount"],
        place.statistics("appended")["nullCount"],
    )
    assert nulls == {column: appended_nulls[column] for column in nulls}
    assert nulls["id"] == appended_nulls["id"]


# --- which tables ------------------------------------------------------------------------------

ASKS_MORE = {
    "CHECK": (SMALL_SQL, "TBLPROPERTIES ('delta.constraints.few' = 'id < 9')", "constraints"),
    "NOT NULL": (SMALL_SQL.replace("BIGINT", "BIGINT NOT NULL"), "", "id is NOT NULL"),
    "NOT NULL within": (SMALL_SQL.replace("a: INT", "a: INT NOT NULL", 1), "", "s is NOT NULL"),
    "generated": (f"{SMALL_SQL}, twice BIGINT GENERATED ALWAYS AS (id * 2)", "", "generated"),
    "identity": (f"{SMALL_SQL}, own BIGINT GENERATED ALWAYS AS IDENTITY", "", "identity"),
    "default": (
        f"{SMALL_SQL}, own BIGINT DEFAULT 7",
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        "default",
    ),
    "names": (SMALL_SQL, "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "columnMapping"),
    "ids": (SMALL_SQL, "TBLPROPERTIES ('delta.columnMapping.mode' = 'id')", "columnMapping"),
    "VARCHAR": (f"{SMALL_SQL}, short VARCHAR(3)", "", "short"),
    "CHAR within": (f"{SMALL_SQL}, short ARRAY<CHAR(3)>", "", "short"),
    "VARIANT": (f"{SMALL_SQL}, v VARIANT", "", "VARIANT"),
    "partitioned": (SMALL_SQL, "PARTITIONED BY (name)", "partitioned by name"),
    "day of nothing": (
        f"{SMALL_SQL}, _kafka_date DATE",
        "PARTITIONED BY (_kafka_date)",
        "partitioned by _kafka_date",
    ),
    "unknown feature": (
        SMALL_SQL,
        "TBLPROPERTIES ('delta.feature.materializePartitionColumns' = 'supported')",
        "materializePartitionColumns",
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", ASKS_MORE)
def test_a_table_that_asks_more_of_a_writer_takes_none(place: Place, rule: str) -> None:
    columns, more, reason = ASKS_MORE[rule]
    place.create(columns, more)
    before = place.versions()
    verdict, version, rows, what = place.call(place.stage(small()))

    assert (verdict, version, rows) == ("table_not_in_place", None, None)
    assert reason in str(what)
    assert (place.versions(), place.files()) == (before, set())


def test_where_there_is_no_table_nothing_is_taken(place: Place) -> None:
    verdict, *_, what = place.call(place.stage(small()))
    assert verdict == "table_not_in_place"
    assert "no Delta table" in str(what)


@pytest.mark.parametrize(
    "more",
    [
        "TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')",
        "TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')",
        "TBLPROPERTIES ('delta.appendOnly' = 'true')",
        "CLUSTER BY (id)",
    ],
)
def test_a_table_whose_features_are_the_commits_own_takes_files(place: Place, more: str) -> None:
    path = place.create(SMALL_SQL, more)
    for number in range(2):
        assert place.call(place.stage(small(3, 3 * number), f"{number}.parquet"))[0] == "landed"
    assert place.count() == 6
    if "CLUSTER" in more:
        sql(place.spark, f"OPTIMIZE delta.`{path}`")
        assert place.count() == 6


def test_row_ids_changes_and_deletions_are_right(place: Place) -> None:
    features = ("enableRowTracking", "enableChangeDataFeed", "enableDeletionVectors")
    properties = ", ".join(f"'delta.{name}' = 'true'" for name in features)
    path = place.create(SMALL_SQL, f"TBLPROPERTIES ({properties})")
    for number in range(2):
        assert place.call(place.stage(small(3, 3 * number), f"{number}.parquet"))[0] == "landed"
    sql(place.spark, f"DELETE FROM delta.`{path}` WHERE id = 1")  # noqa: S608 - our own

    read = place.spark.read.format("delta")
    ids = read.load(path).selectExpr("id", "_metadata.row_id", "_metadata.row_commit_version")
    assert sorted(map(tuple, ids.collect())) == [
        (0, 0, 1), (2, 2, 1), (3, 3, 2), (4, 4, 2), (5, 5, 2)
    ]  # fmt: skip
    changes = read.option("readChangeFeed", "true").option("startingVersion", 1).load(path)
    found = sorted(map(tuple, changes.select("_commit_version", "_change_type", "id").collect()))
    assert found == [*((1, "insert", n) for n in range(3)), *((2, "insert", n) for n in (3, 4, 5)),
                     (3, "delete", 1)]  # fmt: skip
    for name, read_rows in READERS.items():
        assert sorted(row["id"] for row in read_rows(place.spark, path)) == [0, 2, 3, 4, 5], name


def test_a_widened_table_takes_files_of_the_wider_type_only(place: Place) -> None:
    path = place.create("id INT", "TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    narrow = place.stage(pa.table({"id": pa.array([1], pa.int32())}), "narrow.parquet")
    assert place.call(narrow)[0] == "landed"
    sql(place.spark, f"ALTER TABLE delta.`{path}` ALTER COLUMN id TYPE BIGINT")

    late = place.stage(pa.table({"id": pa.array([2], pa.int32())}), "late.parquet")
    assert place.call(late)[0] == "file_not_in_place"
    wide = place.stage(pa.table({"id": pa.array([2**40], pa.int64())}), "wide.parquet")
    assert place.call(wide)[0] == "landed"
    assert sorted(row["id"] for row in of_spark(place.spark, path)) == [1, 2**40]


# --- which files -------------------------------------------------------------------------------

ONE_NAME = pa.table([pa.array([1]), pa.array([2])], names=["id", "id"])
UNFIT: Mapping[str, tuple[Callable[[], pa.Table], Mapping[str, Any]]] = {
    "unknown column": (lambda: changed("more", [1, 2, 3], pa.int64()), {}),
    "other case": (lambda: small().rename_columns(["ID", *SMALL.names[1:]]), {}),
    "one name twice": (lambda: ONE_NAME, {}),
    "other type": (lambda: changed("name", [1, 2, 3], pa.int64()), {}),
    "narrower type": (lambda: changed("id", [1, 2, 3], pa.int32()), {}),
    "no sign": (lambda: changed("id", [1, 2, 3], pa.uint64()), {}),
    "bytes": (lambda: changed("name", [b"1", b"2", b"3"], pa.binary()), {}),
    "nanoseconds": (
        lambda: changed("at", [NOON] * 3, pa.timestamp("ns", "UTC")),
        {"version": "2.6"},
    ),
    "milliseconds": (lambda: changed("at", [NOON] * 3, pa.timestamp("ms", "UTC")), {}),
    "no zone": (lambda: changed("at", [NOON.replace(tzinfo=None)] * 3, pa.timestamp("us")), {}),
    "INT96": (small, {"use_deprecated_int96_timestamps": True}),
    "other field": (lambda: changed("s", [{"z": 1}] * 3, pa.struct([("z", pa.int32())])), {}),
    "fewer fields in a map": (
        lambda: changed(
            "m", [[("k", {"a": 1})]] * 3, pa.map_(pa.string(), pa.struct([("a", pa.int32())]))
        ),
        {},
    ),
    "other type within": (lambda: changed("s", [{"a": 1}] * 3, pa.struct([("a", pa.int64())])), {}),
    "other elements": (lambda: changed("l", [[1]] * 3, pa.list_(pa.int64())), {}),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_a_file_with_other_columns_is_not_taken(place: Place, kind: str) -> None:
    make, how = UNFIT[kind]
    place.create(SMALL_SQL)
    whole = place.stage(small(), "0.parquet")
    verdict, *_, what = place.call(whole, place.stage(make(), "1.parquet", **how))

    assert verdict == "file_not_in_place"
    assert str(what).startswith("1.parquet: ")
    assert (place.versions(), place.files()) == (1, set())


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def garbled(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-60:-8] = b"\xff" * 52
    file.write_bytes(content)


def replaced(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "gone": (Path.unlink, "missing"),
    "empty": (lambda file: file.write_bytes(b""), "damaged"),
    "text": (lambda file: file.write_text("PAR1 is not enough PAR1"), "damaged"),
    "cut": (cut, "damaged"),
    "garbled": (garbled, "damaged"),
    "a directory": (replaced, "damaged"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_file_that_is_gone_or_damaged_is_named(place: Place, damage: str) -> None:
    place.create(SMALL_SQL)
    files = [place.stage(small(), f"{n}.parquet") for n in range(3)]
    harm, expected = DAMAGES[damage]
    harm(Path(files[1]))
    verdict, *_, what = place.call(*files)

    assert verdict == expected
    assert str(what).partition(":")[0] == "1.parquet"
    assert (place.versions(), place.files()) == (1, set())


def test_a_staged_file_that_is_gone_is_missing_also_where_an_earlier_try_put_it(
    place: Place,
) -> None:
    place.create(SMALL_SQL)
    staged = place.stage(small())
    assert place.call(staged)[0] == "landed"
    Path(staged).unlink()
    assert place.call(staged)[0] == "missing"


def test_two_files_of_one_name_are_not_taken(place: Place) -> None:
    place.create(SMALL_SQL)
    other = place.root / "_staging" / "u"
    other.mkdir()
    pq.write_table(small(), other / "1.parquet")
    verdict, *_ = place.call(place.stage(small(), "1.parquet"), str(other / "1.parquet"))
    assert (verdict, place.versions()) == ("file_not_in_place", 1)


def test_another_file_of_the_name_in_the_table_is_never_written_over(place: Place) -> None:
    """It may be part of a version: its rows would be lost."""
    place.create(SMALL_SQL)
    assert place.call(place.stage(small(3), "1.parquet"))[0] == "landed"
    (place.staged / "1.parquet").unlink()
    verdict, *_ = place.call(place.stage(small(3, 7), "1.parquet"))
    assert (verdict, place.count()) == ("file_not_in_place", 3)
    assert {row["id"] for row in of_spark(place.spark, str(place.root / "t"))} == {0, 1, 2}


# --- how files get there -----------------------------------------------------------------------


def test_a_file_is_linked_and_the_staged_one_stays_until_its_writer_deletes_it(
    place: Place,
) -> None:
    place.create(SMALL_SQL)
    staged = Path(place.stage(small()))
    assert place.call(str(staged))[0] == "landed"

    put = place.root / "t" / staged.name
    assert put.samefile(staged)
    staged.unlink()
    assert place.count() == 3


@pytest.mark.parametrize("by", ["its name", "a link", "a directory below"])
def test_what_is_staged_in_the_table_itself_is_not_taken(place: Place, by: str) -> None:
    """Its writer deletes what it has staged, and would delete what has landed."""
    table = Path(place.create(SMALL_SQL))
    if by == "a link":
        place.staged = place.root / "link"
        place.staged.symlink_to(table)
    else:
        place.staged = table if by == "its name" else table / "below"
        place.staged.mkdir(exist_ok=True)
    verdict, _, _, what = place.call(place.stage(small()))
    assert (verdict, what, place.count()) == (
        "table_not_in_place",
        "files are staged in its own directory, or below it",
        0,
    )


HOURS = 3_600.0


@pytest.mark.parametrize(("age_h", "links"), [(2.9, True), (3.1, False)])
def test_an_old_file_is_copied_so_that_no_vacuum_takes_it(
    place: Place, age_h: float, links: bool
) -> None:
    place.create(
        SMALL_SQL, "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 6 hours')"
    )
    staged = Path(place.stage(small()))
    began = time.time()
    os.utime(staged, (began - age_h * HOURS,) * 2)
    assert place.call(str(staged))[0] == "landed"

    put = place.root / "t" / staged.name
    assert put.samefile(staged) is links
    assert (put.stat().st_mtime > began - 60) is not links
    assert place.files() == {staged.name}


def test_what_an_earlier_try_put_is_used_while_it_is_young_and_replaced_when_old(
    place: Place,
) -> None:
    place.create(
        SMALL_SQL, "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 6 hours')"
    )
    staged = Path(place.stage(small()))
    put = place.root / "t" / staged.name
    shutil.copyfile(staged, put)
    before = put.stat()
    assert place.call(str(staged))[0] == "landed"
    assert put.stat().st_ino == before.st_ino

    os.utime(put, (time.time() - 4 * HOURS,) * 2)
    assert place.call(str(staged))[0] == "landed"
    assert put.stat().st_mtime > time.time() - 60
    assert (place.count(), place.files()) == (3, {staged.name})


@pytest.fixture
def other_disk(lake: Path) -> Iterator[Path]:
    shared_memory = Path("/dev/shm")  # noqa: S108
    if not shared_memory.is_dir() or shared_memory.stat().st_dev == lake.stat().st_dev:
        pytest.skip("there is no second file system to write to")
    with TemporaryDirectory(dir=shared_memory) as directory:
        yield Path(directory)


def test_a_file_of_another_disk_is_copied(place: Place, other_disk: Path) -> None:
    place.create(SMALL_SQL)
    staged = other_disk / "1.parquet"
    pq.write_table(small(), staged)
    assert place.call(str(staged))[0] == "landed"
    assert (place.count(), place.files()) == (3, {"1.parquet"})
    assert staged.exists()


def test_a_file_of_another_user_is_copied(place: Place) -> None:
    """Linked, it would stay theirs: they could change what has landed."""
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    place.create(SMALL_SQL)
    staged = Path(place.stage(small()))
    os.chown(staged, 12_345, 12_345)
    assert place.call(str(staged))[0] == "landed"
    put = place.root / "t" / staged.name
    assert put.stat().st_uid == 0
    assert not put.samefile(staged)


# --- tables by day -----------------------------------------------------------------------------


def dated(*times: datetime | None) -> pa.Table:
    places = [
        {**row, "timestamp": at} for row, at in zip(raw(len(times)).to_pylist(), times, strict=True)
    ]
    for row in places:
        del row["value"]
    return pa.table(
        {"_kafka": pa.array(places, KAFKA), "v": pa.array(range(len(times)), pa.int64())}
    )


MIDNIGHT = datetime(2026, 11, 28, tzinfo=UTC)
LAST = MIDNIGHT + timedelta(days=1, microseconds=-1)
NEXT = LAST + timedelta(microseconds=1)
OF_DAYS = {
    "one day": ((MIDNIGHT, NOON, LAST), 1),
    "two days": ((NOON, NEXT, LAST, NEXT + timedelta(hours=1)), 2),
    "four days": (tuple(MIDNIGHT + n * timedelta(days=1) for n in range(4)), 4),
}
BY_DAY = f"{KAFKA_SQL}, _kafka_date DATE, v BIGINT", "PARTITIONED BY (_kafka_date)"


@pytest.mark.parametrize("kind", OF_DAYS)
def test_a_table_by_day_gets_a_file_of_each_day(place: Place, kind: str) -> None:
    """†: all rows of a file land in one commit, each of them once."""
    times, days = OF_DAYS[kind]
    path = place.create(*BY_DAY)
    staged = place.stage(dated(*times), row_group_size=1, compression="zstd")

    assert place.call(staged) == ("landed", 1, len(times), None)
    added = [each["add"] for each in place.actions() if "add" in each]
    assert len(added) == len({each["path"] for each in added}) == days
    assert sum(json.loads(each["stats"])["numRecords"] for each in added) == len(times)
    expected = sorted((n, at.date()) for n, at in enumerate(times))
    for name, read in READERS.items():
        rows = [(row["v"], row["_kafka_date"]) for row in read(place.spark, path)]
        assert sorted(rows) == expected, name
    day = place.spark.read.format("delta").load(path).where("_kafka_date = DATE'2026-11-28'")
    assert day.count() == sum(day == date(2026, 11, 28) for _, day in expected)
    sql(place.spark, f"OPTIMIZE delta.`{path}`")
    assert place.count() == len(times)


def test_files_of_days_are_those_of_an_earlier_try_or_none(place: Place) -> None:
    place.create(*BY_DAY)
    staged = place.stage(dated(NOON, NEXT), row_group_size=1)
    assert place.call(staged)[0] == "landed"
    size = sum(each["add"]["size"] for each in place.actions() if "add" in each)
    assert place.call(staged)[0] == "landed"  # the same files: nothing is doubled
    assert place.count() == 2
    files = [*(place.root / "t").glob("_kafka_date=*/*.parquet")]
    assert sum(file.stat().st_size for file in files) == size
    assert not [*(place.root / "t").rglob("*.part*")]

    other = place.stage(dated(NOON, NEXT, LAST), row_group_size=1)
    verdict, _, _, what = place.call(other)
    assert verdict == "file_not_in_place"
    assert "another file of this name" in str(what)
    assert place.count() == 2


@pytest.mark.parametrize("times", [(NOON, NEXT), (NOON, None)])
def test_rows_of_two_days_in_a_row_group_and_rows_without_a_time_are_not_taken(
    place: Place, times: tuple[datetime | None, ...]
) -> None:
    place.create(*BY_DAY)
    assert place.call(place.stage(dated(*times)))[0] == "file_not_in_place"
    assert (place.versions(), place.files()) == (1, set())


def test_a_file_of_a_table_by_day_whose_footer_has_no_times_is_not_taken(place: Place) -> None:
    place.create(*BY_DAY)
    staged = place.stage(dated(NOON), write_statistics=False)
    assert place.call(staged)[0] == "file_not_in_place"


# --- the fence ---------------------------------------------------------------------------------


def test_nothing_lands_without_the_lease(place: Place) -> None:
    place.create(SMALL_SQL)
    staged = place.stage(small())
    Path(place.lease).unlink()
    assert place.call(staged) == ("no_lease", None, None, "lease.parquet")
    assert (place.versions(), place.files()) == (1, set())


def opened_for_writing(pipe: Path) -> int:
    """Wait until somebody reads from a pipe; return its other end."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as exc:
            if exc.errno != errno.ENXIO or time.monotonic() > deadline:
                raise
        time.sleep(0.01)


def test_a_claim_between_the_snapshot_and_the_commit_is_a_conflict(place: Place) -> None:
    """The lease is a pipe: who opens it has taken the snapshot, and waits for its first byte."""
    path = place.create(SMALL_SQL)
    staged = place.stage(small())
    lease = place.staged / "pipe.parquet"
    os.mkfifo(lease)
    with ThreadPoolExecutor(1) as threads:
        commit = threads.submit(place.call, staged, lease=str(lease))
        pipe = opened_for_writing(lease)
        sql(place.spark, f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('binwright.writer' = 'w')")
        os.write(pipe, b"PAR1")
        os.close(pipe)
        with pytest.raises(PySparkException, match="DELTA_METADATA_CHANGED"):
            commit.result(DEADLINE_S)
    assert (place.count(), place.versions()) == (0, 2)
    assert place.call(staged)[0] == "landed"  # under the lease that is there


def test_a_version_that_another_program_made_meanwhile_is_never_written_over(
    place: Place,
) -> None:
    path = place.create(SMALL_SQL)
    staged, lease = place.stage(small()), place.staged / "pipe.parquet"
    os.mkfifo(lease)
    with ThreadPoolExecutor(1) as threads:
        commit = threads.submit(place.call, staged, lease=str(lease))
        pipe = opened_for_writing(lease)
        deltalake.write_deltalake(path, small(2, first=10), mode="append")
        os.write(pipe, b"PAR1")
        os.close(pipe)
        assert commit.result(DEADLINE_S) == ("landed", 2, 3, None)
    assert place.count() == 5


def test_a_log_has_versions_alone_which_all_may_read(place: Place) -> None:
    path = place.create(SMALL_SQL)
    for number in range(3):
        assert place.call(place.stage(small(), f"{number}.parquet"))[0] == "landed"
    log = Path(path) / "_delta_log"
    assert sorted(file.name for file in log.glob("*.*")) == [f"{n:020}.json" for n in range(4)]
    assert {stat.S_IMODE(file.stat().st_mode) for file in log.glob("*.json")} == {0o644}


ROUNDS, CALLERS = 12, 3
CONFLICTS = ("DELTA_METADATA_CHANGED", "DELTA_CONCURRENT")


def land_under(place: Place, lease: str, caller: str) -> list[str]:
    """Commit files one after the other until the lease is gone; return the verdicts."""
    verdicts = []
    for number in range(50):
        staged = place.stage(small(1), f"{caller}-{number}.parquet")
        try:
            verdict, *_ = place.call(staged, lease=lease)
        except PySparkException as exc:
            if not any(name in str(exc) for name in CONFLICTS):
                raise
            verdict = "conflict"
        verdicts.append(verdict)
        if verdict == "no_lease":
            return verdicts
    raise AssertionError(f"the lease was deleted, and {caller} did not notice")


def test_no_earlier_writer_lands_after_a_claim(place: Place) -> None:
    """Callers go on under a lease while another writer deletes it, then commits its claim."""
    path = place.create(SMALL_SQL)
    verdicts: list[str] = []
    with ThreadPoolExecutor(CALLERS) as threads:
        for turn in range(ROUNDS):
            lease = place.staged / f"lease-{turn}.parquet"
            shutil.copyfile(place.lease, lease)
            running = [
                threads.submit(land_under, place, str(lease), f"{turn}-{caller}")
                for caller in range(CALLERS)
            ]
            time.sleep(0.1 + 0.07 * turn)  # at another point of their work each time
            lease.unlink()
            claim = f"TBLPROPERTIES ('binwright.ended' = '{turn}')"
            sql(place.spark, f"ALTER TABLE delta.`{path}` SET {claim}")
            for each in running:
                verdicts += each.result(DEADLINE_S)

    ended, landed = -1, 0
    for action in place.actions():
        if "metaData" in action:
            ended = int(action["metaData"]["configuration"].get("binwright.ended", -1))
        if "add" in action:
            turn, *_ = action["add"]["path"].split("-")
            assert int(turn) > ended, "landed after the claim that ended its lease"
            landed += 1
    assert landed == verdicts.count("landed") > 0
    assert verdicts.count("no_lease") == ROUNDS * CALLERS
