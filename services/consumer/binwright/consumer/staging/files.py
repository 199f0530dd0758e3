"""Records as rows in Parquet files, on Arrow's file systems.

All calls block and raise Arrow's errors.
"""

import os
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from binwright.protocol.model import TopicPartition
from binwright.protocol.names import is_lease, is_staged_file
from binwright.protocol.ports.kafka import Record

_HEADER: list[tuple[str, pa.DataType]] = [("key", pa.string()), ("value", pa.binary())]
_TYPES: dict[str, pa.DataType] = {
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_type": pa.int32(),
    "key": pa.binary(),
    "value": pa.binary(),
    "headers": pa.list_(pa.struct(_HEADER)),
}
SCHEMA = pa.schema(_TYPES)
"""A table's columns in order of creation. The first four have statistics per file."""

COLUMNS = {
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestamp_type": "int",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
}
"""The same columns in Spark's types."""

LATEST_MS = 253_402_300_799_999  # the last millisecond of the year 9999

CODEC: Literal["lz4"] = (
    "lz4"  # raw blocks: landing takes a tenth less of Spark's CPU than with snappy
)
UNFINISHED = ".unfinished-"  # prefix of a local file that is being written
FEW = 5  # below it, objects are looked up one by one
UNFINISHED_S = 3600.0  # an older unfinished file is abandoned


def to_arrow(rows: Mapping[TopicPartition, Sequence[Record]]) -> pa.Table:
    """Return one row per record, partition after partition, in order of offsets.

    A timestamp out of range is NULL, so that one record cannot stop a table: before 1970 (Kafka's
    -1 means none) or after the year 9999 (a producer sent nanoseconds instead of milliseconds).
    """
    batches = [_batch(p, records) for p, records in rows.items() if records]
    return pa.Table.from_batches(batches, schema=SCHEMA).combine_chunks()


def _batch(partition: TopicPartition, records: Sequence[Record]) -> pa.RecordBatch:
    count = len(records)
    columns: list[pa.Array[Any]] = [
        pa.repeat(pa.scalar(partition.topic, pa.string()), count),
        pa.repeat(pa.scalar(partition.partition, pa.int32()), count),
        pa.array([r.offset for r in records], pa.int64()),
        pa.array([_time_us(r.timestamp_ms) for r in records], pa.timestamp("us", "UTC")),
        pa.array([r.timestamp_type for r in records], pa.int32()),
        pa.array([r.key for r in records], pa.binary()),
        pa.array([r.value for r in records], pa.binary()),
        _headers([r.headers for r in records]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _time_us(ms: int) -> int | None:
    return ms * 1000 if 0 <= ms <= LATEST_MS else None


def _headers(given: list[tuple[tuple[str, bytes | None], ...]]) -> "pa.Array[Any]":
    ends = [0]
    for headers in given:
        ends.append(ends[-1] + len(headers))
    keys = pa.array([key for headers in given for key, _ in headers], pa.string())
    values = pa.array([value for headers in given for _, value in headers], pa.binary())
    items = pa.StructArray.from_arrays([keys, values], names=["key", "value"])
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), items)


def encoded(rows: Mapping[TopicPartition, Sequence[Record]]) -> pa.Buffer:
    """Return the rows as a Parquet file; it is read once, so it has no indexes and statistics."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        to_arrow(rows), sink, compression=CODEC, use_dictionary=False, write_statistics=False
    )
    return sink.getvalue()


def open_location(url: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a path or address, and the path in it."""
    scheme, _, rest = url.rpartition("://")
    scheme = "s3" if scheme == "s3a" else scheme
    source = f"{scheme}://{rest}" if scheme else str(Path(rest).absolute())
    return pafs.FileSystem.from_uri(source)


