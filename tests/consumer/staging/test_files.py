"""Records become rows without loss or change, in files that are complete or absent."""

import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from binwright.consumer.staging.file_staging import FileStaging, redacted
from binwright.consumer.staging.files import COLUMNS, LATEST_MS, SCHEMA, to_arrow
from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.protocol.ports.lake import Staging

OLD, NEW = "0-1-1-0a1b2c3d.parquet", "12-345-67-89abcdef.parquet"
P, Q = TopicPartition("orders", 0), TopicPartition("orders", 7)
R = TopicPartition("orders", 11)
ROWS = {
    P: [Record(o, 1_000 + o, b"k", b"v" * 100, headers=(("h", b"1"),)) for o in range(5)],
    Q: [Record(9, -1, None, None)],
}


@pytest.fixture
async def staging(tmp_path: Path) -> AsyncIterator[FileStaging]:
    async with FileStaging(str(tmp_path / "lake" / "_staging" / "g")) as staging:
        yield staging


def directory(tmp_path: Path) -> Path:
    return tmp_path / "lake" / "_staging" / "g" / "orders"


def listed(tmp_path: Path) -> list[str]:
    return sorted(file.name for file in directory(tmp_path).iterdir())


async def test_written_rows_can_be_read_back(staging: FileStaging, tmp_path: Path) -> None:
    fits: Staging = staging
    await fits.prepare()
    size = await staging.write("orders", "a.parquet", ROWS)
    file = directory(tmp_path) / "a.parquet"

    assert size == file.stat().st_size
    table = pq.read_table(file)
    assert table.schema.equals(SCHEMA)
    assert table.equals(to_arrow(ROWS))
    assert listed(tmp_path) == ["a.parquet"], "no unfinished file is left"


async def test_a_file_address_is_a_path(tmp_path: Path) -> None:
    async with FileStaging(f"file://{tmp_path}/x") as staging:
        await staging.write("orders", "a", ROWS)
    assert (tmp_path / "x" / "orders" / "a").is_file()


async def test_a_second_write_gives_the_same_file(staging: FileStaging) -> None:
    first = await staging.write("orders", "a", ROWS)
    assert await staging.write("orders", "a", ROWS) == first
    assert await staging.existing("orders", ["a"]) == {"a"}


async def test_deleting_a_missing_file_is_no_error(staging: FileStaging, tmp_path: Path) -> None:
    await staging.delete("orders", [OLD])
    await staging.write("orders", OLD, ROWS)
    await staging.delete("orders", [OLD, NEW])
    assert not listed(tmp_path)


async def test_missing_and_damaged_files_are_distinguished_from_intact_ones(
    staging: FileStaging, tmp_path: Path
) -> None:
    for name in ("whole", "short", "empty", "bent"):
        await staging.write("orders", name, ROWS)
    content = (directory(tmp_path) / "short").read_bytes()
    (directory(tmp_path) / "short").write_bytes(content[:-20])
    (directory(tmp_path) / "empty").write_bytes(b"")
    (directory(tmp_path) / "bent").write_bytes(content[:50] + bytes(200) + content[250:])
    names = ["whole", "short", "empty", "bent", "lost"]

    assert await staging.readable("orders", names) == {"whole"}
    assert await staging.existing("orders", names) == {"whole", "short", "bent"}


async def test_old_and_unfinished_files_are_collected(staging: FileStaging, tmp_path: Path) -> None:
    assert await staging.collect("orders", 100.0) == 0, "nothing was ever staged"
    for name in (NEW, OLD):
        await staging.write("orders", name, ROWS)
    for name in (OLD, NEW):
        (directory(tmp_path) / f".unfinished-{name}").write_bytes(b"x")
    os.utime(directory(tmp_path) / OLD, (1, 1))
    os.utime(directory(tmp_path) / f".unfinished-{OLD}", (1, 1))

    assert await staging.collect("orders", 100.0) == 2
    assert listed(tmp_path) == [f".unfinished-{NEW}", NEW]


