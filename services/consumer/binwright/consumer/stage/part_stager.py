"""Stages ranges of offsets of a split partition, with a reader of its own; one at a time.

A range is fetched and decoded as the partition's owner would, into files of its own, which the
owner announces. One with little in it has a single piece, of as many offsets.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from binwright.consumer.decide.buffer import BufferedRange, TakenRows
from binwright.consumer.decide.split import PATIENCE_S
from binwright.consumer.read.backlog import Backlog
from binwright.consumer.read.meters import Meter
from binwright.consumer.stage.file_writer import FileWriter
from binwright.protocol.errors import ExternalError, RangeRefused
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import DataReader, Records
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log

RANGE_REFUSED = LogEvent.warning(
    "range.refused",
    "A part of a split partition cannot be staged here now; the partition's owner does.",
)

FETCH_BYTES = 8 << 20
FETCH_WAIT_S = 0.5

PieceStaged = Callable[[OffsetRange, int, tuple[Staged, ...]], Awaitable[None]]
"""Called with the offsets of a piece, its rows, and the announcements of its files."""
OpenReader = Callable[[], AbstractAsyncContextManager[DataReader]]


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
        self._open_reader, self._writer, self._backlog = open_reader, writer, backlog
        self._piece_bytes, self._rate = piece_bytes, rate
        self._stack = AsyncExitStack()
        self._reader: DataReader | None = None
        self._turn = asyncio.Lock()

    @property
    def stored_bytes(self) -> int:
        """Return the size of all that was read, as stored on the brokers."""
        return 0 if self._reader is None else self._reader.progress().stored_bytes

    async def close(self) -> None:
        """Close the reader."""
        await self._stack.aclose()

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

        async def got_on(piece: OffsetRange, rows: int, files: tuple[Staged, ...]) -> None:
            nonlocal left
            left = OffsetRange(piece.next, wanted.next)
            await staged(piece, rows, files)

        async with self._turn:
            try:
                reader = await self._opened()
                await reader.start(partition, wanted.first)
                try:
                    await self._stage(reader, partition, topic_id, wanted, got_on)
                finally:
                    reader.stop(partition)
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

    async def _opened(self) -> DataReader:
        if self._reader is None:
            self._reader = await self._stack.enter_async_context(self._open_reader())
        return self._reader

    async def _stage(
        self,
        reader: DataReader,
        partition: TopicPartition,
        topic_id: str | None,
        wanted: OffsetRange,
        staged: PieceStaged,
    ) -> None:
        begin = position = wanted.first
        rows: list[Records] = []
        began_at = got_on_at = loop_s()
        while begin < wanted.next:
            if self._backlog.full:
                raise RangeRefused(f"of {partition} no more is staged until some has landed")
            before, fetched = position, await reader.fetch(FETCH_BYTES, FETCH_WAIT_S)
            if (records := fetched.get(partition)) is not None:
                if inside := records.since(position).before(wanted.next):
                    rows.append(inside)
                position = max(position, records.next)  # there may be none before the end (†)
            position = min(max(position, reader.passed().get(partition, 0)), wanted.next)
            _check(reader, partition, position)  # before anything of it is staged (†)
            got_on_at = loop_s() if position > before else got_on_at
            if loop_s() - got_on_at > PATIENCE_S:
                raise RangeRefused(f"{partition} does not get on at {position}")
            size = sum(each.bytes for each in rows)
            if position == wanted.next or size >= self._piece_bytes:
                part = BufferedRange(OffsetRange(begin, position), rows, size)
                taken = TakenRows(partition.topic, topic_id, {partition: part}, began_at, size)
                await staged(part.range, taken.count, await self._write(taken))
                rows, begin, began_at = [], position, loop_s()

    async def _write(self, taken: TakenRows) -> tuple[Staged, ...]:
        files = [
            await self._writer.write(self._writer.file_name(), target, taken)
            for target in self._writer.targets(taken.topic)
        ]
        self.rows += taken.count
        self._rate.add(loop_s(), taken.bytes)
        return tuple(files)


def _check(reader: DataReader, partition: TopicPartition, position: int) -> None:
    """Raise for what only the partition's owner handles; it reads on there by itself."""
    if partition in reader.jumps():
        raise RangeRefused(f"{partition} has no offset {position} any more, or not yet")
    if partition in reader.undecodable() or partition in reader.stuck():
        raise RangeRefused(f"a batch of {partition} at {position} cannot be decoded")
