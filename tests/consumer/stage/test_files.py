"""Staged files are complete and durable, or absent; damaged and old ones are known."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Semaphore
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from binwright.consumer.decode.arrow_types import BAD
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.stage.added_columns import AddedColumns, publish_added
from binwright.consumer.stage.file_staging import FileStaging, redacted
from binwright.consumer.stage.files import Files
from binwright.consumer.stage.parquet import SCHEMA, to_arrow
from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import (
    ADDED_COLUMNS,
    TABLE_LAYOUT,
    bad_file,
    batch_name,
    mark_name,
    portion_name,
)
from binwright.protocol.ports.kafka import Record
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Footer, Staging
from binwright.testing.records import in_columns
from binwright.testing.staging import footer_of

OLD, NEW = "0-1-1-0a1b2c3d.parquet", "12-345-67-89abcdef.parquet"
BATCH = batch_name(0, 5, 0x0A1B2C3D)
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


def contents(place: Path) -> list[str]:
    return sorted(file.name for file in place.iterdir())


def listed(tmp_path: Path) -> list[str]:
    return contents(directory(tmp_path))


async def test_decoded_rows_are_laid_out_as_a_table_once_its_writer_reads_that(
    tmp_path: Path,
) -> None:
    """A writer of an earlier version would take the file for damaged."""
    decoder = JsonDecoder(parse_columns("id BIGINT"))
    rows = in_columns({P: [Record(0, 1_000, None, b'{"id":1}')]})

    async with FileStaging(str(tmp_path), in_place=True) as staging:

        async def as_table() -> bool:
            await staging.write("orders", NEW, rows, Footer(None, 1, {0: (0, 1)}), decoder)
            return (await staging.footers("orders", [NEW]))[NEW].as_table

        assert not await as_table()
        await staging.keep("orders", TABLE_LAYOUT, b"read")
        assert await as_table()
        await staging.write("orders", OLD, in_columns(ROWS), footer_of(ROWS))
        assert (
            pq.ParquetFile(tmp_path / "orders" / OLD).metadata.row_group(0).column(2).is_stats_set
        )


async def stage_with_bad(tmp_path: Path, name: str = NEW) -> tuple[FileStaging, Path]:
    """Stage a file with a good and a bad record; return where, and the file of the bad one."""
    staging = FileStaging(str(tmp_path), in_place=True)
    await staging.keep("orders", TABLE_LAYOUT, b"read")
    values = (b'{"id":1}', b"no JSON")
    rows = in_columns({P: [Record(n, 1_000, None, each) for n, each in enumerate(values)]})
    footer, decoder = Footer("id", 2, {0: (0, 2)}), JsonDecoder(parse_columns("id BIGINT"))
    await staging.write("orders", name, rows, footer, decoder)
    return staging, tmp_path / "orders" / bad_file(name)


@pytest.mark.parametrize("name", [NEW, portion_name("0" * 32)])
async def test_what_is_beside_a_file_is_deleted_with_it(tmp_path: Path, name: str) -> None:
    staging, beside = await stage_with_bad(tmp_path, name)
    assert contents(beside.parent) == sorted([name, beside.name, TABLE_LAYOUT])
    announced = {NEW} if name == NEW else set()
    assert (await staging.sizes("orders")).keys() == announced, "it is announced with its file"
    await staging.delete("orders", [name])
    assert contents(beside.parent) == [TABLE_LAYOUT]


async def test_what_is_left_beside_a_file_is_collected_by_age(tmp_path: Path) -> None:
    staging, beside = await stage_with_bad(tmp_path)
    (tmp_path / "orders" / NEW).unlink()
    assert await staging.older("orders", 0.0) == {beside.name}
    (footer,) = (await staging.footers("orders", [beside.name])).values()
    assert footer.ranges == {0: (0, 2)}
    await staging.delete("orders", [beside.name])
    assert contents(beside.parent) == [TABLE_LAYOUT]


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"PAR1")])
async def test_a_file_is_readable_only_with_what_is_beside_it(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    staging, beside = await stage_with_bad(tmp_path)
    assert await staging.readable("orders", [NEW]) == {NEW}
    damage(beside)
    assert not await staging.readable("orders", [NEW])


async def test_what_is_beside_a_file_is_durable_before_the_file_is_there(tmp_path: Path) -> None:
    """Whoever finds the file looks for its bad records."""
    files, order = Files(str(tmp_path)), list[str]()
    put = files.put

    def record(directory: str, name: str, content: pa.Buffer) -> int:
        order.append(name)
        return put(directory, name, content)

    files.put = record  # type: ignore[method-assign]
    files.put_both("orders", NEW, pa.py_buffer(b"rows"), pa.py_buffer(b"bad"))
    assert order == [bad_file(NEW), NEW]


async def test_written_rows_can_be_read_back(staging: FileStaging, tmp_path: Path) -> None:
    fits: Staging = staging
    await fits.prepare()
    size = await staging.write("orders", "a.parquet", in_columns(ROWS), footer_of(ROWS))
    file = directory(tmp_path) / "a.parquet"

    assert size == file.stat().st_size
    table = pq.read_table(file)
    assert table.schema.equals(SCHEMA)
    assert table.equals(to_arrow(in_columns(ROWS)))
    assert listed(tmp_path) == ["a.parquet"], "no unfinished file is left"


async def test_a_file_address_is_a_path(tmp_path: Path) -> None:
    async with FileStaging(f"file://{tmp_path}/x") as staging:
        await staging.write("orders", "a", in_columns(ROWS), footer_of(ROWS))
    assert (tmp_path / "x" / "orders" / "a").is_file()


async def test_a_second_write_gives_the_same_file(staging: FileStaging) -> None:
    first = await staging.write("orders", "a", in_columns(ROWS), footer_of(ROWS))
    assert await staging.write("orders", "a", in_columns(ROWS), footer_of(ROWS)) == first
    assert await staging.existing("orders", ["a"]) == {"a"}


async def test_deleting_a_missing_file_is_no_error(staging: FileStaging, tmp_path: Path) -> None:
    await staging.delete("orders", [OLD])
    await staging.write("orders", OLD, in_columns(ROWS), footer_of(ROWS))
    await staging.delete("orders", [OLD, NEW])
    assert not listed(tmp_path)


async def test_missing_and_damaged_files_are_distinguished_from_intact_ones(
    staging: FileStaging, tmp_path: Path
) -> None:
    for name in ("whole", "short", "empty", "bent"):
        await staging.write("orders", name, in_columns(ROWS), footer_of(ROWS))
    content = (directory(tmp_path) / "short").read_bytes()
    (directory(tmp_path) / "short").write_bytes(content[:-20])
    (directory(tmp_path) / "empty").write_bytes(b"")
    (directory(tmp_path) / "bent").write_bytes(content[:50] + bytes(200) + content[250:])
    names = ["whole", "short", "empty", "bent", "lost"]

    assert await staging.readable("orders", names) == {"whole"}
    assert await staging.existing("orders", names) == {"whole", "short", "bent"}


async def test_a_file_has_its_name_only_when_its_content_is_on_the_disk(tmp_path: Path) -> None:
    """A crash at any time leaves the whole file, or none of this name."""
    synced: list[tuple[bool, list[str], int]] = []

    def record(handle: int) -> None:
        there = sorted(directory(tmp_path).iterdir()) if directory(tmp_path).is_dir() else []
        is_file, size = stat.S_ISREG(os.fstat(handle).st_mode), os.fstat(handle).st_size
        synced.append((is_file, [file.name for file in there], size if is_file else 0))

    files = Files(str(tmp_path / "lake" / "_staging" / "g"), sync=record)
    size = files.write("orders", NEW, in_columns(ROWS), footer_of(ROWS))

    assert synced == [
        (False, [], 0),  # the topic's directory is new
        (True, [f".unfinished-{NEW}"], size),
        (False, [NEW], 0),
    ]


async def test_the_topics_of_a_location_are_its_directories(
    staging: FileStaging, tmp_path: Path
) -> None:
    assert await staging.directories() == set(), "nothing was ever staged"
    for topic in ("orders", "clicks"):
        await staging.write(topic, NEW, in_columns(ROWS), footer_of(ROWS))
    (directory(tmp_path).parent / "a file").write_bytes(b"")
    (directory(tmp_path).parent / "no topic's").mkdir()

    assert await staging.directories() == {"orders", "clicks"}


async def test_footers_are_read_of_files_that_are_there_and_ours(
    staging: FileStaging, tmp_path: Path
) -> None:
    own = footer_of(ROWS)
    wide = replace(own, topic_id="an id", ranges=dict.fromkeys(range(5000), (2**60, 2**60 + 1)))
    footers = {"a": own, "b": replace(own, ranges={0: (0, 20)}), "wide": wide}
    for name, footer in footers.items():
        await staging.write("orders", name, in_columns(ROWS), footer)
    content = (directory(tmp_path) / "a").read_bytes()
    (directory(tmp_path) / "short").write_bytes(content[:-20])
    (directory(tmp_path) / "empty").write_bytes(b"")
    pq.write_table(to_arrow(in_columns(ROWS)), directory(tmp_path) / "foreign")

    found = await staging.footers("orders", [*footers, "short", "empty", "foreign", "lost"])
    assert found == footers
    assert await staging.footers("orders", []) == {}


async def test_old_and_unfinished_files_are_found(staging: FileStaging, tmp_path: Path) -> None:
    assert await staging.older("orders", 100.0) == set(), "nothing was ever staged"
    for name in (NEW, OLD):
        await staging.write("orders", name, in_columns(ROWS), footer_of(ROWS))
    for name in (OLD, NEW):
        (directory(tmp_path) / f".unfinished-{name}").write_bytes(b"x")
    os.utime(directory(tmp_path) / OLD, (1, 1))
    os.utime(directory(tmp_path) / f".unfinished-{OLD}", (1, 1))

    old = await staging.older("orders", 100.0)
    assert old == {OLD, f".unfinished-{OLD}"}
    await staging.delete("orders", old)
    assert listed(tmp_path) == [f".unfinished-{NEW}", NEW]


async def test_a_range_without_records_is_a_file_without_rows(
    staging: FileStaging, tmp_path: Path
) -> None:
    assert await staging.write("orders", NEW, {P: []}, Footer("an id", 0, {0: (4, 5)})) > 0
    table = pq.read_table(directory(tmp_path) / NEW)
    assert (table.num_rows, table.schema) == (0, SCHEMA)
    assert await staging.existing("orders", [NEW]) == {NEW}


async def test_a_kept_batch_is_whole_and_never_deleted(
    staging: FileStaging, tmp_path: Path
) -> None:
    assert await staging.content("orders", BATCH) is None
    await staging.keep("orders", BATCH, b"stored")
    assert await staging.content("orders", BATCH) == b"stored"
    os.utime(directory(tmp_path) / BATCH, (1, 1))

    assert await staging.older("orders", 100.0) == set()
    await staging.delete("orders", [BATCH])
    assert (directory(tmp_path) / BATCH).read_bytes() == b"stored"
    assert listed(tmp_path) == [BATCH]


async def test_what_columns_a_table_got_is_published_beside_its_files(
    staging: FileStaging, tmp_path: Path
) -> None:
    columns = parse_columns("x BIGINT, `a.b` STRING")
    for published in ((), columns):
        await publish_added(staging, "orders", published)
        assert await AddedColumns(staging).of("orders") == published
    os.utime(directory(tmp_path) / ADDED_COLUMNS, (1, 1))
    assert await staging.older("orders", 100.0) == set()
    assert await staging.sizes("orders") == {}


async def test_a_mark_is_deleted_by_who_names_it_and_by_no_collection(
    staging: FileStaging, tmp_path: Path
) -> None:
    mark = mark_name(0, 5, 0x0A1B2C3D, 1)
    await staging.keep("orders", mark, b"x")
    os.utime(directory(tmp_path) / mark, (1, 1))
    assert await staging.older("orders", 100.0) == set()
    assert await staging.existing("orders", [mark]) == {mark}
    await staging.delete("orders", [mark])
    assert not listed(tmp_path)


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

    assert await staging.older("orders", 100.0) == set()
    await staging.delete("orders", [name])
    assert listed(tmp_path) == [name]


async def test_a_probe_can_be_read_by_others_and_leaves_nothing(
    staging: FileStaging, tmp_path: Path
) -> None:
    probe = await staging.write_probe("probe.parquet", "abc")
    root = tmp_path / "lake" / "_staging" / "g"
    assert probe.created == (root, root.parent, root.parent.parent)
    assert pq.read_table(root / "probe.parquet").to_pylist() == [{"content": "abc"}]
    assert (probe.free_bytes or 0) > 0
    await staging.delete_probe("probe.parquet", probe)
    assert contents(tmp_path) == []


async def test_a_probe_leaves_what_was_there_before_or_came_meanwhile(
    staging: FileStaging, tmp_path: Path
) -> None:
    (tmp_path / "lake").mkdir()
    probe = await staging.write_probe("probe.parquet", "abc")
    await staging.write("orders", OLD, in_columns(ROWS), footer_of(ROWS))
    await staging.delete_probe("probe.parquet", probe)
    assert listed(tmp_path) == [OLD]
    assert contents(directory(tmp_path).parent) == ["orders"]


async def test_a_probe_that_cannot_be_written_leaves_no_directory(tmp_path: Path) -> None:
    async with FileStaging(str(tmp_path / "lake")) as staging:
        with pytest.raises(StagingUnavailable):
            await staging.write_probe("missing/probe.parquet", "abc")
    assert contents(tmp_path) == []


async def test_an_unwritable_location_is_reported_with_what_to_check(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file")
    async with FileStaging(str(tmp_path / "lake" / "staging")) as staging:
        with pytest.raises(StagingUnavailable, match=r"lake/staging cannot be written.*Check stag"):
            await staging.prepare()
        with pytest.raises(StagingUnavailable, match="cannot take orders/a"):
            await staging.write("orders", "a", in_columns(ROWS), footer_of(ROWS))
        (tmp_path / "lake").unlink()
        await staging.prepare()


async def test_a_fault_of_the_encoding_is_none_of_the_location(staging: FileStaging) -> None:
    rows = in_columns({P: [Record(0, 1, None, b"", headers=(("\ud800", b""),))]})
    with pytest.raises(UnicodeEncodeError):
        await staging.write("orders", NEW, rows, footer_of(ROWS))


async def test_an_unknown_scheme_is_reported() -> None:
    async with FileStaging("ftp://there/x") as staging:
        with pytest.raises(StagingUnavailable, match="ftp://there/x"):
            await staging.prepare()


def test_credentials_in_an_address_are_not_shown() -> None:
    url = "s3://key:secret@bucket/prefix?endpoint_override=http://minio:9000"
    assert redacted(url) == "s3://bucket/prefix"
    assert str(FileStaging(url)) == "s3://bucket/prefix"


async def test_a_place_is_of_one_group_of_one_cluster(tmp_path: Path) -> None:
    """Two systems may have groups of one name, and settings that name one place."""
    place = str(tmp_path / "staging")
    async with FileStaging(place) as staging:
        await staging.prepare("group a of cluster x")
        await staging.prepare("group a of cluster x")
    async with FileStaging(place) as other:
        with pytest.raises(StagingUnavailable, match=r"is of group a of cluster x.*of cluster y"):
            await other.prepare("group a of cluster y")
        assert await other.directories() == frozenset()


async def test_what_a_version_before_staged_in_the_directory_above_is_taken_over(
    tmp_path: Path,
) -> None:
    lease, zombie = f"lease-{'a' * 32}-2.parquet", f"lease-{'b' * 32}-1.parquet"
    async with FileStaging(str(tmp_path)) as before:
        await before.write("orders", OLD, in_columns(ROWS), footer_of(ROWS))
        await before.write_lease("orders", zombie)
    async with FileStaging(str(tmp_path / "g"), moved=True) as staging:
        await staging.write_lease("orders", lease)
        await staging.delete_other_leases("orders", lease)
        found = await staging.footers("orders", [OLD, NEW])
        assert {*found} == {OLD}
        assert found[OLD].ranges == footer_of(ROWS).ranges
        assert await staging.readable("orders", [OLD]) == {OLD}
    assert contents(tmp_path / "orders") == [], (
        "also the lease of a writer that does not know of us"
    )
    assert contents(tmp_path / "g" / "orders") == [OLD, lease]


async def test_a_place_that_is_gone_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    """Else its writer would think that another one claimed the table."""
    root = tmp_path / "staging"
    async with FileStaging(str(root)) as staging:
        await staging.write("orders", OLD, in_columns(ROWS), footer_of(ROWS))
        assert await staging.existing("orders", [OLD, NEW]) == {OLD}
        root.rename(tmp_path / "unmounted")
        with pytest.raises(StagingUnavailable, match="the staging place is gone"):
            await staging.existing("orders", [OLD])
        root.write_text("a file")
        with pytest.raises(StagingUnavailable, match="the staging place is gone"):
            await staging.existing("orders", [OLD])


async def test_sizes_are_those_of_staged_files(staging: FileStaging) -> None:
    assert await staging.sizes("orders") == {}
    size = await staging.write("orders", OLD, in_columns(ROWS), footer_of(ROWS))
    await staging.write_lease("orders", f"lease-{'a' * 32}-1.parquet")
    await staging.keep("orders", BATCH, b"batch")
    assert await staging.sizes("orders") == {OLD: size}


async def test_a_file_of_the_year_1970_is_old(staging: FileStaging, tmp_path: Path) -> None:
    await staging.write("orders", OLD, in_columns(ROWS), footer_of(ROWS))
    os.utime(directory(tmp_path) / OLD, (0, 0))
    assert await staging.older("orders", 3_600) == {OLD}


class Slow:
    """A decoder that waits until it may go on, and knows who decodes."""

    columns, settings, proposed = parse_columns("v BINARY"), "", ()

    def __init__(self) -> None:
        self.begun, self.may_end = Semaphore(0), Event()

    def memory(self, *_: Any) -> int:
        self.begun.release()
        assert self.may_end.wait(10)
        return 1

    def decode(self, values: Any, *_: Any) -> tuple[Any, Any]:
        return pa.StructArray.from_arrays([values], ["v"]), pa.nulls(len(values), BAD)


@pytest.mark.parametrize(("most_bytes", "at_once"), [(sys.maxsize, 3), (1, 1)])
async def test_only_so_many_rows_are_encoded_at_a_time(
    tmp_path: Path, most_bytes: int, at_once: int
) -> None:
    """Rows of a topic with several tables are there once, and once more for each that encodes."""
    slow, rows = Slow(), {P: [Record(0, 0, b"k", b"v")]}
    async with FileStaging(str(tmp_path), encoded_bytes=most_bytes) as staging:
        files = [
            asyncio.create_task(staging.write(table, OLD, in_columns(rows), footer_of(rows), slow))
            for table in ("one", "two", "three")
        ]
        for _ in range(at_once):
            assert await asyncio.to_thread(slow.begun.acquire, timeout=10)
        assert not await asyncio.to_thread(slow.begun.acquire, timeout=0.1)
        slow.may_end.set()
        assert all(await asyncio.gather(*files))
