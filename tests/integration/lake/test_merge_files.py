"""The extension that copies the row groups of small files into larger ones, on a real server."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession
from tests.integration.lake.tables import DEADLINE_S, sql
from tests.integration.lake.test_add_files import (
    BY_DAY,
    NOON,
    RAW_SQL,
    READERS,
    SMALL_SQL,
    TYPED_SQL,
    Place,
    dated,
    in_order,
    opened_for_writing,
    quoted,
    raw,
    small,
    typed,
)

pytestmark = pytest.mark.integration


@pytest.fixture
def place(lake: Path, spark: SparkSession) -> Place:
    return Place(spark, lake)


def merge(
    place: Place, *, below: int = 32_000_000, target: int = 128_000_000, row_groups: int = 512
) -> tuple[int, int, str | None]:
    """Merge the files of the table `t`; return how many became how many, and the reason if none."""
    (row,) = place.spark.sql(
        f"CALL binwright.merge_files(table => {quoted(str(place.root / 't'))}, "
        f"below => {below}L, target => {target}L, row_groups => {row_groups}L)"
    ).collect()
    return row["removed"], row["added"], row["what"]


def land(place: Place, *tables: pa.Table, **how: Any) -> None:
    """Land each as a file of its own."""
    for number, rows in enumerate(tables):
        name = f"{place.versions()}-{number}.parquet"
        verdict, *_, what = place.call(place.stage(rows, name, **how))
        assert verdict == "landed", what


def live(place: Place) -> dict[str, dict[str, Any]]:
    """Return the files of the newest version, as the log has them."""
    files: dict[str, dict[str, Any]] = {}
    for action in place.actions():
        if "add" in action:
            files[action["add"]["path"]] = action["add"]
        elif "remove" in action:
            del files[action["remove"]["path"]]
    return files


def parts(rows: pa.Table, number: int) -> list[pa.Table]:
    size = -(-rows.num_rows // number)
    return [rows.slice(first, size) for first in range(0, rows.num_rows, size)]


@contextmanager
def stopped_merge(place: Place) -> Iterator[Any]:
    """Merge in another thread, which has taken its snapshot and waits until the block ends.

    It reads the sums of a file, which Hadoop looks for beside it, from a pipe.
    """
    first = min(live(place))
    pipe = place.root / "t" / f".{first}.crc"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as threads:
        merging = threads.submit(merge, place)
        writer = opened_for_writing(pipe)
        pipe.unlink()
        try:
            yield merging
        finally:
            os.close(writer)


# --- what readers read -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["raw", "typed"])
def test_each_reader_reads_the_same_before_and_after(place: Place, kind: str) -> None:
    columns, rows = (RAW_SQL, raw(30)) if kind == "raw" else (TYPED_SQL, typed())
    path = place.create(columns)
    land(place, *parts(rows, 4), compression="zstd", row_group_size=2)
    before = {name: in_order(read(place.spark, path)) for name, read in READERS.items()}
    bounds = [json.loads(file["stats"]) for file in live(place).values()]

    assert merge(place) == (4, 1, None)
    for name, read in READERS.items():
        assert in_order(read(place.spark, path)) == before[name], name
    ((name, merged),) = live(place).items()
    assert pq.ParquetFile(Path(path) / name).metadata.num_row_groups > 4
    statistics = json.loads(merged["stats"])
    assert statistics["numRecords"] == rows.num_rows == sum(each["numRecords"] for each in bounds)
    for key, least in (("minValues", min), ("maxValues", max)):
        for column, bound in statistics[key].items():
            if not isinstance(bound, dict):
                assert bound == least(each[key][column] for each in bounds)


def test_a_merge_is_an_optimize_of_the_history_that_changes_no_rows(place: Place) -> None:
    place.create(SMALL_SQL, "TBLPROPERTIES ('delta.appendOnly' = 'true')")
    land(place, *parts(small(30), 3))
    sizes = [file["size"] for file in live(place).values()]
    assert merge(place) == (3, 1, None)

    ((_, merged),) = live(place).items()
    info, *actions = place.actions()[-5:]
    assert info["commitInfo"]["operation"] == "OPTIMIZE"
    metrics = info["commitInfo"]["operationMetrics"]
    assert (metrics["numRemovedFiles"], metrics["numAddedFiles"]) == ("3", "1")
    assert metrics["numRemovedBytes"] == str(sum(sizes))
    assert metrics["numAddedBytes"] == str(merged["size"])
    assert not any(change["dataChange"] for action in actions for change in action.values())
    assert merge(place) == (0, 0, None)
    assert place.versions() == 5


@pytest.mark.parametrize("writer", ["pyarrow", "Spark"])
def test_predicates_find_rows_whose_pages_were_indexed_in_the_small_files(
    place: Place, writer: str
) -> None:
    """Page indexes and Bloom filters are left out: their offsets would be of other places."""
    path = place.create("id BIGINT, name STRING")
    for first in range(0, 40_000, 10_000):
        ids = range(first, first + 10_000)
        if writer == "pyarrow":
            rows = pa.table({"id": [*ids], "name": [f"n{n}" for n in ids]})
            land(place, rows, write_page_index=True, data_page_size=1_000, row_group_size=5_000)
        else:
            frame = place.spark.range(ids.start, ids.stop, 1, 1).selectExpr(
                "id", "concat('n', id) AS name"
            )
            bloom = frame.write.format("delta").mode("append")
            for option, value in (("bloom.filter.enabled#name", "true"), ("page.size", "1000")):
                bloom = bloom.option(f"parquet.{option}", value)
            bloom.save(path)
    assert merge(place) == (4, 1, None)

    ((name, _),) = live(place).items()
    file = f"{path}/{name}"
    for wanted in (0, 9_999, 10_000, 25_555, 39_999):
        where = f"name = 'n{wanted}' AND id = {wanted}"
        table = place.spark.read.format("delta").load(path)
        assert table.where(where).count() == 1
        found = duckdb.sql(f"SELECT id FROM '{file}' WHERE {where}").fetchall()  # noqa: S608
        assert found == [(wanted,)]
        by_arrow = (ds.field("id") == wanted) & (ds.field("name") == f"n{wanted}")
        assert ds.dataset(file).to_table(filter=by_arrow)["id"].to_pylist() == [wanted]
    assert place.spark.read.format("delta").load(path).where("name = 'none'").count() == 0


# --- which files -------------------------------------------------------------------------------


def test_files_of_other_columns_are_merged_with_their_like(place: Place) -> None:
    """After an ALTER, and those that Spark wrote: row groups of one file have one schema."""
    path = place.create(SMALL_SQL)
    land(place, small(3), small(3, 3))
    sql(place.spark, f"ALTER TABLE delta.`{path}` ADD COLUMNS (more STRING)")
    wider = [small(3, n).append_column("more", pa.array(["x"] * 3)) for n in (6, 9)]
    land(place, *wider)
    for first in (12, 13):
        row = f"(id, more) VALUES ({first}, 'y')"
        sql(place.spark, f"INSERT INTO delta.`{path}` {row}")
    before = {name: in_order(read(place.spark, path)) for name, read in READERS.items()}

    assert merge(place) == (6, 3, None)
    for name, read in READERS.items():
        assert in_order(read(place.spark, path)) == before[name], name


def insert(place: Place, *values: str, **session: str) -> None:
    """Have Spark write a file of each, under these settings of Parquet."""
    settings = {f"spark.sql.parquet.{key}": value for key, value in session.items()}
    before = {key: place.spark.conf.get(key) for key in settings}
    try:
        for key, value in settings.items():
            place.spark.conf.set(key, value)
        for each in values:
            sql(place.spark, f"INSERT INTO delta.`{place.root}/t` VALUES {each}")  # noqa: S608 - our own
    finally:
        for key, value in before.items():
            place.spark.conf.set(key, value)


def test_files_of_a_table_that_only_spark_writes_are_merged_too(place: Place) -> None:
    path = place.create("id BIGINT NOT NULL, v STRING")
    insert(place, *(f"({number}, 'x'), ({number + 10}, NULL)" for number in range(3)))
    table = place.spark.read.format("delta").load(path)
    before = sorted(map(tuple, table.collect()))

    assert merge(place)[1:] == (1, None)
    assert sorted(map(tuple, table.collect())) == before
    assert table.where("id = 11").count() == 1


def test_rows_of_a_column_that_has_become_wider_are_found(place: Place) -> None:
    """†: by the footers of the older files 12.34 would be 0.1234, and 5 would be 0.05."""
    path = place.create(
        "cents DECIMAL(9,2), number INT, day DATE",
        "TBLPROPERTIES ('delta.enableTypeWidening' = 'true', "
        "'delta.feature.timestampNtz' = 'supported')",
    )
    older: dict[str, pa.DataType] = {
        "cents": pa.decimal128(9, 2),
        "number": pa.int32(),
        "day": pa.date32(),
    }
    newer: dict[str, pa.DataType] = {
        "cents": pa.decimal128(11, 4),
        "number": pa.decimal128(12, 2),
        "day": pa.timestamp("us"),
    }
    row = {"cents": Decimal("12.34"), "number": 5, "day": NOON.date()}
    land(place, *[pa.Table.from_pylist([row], schema=pa.schema(older))] * 2)
    for column, wider in (
        ("cents", "DECIMAL(11,4)"),
        ("number", "DECIMAL(12,2)"),
        ("day", "TIMESTAMP_NTZ"),
    ):
        sql(place.spark, f"ALTER TABLE delta.`{path}` ALTER COLUMN {column} TYPE {wider}")
    wide = row | {"number": Decimal(5), "day": datetime.combine(NOON.date(), time())}
    land(place, *[pa.Table.from_pylist([wide], schema=pa.schema(newer))] * 2)

    assert merge(place) == (2, 1, None)
    table = place.spark.read.format("delta").load(path)
    for where in ("cents = 12.34", "number = 5", "day = TIMESTAMP_NTZ'2026-11-28'"):
        assert table.where(where).count() == 4, where
    removed, added, what = merge(place)
    assert (removed, added) == (0, 0)
    assert "in the table" in str(what)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"outputTimestampType": "INT96"}, "INT96"),
        ({"outputTimestampType": "TIMESTAMP_MILLIS"}, "MILLIS"),
        ({"datetimeRebaseModeInWrite": "LEGACY"}, "Julian"),
    ],
)
def test_rows_are_found_whose_times_are_stored_in_another_way(
    place: Place, settings: dict[str, str], reason: str
) -> None:
    """†: what such a footer says of times is of another unit, or of another calendar."""
    path = place.create("at TIMESTAMP")
    at = ("TIMESTAMP'1500-01-01 00:00:00Z'", "TIMESTAMP'2026-11-28 12:00:00Z'")
    insert(place, *(f"({each})" for each in at), **settings)
    before = live(place)
    removed, added, what = merge(place)

    assert (removed, added) == (0, 0)
    assert reason in str(what)
    assert live(place) == before
    table = place.spark.read.format("delta").load(path)
    for each in at:
        assert table.where(f"at = {each}").count() == 1


@pytest.mark.parametrize(
    ("columns", "more", "values", "reason"),
    [
        ("v VARIANT", "", "(parse_json('1'))", "VARIANT"),
        ("v INT", "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "(1)", "other names"),
    ],
)
def test_files_whose_columns_only_spark_knows_stay(
    place: Place, columns: str, more: str, values: str, reason: str
) -> None:
    place.create(columns, more)
    insert(place, values, values)
    before = live(place)
    removed, added, what = merge(place)

    assert (removed, added) == (0, 0)
    assert reason in str(what)
    assert live(place) == before


def test_a_column_whose_name_is_written_in_another_way_is_not_taken_for_nulls(
    place: Place,
) -> None:
    path = place.root / "t"
    path.mkdir()
    for number, name in enumerate(("id", "ID", "ID")):
        pq.write_table(pa.table({name: [number]}), path / f"{number}.parquet")
    sql(place.spark, f"CONVERT TO DELTA parquet.`{path}`")
    merge(place)

    table = place.spark.read.format("delta").load(str(path))
    for number in range(3):
        assert table.where(f"id = {number}").count() == 1


def test_files_of_which_rows_are_deleted_stay(place: Place) -> None:
    path = place.create(SMALL_SQL, "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    land(place, *parts(small(30), 3))
    sql(place.spark, f"DELETE FROM delta.`{path}` WHERE id = 4")  # noqa: S608 - our own

    assert merge(place) == (2, 1, None)
    for name, read in READERS.items():
        found = sorted(row["id"] for row in read(place.spark, path))
        assert found == [n for n in range(30) if n != 4], name


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("CLUSTER BY (id)", "clustering"),
        ("TBLPROPERTIES ('delta.enableRowTracking' = 'true')", "rowTracking"),
    ],
)
def test_files_whose_rows_have_an_order_or_ids_stay(place: Place, more: str, reason: str) -> None:
    place.create(SMALL_SQL, more)
    land(place, small(3), small(3, 3))
    before = live(place)
    removed, added, what = merge(place)

    assert (removed, added) == (0, 0)
    assert reason in str(what)
    assert live(place) == before


def test_files_of_another_table_stay_where_they_are(place: Place) -> None:
    """†: a VACUUM of that table would delete what is written beside them."""
    source = place.create(SMALL_SQL, table="source")
    for number in range(2):
        assert place.call(place.stage(small(3, 3 * number), f"{number}.parquet"), table="source")
    sql(place.spark, f"CREATE TABLE delta.`{place.root}/t` SHALLOW CLONE delta.`{source}`")
    before = place.files("source")

    assert merge(place) == (0, 0, None)
    land(place, small(3, 6), small(3, 9))
    assert merge(place) == (2, 1, None)
    assert (place.files("source"), place.count()) == (before, 12)


def test_where_there_is_no_table_nothing_is_merged(place: Place) -> None:
    removed, added, what = merge(place)
    assert (removed, added) == (0, 0)
    assert "no Delta table" in str(what)


def test_files_are_merged_with_those_of_their_day(place: Place) -> None:
    path = place.create(*BY_DAY)
    land(place, *(dated(NOON + timedelta(days=n)) for n in (0, 1, 0, 1, 2)))
    before = {name: in_order(read(place.spark, path)) for name, read in READERS.items()}

    assert merge(place) == (4, 2, None)
    for name, read in READERS.items():
        assert in_order(read(place.spark, path)) == before[name], name
    for file, add in live(place).items():
        assert file.startswith(f"_kafka_date={add['partitionValues']['_kafka_date']}/")


def test_a_merged_file_has_the_size_and_the_row_groups_that_are_wanted(place: Place) -> None:
    place.create(SMALL_SQL)
    land(place, *(small(3, 3 * n) for n in range(7)))
    size = max(file["size"] for file in live(place).values())

    assert merge(place, below=100)[:2] == (0, 0)
    assert merge(place, target=2 * size + 100, row_groups=3)[:2] == (6, 3)
    assert merge(place, row_groups=7)[:2] == (4, 1)
    assert place.count() == 21


def test_a_file_is_filled_with_row_groups_and_then_left(place: Place) -> None:
    place.create(SMALL_SQL)
    land(place, *(small(3, 3 * n) for n in range(5)))
    assert merge(place, row_groups=8)[:2] == (5, 1)
    land(place, *(small(3, 3 * n) for n in range(5, 10)))
    assert merge(place, row_groups=8)[:2] == (6, 2)
    land(place, small(3, 30))
    assert merge(place, row_groups=8)[:2] == (2, 1)

    groups = [
        pq.ParquetFile(place.root / "t" / each).metadata.num_row_groups for each in live(place)
    ]
    assert sorted(groups) == [3, 8]
    assert place.count() == 33


def test_files_that_are_alone_in_their_partition_keep_no_others_from_being_merged(
    place: Place,
) -> None:
    """A merge opens as many files as ten full ones have row groups: here 20."""
    place.create(*BY_DAY)
    alone = [dated(NOON - timedelta(days=n)) for n in range(1, 25)]
    land(place, *alone, dated(*[NOON] * 500), dated(*[NOON] * 500))

    assert merge(place, row_groups=2) == (2, 1, None)
    assert place.count() == 1_024


def test_a_merge_opens_a_bounded_number_of_row_groups(place: Place) -> None:
    place.create(SMALL_SQL)
    land(place, *(small(1, n) for n in range(25)))
    assert merge(place, row_groups=2) == (20, 10, None)


def test_a_merged_file_of_many_columns_has_fewer_row_groups(place: Place) -> None:
    """Its footer says something of each column of each."""
    names = [f"c{n}" for n in range(80)]
    place.create(", ".join(f"{name} INT" for name in names))
    rows = pa.table({name: pa.array([*range(30)], pa.int32()) for name in names})
    land(place, rows, rows, rows, row_group_size=1)

    assert merge(place, row_groups=128) == (2, 1, None)
    assert merge(place, row_groups=128) == (0, 0, None)
    assert place.count() == 90


# --- what others commit meanwhile --------------------------------------------------------------


def test_rows_that_are_deleted_between_the_snapshot_and_the_commit_stay_deleted(
    place: Place,
) -> None:
    """†: the commit would put them back."""
    path = place.create(SMALL_SQL)
    land(place, *parts(small(30), 3))
    with stopped_merge(place) as merging:
        deltalake.DeltaTable(path).delete("id = 11")
    with pytest.raises(PySparkException, match="DELTA_CONCURRENT_DELETE"):
        merging.result(DEADLINE_S)

    assert place.count() == 29
    assert merge(place)[1:] == (1, None)
    assert place.count() == 29


def test_files_that_another_has_merged_meanwhile_are_not_doubled(place: Place) -> None:
    """†: both would add the same rows."""
    path = place.create(SMALL_SQL)
    land(place, *parts(small(30), 3))
    with stopped_merge(place) as merging:
        deltalake.DeltaTable(path).optimize.compact()
    with pytest.raises(PySparkException, match="DELTA_CONCURRENT_DELETE"):
        merging.result(DEADLINE_S)
    assert place.count() == 30


def test_what_lands_meanwhile_is_no_conflict(place: Place) -> None:
    path = place.create(SMALL_SQL)
    land(place, *parts(small(30), 3))
    with stopped_merge(place) as merging:
        land(place, small(3, 30))
        deltalake.write_deltalake(path, small(3, 33), mode="append")
    assert merging.result(DEADLINE_S) == (3, 1, None)
    assert place.count() == 36


def test_a_claim_meanwhile_is_a_conflict_and_what_was_written_is_part_of_no_version(
    place: Place,
) -> None:
    path = place.create(SMALL_SQL)
    land(place, *parts(small(30), 3))
    before = live(place)
    with stopped_merge(place) as merging:
        sql(place.spark, f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('binwright.writer' = 'w')")
    with pytest.raises(PySparkException, match="DELTA_METADATA_CHANGED"):
        merging.result(DEADLINE_S)
    assert live(place) == before
    (orphan,) = place.files() - {*before}
    assert orphan.startswith("merged-")
    assert merge(place) == (3, 1, None)


def test_where_copies_fail_the_reply_has_the_reason_and_no_file_is_left(place: Place) -> None:
    """It is for Spark to write the rows again, or to say what is wrong."""
    path = place.create("id BIGINT, v STRING")
    for _ in range(2):
        rows = "SELECT id, uuid() FROM range(0, 10000, 1, 1)"
        sql(place.spark, f"INSERT INTO delta.`{path}` {rows}")
    (file, *_), before = sorted(live(place)), place.files()
    with (Path(path) / file).open("r+b") as body:
        body.write(b"PAR0")  # its sum is another one than that which is beside it
    removed, added, what = merge(place)

    assert (removed, added) == (0, 0)
    assert "ChecksumException" in str(what)
    assert place.files() == before


@pytest.mark.parametrize("damage", ["gone", "cut", "changed"])
def test_a_file_that_cannot_be_read_keeps_no_others_from_being_merged(
    place: Place, damage: str
) -> None:
    path = place.create(SMALL_SQL)
    land(place, *parts(small(40), 4))
    name = sorted(live(place))[1]
    file = Path(path) / name
    written = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(written[:-9] if damage == "cut" else bytes(len(written)))

    assert merge(place) == (3, 1, None)
    assert name in live(place)
    file.unlink(missing_ok=True)
    file.write_bytes(written)
    assert place.count() == 40
    assert merge(place) == (2, 1, None)
