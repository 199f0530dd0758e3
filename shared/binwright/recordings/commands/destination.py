"""Where a converted stream or recording goes: nothing that is there already is changed."""

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from binwright.protocol.errors import SettingsError, StreamError
from binwright.protocol.measurements import Measurement
from binwright.protocol.model import BytesPerSecond
from binwright.recordings.location import STANDARD, StreamLocation
from binwright.recordings.recorder import RecordedMeasurement

COMMIT_BYTES = 32 << 20
RATE_BYTES = 64  # of JSON, about, for each partition of a measurement


def check_free(location: StreamLocation) -> None:
    """Raise `SettingsError` if the location is a file that is there already."""
    if location.name != STANDARD and location.table is None and Path(location.name).exists():
        raise SettingsError(f"{location.name} exists: name another file, or remove it")


@contextmanager
def open_output(name: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard output; a file has its name only once it is complete.

    Raises:
        StreamError: It cannot be written.
    """
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(name).resolve()
    # A pipe or a device is written as it is: only a file can be replaced.
    direct = path.exists() and not path.is_file()
    part = path if direct else path.with_name(f"{path.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        if not direct:
            part.rename(path)
    except OSError as exc:
        raise StreamError(f"{name}: {exc}") from exc
    finally:
        if not direct:
            part.unlink(missing_ok=True)


async def write_table(
    location: StreamLocation,
    measurements: AsyncIterator[Measurement],
    capacity: BytesPerSecond,
    commit_bytes: int = COMMIT_BYTES,
) -> int:
    """Write a new Delta table; return how many measurements.

    Args:
        location: Of the table.
        measurements: In order.
        capacity: What a consumer was packed to, bytes/s.
        commit_bytes: About so much of their JSON goes into one commit.

    Raises:
        SettingsError: There is a table already.
        StreamError: The measurements cannot be read.
        LakeUnavailable, EmbeddedError: Spark fails or does not start.
    """
    from binwright.recordings.table import TableRecordingWriter, table_exists  # noqa: PLC0415 - as in `lake`

    path, count, pending, size = location.table or "", 0, list[RecordedMeasurement](), 0
    async with location.lake() as lake:
        if await table_exists(lake, path):
            raise SettingsError(f"{location.name} exists: name another table, or remove it")
        writer = TableRecordingWriter(lake, path, capacity)
        async for measurement in measurements:
            pending.append(RecordedMeasurement(count, measurement))
            count, size = count + 1, size + RATE_BYTES * (1 + len(measurement.partitions))
            if size >= commit_bytes:
                await writer.append(pending)
                pending, size = [], 0
        await writer.append(pending)
    return count
