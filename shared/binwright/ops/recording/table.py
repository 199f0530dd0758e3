"""Recordings in a Delta table, written and read by Spark."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException

from binwright.core.errors import StreamError
from binwright.core.model import BytesPerSecond
from binwright.core.protocol import wire
from binwright.ops.lake_reader import LakeReader, quoted, table_missing
from binwright.ops.recording import recording
from binwright.ops.recording.recorder import RecordedMeasurement

_TYPES: dict[str, pa.DataType] = {
    "position": pa.int64(),  # offset in the metrics topic
    "at": pa.timestamp("ms", "UTC"),
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
            "at": measurement.at_ms,
            "topic": measurement.topic,
            "monitor": measurement.monitor,
            "number": measurement.number,
            "capacity_bytes_per_s": self._capacity,
            "measurement": wire.encode(measurement).decode(),
        }

    def _append(self, rows: pa.Table, version: int) -> Callable[[Any], None]:
        def work(spark: Any) -> None:
            frame = spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append")
            frame.option("txnAppId", self._app).option("txnVersion", version).save(self._path)

        return work


async def read_table(lake: LakeReader, path: str) -> recording.Recording:
    """Read a recording from a Delta table.

    Raises:
        StreamError: There is no table, or it is no recording.
        LakeUnavailable: Spark does not answer.
    """

    def work(spark: Any) -> list[tuple[float, str]] | None:
        columns = "capacity_bytes_per_s, measurement"
        query = f"SELECT {columns} FROM {quoted(path)} ORDER BY at, position"  # noqa: S608
        try:
            return [tuple(row) for row in spark.sql(query).collect()]
        except AnalysisException as exc:
            if table_missing(exc):
                return None
            raise

    rows = await lake.run(f"read {path}", work)
    if not rows:
        raise StreamError(f"{path}: there is no recording in it")
    capacity = BytesPerSecond(rows[0][0])
    lines = [recording.header_line(capacity), *(text.encode() + b"\n" for _, text in rows)]
    return recording.parse(lines)
