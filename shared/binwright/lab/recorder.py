"""Recording the metrics topic while it is written: to a file, or to a Delta table."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import AnalysisException

from binwright.core import wire
from binwright.core.errors import StreamError
from binwright.core.messages import Measurement
from binwright.core.model import BytesPerSecond
from binwright.core.ports import Reader
from binwright.lab import recording
from binwright.lab.spark import LakeReader, missing, quoted
from binwright.shell.letters import Decoder

READ_S = 1.0
_TYPES: dict[str, pa.DataType] = {
    "position": pa.int64(),  # offset in the metrics topic
    "at": pa.timestamp("ms", "UTC"),
    "topic": pa.string(),
    "monitor": pa.string(),
    "number": pa.int64(),
    "capacity_bytes_per_s": pa.float64(),
    "measurement": pa.string(),  # as it stood in the topic, JSON
}
SCHEMA = pa.schema(_TYPES)
"""A table's columns."""


@dataclass(frozen=True, slots=True)
class Said:
    """A measurement, and where it stood."""

    position: int
    measurement: Measurement


class Keeper(Protocol):
    """Where a recording goes."""

    async def keep(self, said: Sequence[Said]) -> None:
        """Append these, in order; raise `StreamError` or `LakeUnavailable`."""


class FileKeeper:
    """A file of JSON lines: a new one, or one that is continued."""

    def __init__(self, path: Path, capacity: BytesPerSecond) -> None:
        """Begin the recording; raise `StreamError` if the file cannot be written or continued."""
        self._path = path
        try:
            if path.exists() and path.stat().st_size:
                recording.read(path)  # it must be one
                _cut_to_lines(path)
            else:
                path.write_bytes(recording.begin(capacity))
        except OSError as exc:
            raise StreamError(f"{path}: {exc}") from exc

    async def keep(self, said: Sequence[Said]) -> None:
        """Append one line for each; see `Keeper.keep`."""
        try:
            with self._path.open("ab") as file:
                file.writelines(wire.encode(each.measurement) + b"\n" for each in said)
        except OSError as exc:
            raise StreamError(f"{self._path}: {exc}") from exc


def _cut_to_lines(path: Path) -> None:
    """Take away a last line that was cut short, or the next would be glued to it."""
    text = path.read_bytes()
    with path.open("rb+") as file:
        file.truncate(text.rfind(b"\n") + 1)


class TableKeeper:
    """A Delta table, written by Spark: one commit for each call that brings something."""

    def __init__(self, lake: LakeReader, path: str, capacity: BytesPerSecond) -> None:
        self._lake, self._path, self._capacity = lake, path, capacity
        # A commit that is sent again under its number lands once.
        self._app, self._commits = f"binwright/record/{uuid4()}", 0

    async def keep(self, said: Sequence[Said]) -> None:
        """Append one row for each; see `Keeper.keep`."""
        if not said:
            return
        rows = pa.Table.from_pylist([self._row(each) for each in said], schema=SCHEMA)
        self._commits += 1
        await self._lake.ask(f"write {self._path}", self._append(rows, self._commits))

    def _row(self, said: Said) -> dict[str, Any]:
        found = said.measurement
        return {
            "position": said.position,
            "at": found.at_ms,
            "topic": found.topic,
            "monitor": found.monitor,
            "number": found.number,
            "capacity_bytes_per_s": self._capacity,
            "measurement": wire.encode(found).decode(),
        }

    def _append(self, rows: pa.Table, version: int) -> Callable[[Any], None]:
        def work(spark: Any) -> None:
            frame = spark.createDataFrame(rows).coalesce(1).write.format("delta").mode("append")
            frame.option("txnAppId", self._app).option("txnVersion", version).save(self._path)

        return work


async def read_table(lake: LakeReader, path: str) -> recording.Recording:
    """Read a recording from a Delta table.

    Raises:
        StreamError: There is no table, or it holds something else.
        LakeUnavailable: Spark does not answer.
    """

    def work(spark: Any) -> list[tuple[float, str]] | None:
        columns = "capacity_bytes_per_s, measurement"
        query = f"SELECT {columns} FROM {quoted(path)} ORDER BY at, position"  # noqa: S608
        try:
            return [tuple(row) for row in spark.sql(query).collect()]
        except AnalysisException as exc:
            if missing(exc):
                return None
            raise

    rows = await lake.ask(f"read {path}", work)
    if not rows:
        raise StreamError(f"{path}: there is no recording in it")
    capacity = BytesPerSecond(rows[0][0])
    lines = [recording.begin(capacity), *(text.encode() + b"\n" for _, text in rows)]
    return recording.parse(lines)


async def record(
    reader: Reader,
    keeper: Keeper,
    every_s: float,
    stop: asyncio.Event,
) -> int:
    """Keep what is said from now on, in portions of `every_s` seconds; return how many.

    Args:
        reader: Of the metrics topic.
        keeper: Gets the portions; the last one when `stop` is set.
        every_s: How long a portion is gathered.
        stop: Set from outside; noticed within a second.

    Raises:
        BrokerUnavailable: Kafka does not answer.
        StreamError, LakeUnavailable: It cannot be kept.
    """
    now = asyncio.get_running_loop().time
    kept, pending, due = 0, list[Said](), now() + every_s
    decoder = Decoder(wire.decode_measurement)
    while not stop.is_set():
        records = await reader.read(min(READ_S, every_s))
        said = decoder.readable(records)
        pending += [Said(at.offset, measurement) for at, measurement in said]
        if now() >= due or stop.is_set():
            await keeper.keep(pending)
            kept, pending, due = kept + len(pending), [], now() + every_s
    return kept
