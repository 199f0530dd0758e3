"""Stages ranges of offsets of a split partition, with a reader of its own; one at a time.

A range is fetched and decoded as the partition's owner would, into files of its own, which the
owner announces. One with little in it has a single piece, of as many offsets.
"""

from collections.abc import Awaitable, Callable
from contextlib import aclosing

from binwright.consumer.decide.buffer import BufferedRange, TakenRows
from binwright.consumer.read.backlog import Backlog
from binwright.consumer.read.meters import Meter
from binwright.consumer.read.ranges import OpenReader, RangeReader
from binwright.consumer.stage.file_writer import FileWriter
from binwright.protocol.errors import ExternalError, RangeRefused
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log

RANGE_REFUSED = LogEvent.warning(
    "range.refused",
    "A part of a split partition cannot be staged here now; the partition's owner does.",
)

PieceStaged = Callable[[OffsetRange, int, tuple[Staged, ...]], Awaitable[None]]
"""Called with the offsets of a piece, its rows, and the announcements of its files."""


class PartStager:
    """Stages ranges for owners of split partitions, this process's own among them.

    Attributes:
        rows: How many rows were staged.
    """

    def __init__(
        self,
        open_reader: OpenReader,
        writer: FileWriter,
        backlog: Backlog,
        piece_bytes: int,
        rate: Meter,
    ) -> None:
        """Stage pieces of about `piece_bytes` of memory at most.

        Args:
            open_reader: Opens the reader, when it is needed for the first time.
            writer: Writes the files.
            backlog: While it is full, nothing is staged.
            piece_bytes: Size from which rows are staged before the range is complete.
            rate: Counts the bytes of staged rows.
        """
        self.rows = 0
        self._reader, self._writer, self._backlog = RangeReader(open_reader), writer, backlog
        self._piece_bytes, self._rate = piece_bytes, rate

    @property
    def stored_bytes(self) -> int:
        """Return the size of all that was read, as stored on the brokers."""
        return self._reader.stored_bytes

    async def close(self) -> None:
        """Close the reader."""
        await self._reader.close()

    async def stage(
        self,
        partition: TopicPartition,
        topic_id: str | None,
        wanted: OffsetRange,
        staged: PieceStaged,
    ) -> None:
        """Stage a range in pieces, in order, and report each.

        A last piece without offsets says that what is left of the range cannot be staged: Kafka or
        the staging location does not answer, retention took some of it, the log ends before it, a
        batch cannot be decoded, or this consumer has staged as much as it may.
        """
        left = wanted
        began_at = loop_s()
        try:
            self._check_room(partition)
            async with aclosing(self._reader.read(partition, wanted, self._piece_bytes)) as pieces:
                async for part in pieces:
                    files = await self._write(partition, topic_id, part, began_at)
                    left, began_at = OffsetRange(part.range.next, wanted.next), loop_s()
                    await staged(part.range, part.count, files)
                    if left.first < wanted.next:
                        self._check_room(partition)
        except Exception as exc:  # noqa: BLE001 - a bug, too: the owner stages it, and others go on
            expected = isinstance(exc, ExternalError)
            log(
                RANGE_REFUSED,
                partition=str(partition),
                range=[*left],
                reason=str(exc),
                exc_info=None if expected else exc,
            )
            await staged(OffsetRange(left.first, left.first), 0, ())

    def _check_room(self, partition: TopicPartition) -> None:
        if self._backlog.full:
            raise RangeRefused(f"of {partition} no more is staged until some has landed")

    async def _write(
        self,
        partition: TopicPartition,
        topic_id: str | None,
        part: BufferedRange,
        oldest_at: float,
    ) -> tuple[Staged, ...]:
        taken = TakenRows(partition.topic, topic_id, {partition: part}, oldest_at, part.bytes)
        files = [
            await self._writer.write(self._writer.file_name(), target, taken)
            for target in self._writer.targets(taken.topic)
        ]
        self.rows += taken.count
        self._rate.add(loop_s(), taken.bytes)
        return tuple(files)