@pytest.mark.parametrize(
    "name",
    [
        "part-00000-0a1b2c3d-0000-0000-0000-000000000000-c000.snappy.parquet",
        "00000000000000000000.json",
        "00000000000000000010.checkpoint.parquet",
        "_last_checkpoint",
        "a.parquet",
        f"x{'0-1-2-0a1b2c3d.parquet'}",
    ],
)
async def test_files_of_others_are_never_deleted(
    staging: FileStaging, tmp_path: Path, name: str
) -> None:
    """However old they are: in a table's directory they are the table."""
    directory(tmp_path).mkdir(parents=True)
    (directory(tmp_path) / name).write_bytes(b"x")
    os.utime(directory(tmp_path) / name, (1, 1))

    assert await staging.collect("orders", 100.0) == 0
    await staging.delete("orders", [name])
    assert listed(tmp_path) == [name]


async def test_an_unwritable_location_is_reported_with_what_to_check(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    async with FileStaging(str(tmp_path / "lake" / "staging")) as staging:
        with pytest.raises(StagingUnavailable, match=r"lake/staging cannot be written.*Check stag"):
            await staging.prepare()
        with pytest.raises(StagingUnavailable, match="cannot take orders/a"):
            await staging.write("orders", "a", ROWS)
        (tmp_path / "lake").unlink()
        await staging.prepare()


async def test_an_unknown_scheme_is_reported() -> None:
    async with FileStaging("ftp://there/x") as staging:
        with pytest.raises(StagingUnavailable, match="ftp://there/x"):
            await staging.prepare()


def test_credentials_in_an_address_are_not_shown() -> None:
    url = "s3://key:secret@bucket/prefix?endpoint_override=http://minio:9000"
    assert redacted(url) == "s3://bucket/prefix"
    assert str(FileStaging(url)) == "s3://bucket/prefix"


# --- rows ----------------------------------------------------------------------------------------


def test_a_record_becomes_a_row_with_all_its_fields() -> None:
    headers = (("a", b"1"), ("a", None), ("b", b""))
    record = Record(7, 1_700_000_000_123, b"k", b"v", 1, headers)

    assert to_arrow({R: [record]}).to_pylist() == [
        {
            "topic": "orders",
            "partition": 11,
            "offset": 7,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
            "timestamp_type": 1,
            "key": b"k",
            "value": b"v",
            "headers": [
                {"key": "a", "value": b"1"},
                {"key": "a", "value": None},
                {"key": "b", "value": b""},
            ],
        }
    ]


def test_missing_fields_are_null_and_missing_headers_an_empty_list() -> None:
    row = to_arrow({P: [Record(0, 0, None, None)]}).to_pylist()[0]

    assert (row["key"], row["value"], row["headers"]) == (None, None, [])


def test_headers_stay_with_their_record() -> None:
    given = [(), (("a", b"1"),), (), (("b", b"2"), ("c", b"3")), ()]
    table = to_arrow({P: [Record(i, 0, None, b"", headers=h) for i, h in enumerate(given)]})

    assert [
        tuple((header["key"], header["value"]) for header in row["headers"])
        for row in table.to_pylist()
    ] == given


def test_rows_are_ordered_by_partition_as_given_and_by_offset() -> None:
    table = to_arrow(
        {R: [Record(5, 0, None, b"")], P: [Record(1, 0, None, b""), Record(9, 0, None, b"")]}
    )
    positions = zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)

    assert list(positions) == [(11, 5), (0, 1), (0, 9)]


@pytest.mark.parametrize("ms", [-1, LATEST_MS + 1, 1_700_000_000_000_000_000, 2**63 - 1])
def test_a_timestamp_out_of_range_is_null(ms: int) -> None:
    """One producer that gives nanoseconds for milliseconds must not stop a table."""
    assert to_arrow({P: [Record(0, ms, None, b"")]})["timestamp"].to_pylist() == [None]


def test_the_last_valid_timestamp_is_kept() -> None:
    assert to_arrow({P: [Record(0, LATEST_MS, None, b"")]})["timestamp"].to_pylist() == [
        datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    ]


@pytest.mark.parametrize("rows", [{}, {P: []}])
def test_no_records_are_an_empty_table(rows: dict[TopicPartition, list[Record]]) -> None:
    table = to_arrow(rows)

    assert table.num_rows == 0
    assert table.schema == SCHEMA


def test_the_columns_are_the_same_in_arrow_and_in_spark() -> None:
    assert list(COLUMNS) == SCHEMA.names