class Files:
    """Staged files below a root, with one directory per topic."""

    def __init__(self, url: str) -> None:
        self._fs, self._root = open_location(url)
        self._local = isinstance(self._fs, pafs.LocalFileSystem)

    def prepare(self) -> None:
        """Check that files can be written, and load all that the first write needs."""
        if self._local:
            self._fs.create_dir(self._root, recursive=True)
        probe = f"{self._root}/{UNFINISHED}probe-{uuid4().hex[:8]}"
        with self._fs.open_output_stream(probe) as stream:
            stream.write(encoded({}))
        self._fs.delete_file(probe)

    def write(self, topic: str, name: str, rows: Mapping[TopicPartition, Sequence[Record]]) -> int:
        """Write a file whole and durably; return its bytes."""
        content = encoded(rows)
        if self._local:
            self._write_locally(Path(self._root) / topic, name, content)
        else:
            with self._fs.open_output_stream(self._path(topic, name)) as stream:
                stream.write(content)
        return content.size

    def _write_locally(self, directory: Path, name: str, content: pa.Buffer) -> None:
        if not directory.is_dir():
            directory.mkdir(parents=True, exist_ok=True)
            _sync(directory.parent)
        unfinished = directory / f"{UNFINISHED}{name}"
        try:
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(directory / name)
        except OSError:
            unfinished.unlink(missing_ok=True)
            raise
        _sync(directory)

    def delete(self, topic: str, names: Collection[str]) -> None:
        """Delete files; a missing one is no error."""
        for name in filter(is_staged_file, self._sizes(topic, names)):
            try:
                self._fs.delete_file(self._path(topic, name))
            except FileNotFoundError:
                continue

    def existing(self, topic: str, names: Collection[str]) -> frozenset[str]:
        """Return which of these files exist and are not empty: Spark skips an empty one."""
        return frozenset(name for name, size in self._sizes(topic, names).items() if size)

    def _sizes(self, topic: str, names: Collection[str]) -> dict[str, int]:
        """Return the sizes of those of these files that exist, bytes."""
        if self._local or len(names) < FEW:
            infos = self._fs.get_file_info([self._path(topic, name) for name in sorted(names)])
        else:  # one listing for up to a thousand
            selector = pafs.FileSelector(f"{self._root}/{topic}", allow_not_found=True)
            infos = self._fs.get_file_info(selector)
        wanted = frozenset(names)
        files = (info for info in infos if info.type == pafs.FileType.File)
        return {info.base_name: info.size for info in files if info.base_name in wanted}

    def readable(self, topic: str, names: Collection[str]) -> frozenset[str]:
        """Return which of these files exist and can be read as a whole."""
        return frozenset(name for name in names if self._is_whole(self._path(topic, name)))

    def _is_whole(self, path: str) -> bool:
        try:
            with self._fs.open_input_file(path) as file:
                pq.read_table(file)
        except (FileNotFoundError, pa.ArrowInvalid):
            return False
        except OSError as exc:
            if _is_damaged(exc):
                return False
            raise
        return True

    def delete_all(self) -> None:
        """Delete the whole location: of a throw-away table."""
        self._fs.delete_dir(self._root)

    def collect(self, topic: str, older_than_s: float) -> int:
        """Delete staged files older than `older_than_s`, and abandoned ones; return how many."""
        now, deleted = time.time(), 0
        selector = pafs.FileSelector(f"{self._root}/{topic}", allow_not_found=True)
        for info in self._fs.get_file_info(selector):
            age_s = now - (info.mtime_ns or now * 1e9) / 1e9
            unfinished = info.base_name.startswith(UNFINISHED)
            ours = is_staged_file(info.base_name.removeprefix(UNFINISHED))
            if (
                info.is_file
                and ours
                and age_s > (min(older_than_s, UNFINISHED_S) if unfinished else older_than_s)
            ):
                self._fs.delete_file(info.path)
                deleted += 1
        return deleted

    def delete_other_leases(self, topic: str, lease: str) -> None:
        """Delete all leases of the topic's table but this one; a missing one is no error."""
        selector = pafs.FileSelector(f"{self._root}/{topic}", allow_not_found=True)
        for info in self._fs.get_file_info(selector):
            if is_lease(info.base_name) and info.base_name != lease:
                try:
                    self._fs.delete_file(info.path)
                except FileNotFoundError:
                    continue

    def _path(self, topic: str, name: str) -> str:
        return f"{self._root}/{topic}/{name}"


def _is_damaged(exc: OSError) -> bool:
    """Return whether the file's content is the fault; faults of the storage have an error code.

    Arrow raises `OSError` without a code for pages that cannot be read.
    """
    return exc.errno is None


def _sync(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
