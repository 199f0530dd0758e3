"""Recordings in a Delta table, written and read by Spark."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException

from binwright.lake.lake_reader import LakeReader, frame, quoted, table_missing
from binwright.protocol import wire
from binwright.protocol.errors import StreamError
from binwright.protocol.model import BytesPerSecond
from binwright.streams import recording
from binwright.streams.recording import RecordedMeasurement

PORTION_BYTES = 32 << 20
"""Of measurements, as JSON, in one query of a copy: Spark's client takes up to 128 MB."""

MINUTE_MS = 60_000

_OTHER_COLUMNS = {"UNRESOLVED_COLUMN.WITH_SUGGESTION", "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION"}

_TYPES: dict[str, pa.DataType] = {
    "position": pa.int64(),  # offset in the metrics topic
    "at": pa.timestamp("us", "UTC"),
    "topic": pa.string(),
    "monitor": pa.string(),
    "number": pa.int64(),
    "capacity_bytes_per_s": pa.float64(),
    "measurement": pa.string(),  # the record's JSON
}
SCHEMA = pa.schema(_TYPES)
"""A table's columns."""


class TableRecordingWriter:
    """A Delta table, written by Spark: one commit for each call with at least one measurement."""

    def __init__(self, lake: LakeReader, path: str, capacity: BytesPerSecond) -> None:
        self._lake, self._path, self._capacity = lake, path, capacity
        # Delta skips a commit that is sent again under the same app id and version.
        self._app, self._commits = f"binwright/record/{uuid4()}", 0

    async def append(self, recorded: Sequence[RecordedMeasurement]) -> None:
        """Append one row for each; see `RecordingWriter.append`."""
        if not recorded:
            return
        rows = pa.Table.from_pylist([self._row(each) for each in recorded], schema=SCHEMA)
        self._commits += 1
        await self._lake.run(f"write {self._path}", self._append(rows, self._commits))

    def _row(self, recorded: RecordedMeasurement) -> dict[str, Any]:
        measurement = recorded.measurement
        return {
            "position": recorded.offset,
            "at": measurement.at_ms * 1000,
            "topic": measurement.topic,
            "monitor": measurement.monitor,
            "number": measurement.number,
            "capacity_bytes_per_s": self._capacity,
            "measurement": wire.encode(measurement).decode(),
        }

    def _append(self, rows: pa.Table, version: int) -> Callable[[Any], None]:
        def work(spark: Any) -> None:
            writer = frame(spark, rows).coalesce(1).write.format("delta").mode("append")
            writer.option("txnAppId", self._app).option("txnVersion", version).save(self._path)

        return work


async def table_exists(lake: LakeReader, path: str) -> bool:
    """Whether there is a Delta table; raise `LakeUnavailable`."""

    def work(spark: Any) -> bool:
        try:
            spark.sql(f"SELECT 1 FROM {quoted(path)} LIMIT 1").collect()  # noqa: S608
        except AnalysisException as exc:
            if table_missing(exc):
                return False
            raise
        return True

    return await lake.run(f"look for {path}", work)


async def copy_table(
    lake: LakeReader, path: str, file: Path, portion_bytes: int = PORTION_BYTES
) -> None:
    """Copy a recording from a Delta table to a file, a portion of some minutes at a time.

    Args:
        lake: Spark.
        path: Of the table.
        file: That is made.
        portion_bytes: Neither Spark nor this process holds more measurements, as JSON, at a time;
            or those of one minute, if these are more.

    Raises:
        StreamError: There is no table, it is no recording, or the file cannot be written.
        LakeUnavailable: Spark does not answer.
    """
    minutes = await lake.run(f"read {path}", _minutes(path))
    if not minutes:
        raise StreamError(f"{path}: there is no recording in it")
    begun = False
    for first, last in portions(minutes, portion_bytes):
        rows = await lake.run(f"read {path}", _portion(path, first, last))
        lines = [text.encode() + b"\n" for text in rows["measurement"].to_pylist() if text]
        if not begun:
            capacity = BytesPerSecond(rows["capacity_bytes_per_s"][0].as_py())
            lines.insert(0, recording.header_line(capacity))
        await asyncio.to_thread(_write, file, lines, "ab" if begun else "wb")
        begun = True


def portions(sizes: Sequence[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and the last minute of portions, each of at most `most` bytes if it can be.

    Args:
        sizes: Minutes that hold measurements, rising, and the bytes of each.
        most: Bytes of a portion; a minute that has more is a portion of its own.
    """
    first, last, total = sizes[0][0], sizes[0][0], 0
    for minute, size in sizes:
        if total and total + size > most:
            yield first, last
            first, total = minute, 0
        last, total = minute, total + size
    yield first, last


def _minutes(path: str) -> Callable[[Any], list[tuple[int, int]]]:
    # A minute of a recording of one topic has about 60 rows.
    query = (
        "SELECT unix_millis(at) DIV 60000 AS minute, sum(length(measurement)) AS bytes "  # noqa: S608
        f"FROM {quoted(path)} GROUP BY minute ORDER BY minute"
    )

    def work(spark: Any) -> list[tuple[int, int]]:
        try:
            return [(row["minute"], row["bytes"]) for row in spark.sql(query).collect()]
        except AnalysisException as exc:
            if table_missing(exc):
                return []
            if exc.getCondition() in _OTHER_COLUMNS:
                raise StreamError(f"{path}: the table is no recording") from exc
            raise

    return work


def _portion(path: str, first: int, last: int) -> Callable[[Any], pa.Table]:
    query = (
        f"SELECT capacity_bytes_per_s, measurement FROM {quoted(path)} "  # noqa: S608
        f"WHERE at >= timestamp_millis({first * MINUTE_MS}) "
        f"AND at < timestamp_millis({(last + 1) * MINUTE_MS}) ORDER BY at, position"
    )
    return lambda spark: spark.sql(query).toArrow()


def _write(file: Path, lines: Iterable[bytes], mode: Literal["ab", "wb"]) -> None:
    try:
        with file.open(mode) as opened:
            opened.writelines(lines)
    except OSError as exc:
        raise StreamError(f"{file}: {exc}") from exc
