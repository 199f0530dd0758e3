"""Staged files on a real file system: complete or absent."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from binwright.consumer.staging.file_staging import FileStaging, redacted
from binwright.consumer.staging.rows import SCHEMA, to_arrow
from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.protocol.ports.lake import Staging

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 7)
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
    await staging.delete("orders", ["a"])
    await staging.write("orders", "a", ROWS)
    await staging.delete("orders", ["a", "b"])
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
    for name in ("new", "old"):
        await staging.write("orders", name, ROWS)
    for name in (".unfinished-old", ".unfinished-new"):
        (directory(tmp_path) / name).write_bytes(b"x")
    os.utime(directory(tmp_path) / "old", (1, 1))
    os.utime(directory(tmp_path) / ".unfinished-old", (1, 1))

    assert await staging.collect("orders", 100.0) == 2
    assert listed(tmp_path) == [".unfinished-new", "new"]


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
