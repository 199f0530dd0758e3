"""Reads ranges of offsets of one partition, with a reader of its own; one at a time."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from binwright.consumer.decide.buffer import BufferedRange
from binwright.consumer.decide.split import PATIENCE_S
from binwright.consumer.read.undecodable import DEATHS, STAGING_MARK_LEFT, Mark, mark
from binwright.protocol.errors import RangeRefused, StagingUnavailable
from binwright.protocol.landing import OffsetRange
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import DataReader, Records, UndecodableBatch
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.tables.ports import Staging

FETCH_BYTES = 8 << 20
FETCH_WAIT_S = 0.5

OpenReader = Callable[[], AbstractAsyncContextManager[DataReader]]


class RangeReader:
    """Reads ranges in pieces."""

    def __init__(self, open_reader: OpenReader, staging: Staging | None = None) -> None:
        """Read with the reader that this opens, when it is needed for the first time.

        Large batches are decoded behind marks in the staging location; without it they are left
        to the partition's owner.
        """
        self._open_reader, self._staging = open_reader, staging
        self._stack = AsyncExitStack()
        self._reader: DataReader | None = None
        self._turn = asyncio.Lock()

    @property
    def busy(self) -> bool:
        """Return whether a range is being read: another one would wait for its end."""
        return self._turn.locked()

    @property
    def stored_bytes(self) -> int:
        """Return the size of all that was read, as stored on the brokers."""
        return 0 if self._reader is None else self._reader.progress().stored_bytes

    async def close(self) -> None:
        """Close the reader."""
        await self._stack.aclose()

    async def read(
        self, partition: TopicPartition, wanted: OffsetRange, piece_bytes: int
    ) -> AsyncGenerator[BufferedRange, None]:
        """Yield a range in pieces, in order: of about `piece_bytes` of memory, but for the last.

        Close it if it is left before its end: the next range waits for that.

        Raises:
            RangeRefused: Retention took some of it, the log ends before it, a batch cannot be
                decoded, or it does not get on.
            ExternalError: Kafka does not answer.
        """
        async with self._turn:
            if self._reader is None:
                self._reader = await self._stack.enter_async_context(self._open_reader())
            reader = self._reader
            await reader.start(partition, wanted.first)
            try:
                begin = position = wanted.first
                rows: list[Records] = []
                marks: list[Mark] = []
                got_on_at = loop_s()
                while begin < wanted.next:
                    before, fetched = position, await reader.fetch(FETCH_BYTES, FETCH_WAIT_S)
                    if (records := fetched.get(partition)) is not None:
                        if inside := records.since(position).before(wanted.next):
                            rows.append(inside)
                        position = max(position, records.next)  # none may be before the end (†)
                    position = max(position, reader.passed().get(partition, 0))
                    position = min(position, wanted.next)
                    # Before anything of it is staged (†).
                    if (batch := _large(reader, partition, position)) is not None:
                        marks.append(await self._marked(partition, batch))
                        reader.allow_large(partition, batch.next)
                        await reader.start(partition, batch.first)
                    got_on_at = loop_s() if position > before else got_on_at
                    if loop_s() - got_on_at > PATIENCE_S:
                        raise RangeRefused(f"{partition} does not get on at {position}")
                    size = sum(each.bytes for each in rows)
                    if position == wanted.next or size >= piece_bytes:
                        yield BufferedRange(OffsetRange(begin, position), rows, size)
                        rows, begin, got_on_at = [], position, loop_s()
                        decoded = [mark for mark in marks if mark.next <= begin]
                        marks = [mark for mark in marks if mark.next > begin]
                        await self._unmark(partition, [n for m in decoded for n in m.all_names])
            finally:
                reader.stop(partition)
                await self._unmark(partition, [mark.name for mark in marks])

    async def _marked(self, partition: TopicPartition, batch: UndecodableBatch) -> Mark:
        """Mark a large batch, as whoever decodes it may end by that."""
        if self._staging is None:
            raise RangeRefused(_undecodable(partition, batch, "it is large"))
        if (own := await mark(self._staging, partition, batch)) is not None:
            return own
        raise RangeRefused(_undecodable(partition, batch, DEATHS))

    async def _unmark(self, partition: TopicPartition, names: Collection[str]) -> None:
        """Delete marks; one that is left counts as of a consumer that has ended."""
        if names and self._staging is not None:
            try:
                await self._staging.delete(partition.topic, names)
            except StagingUnavailable as exc:
                log(STAGING_MARK_LEFT, topic=partition.topic, reason=str(exc))


def _large(reader: DataReader, partition: TopicPartition, position: int) -> UndecodableBatch | None:
    """Return a large batch at which it stopped; raise for what only the partition's owner handles.

    It reads on there by itself.
    """
    if partition in reader.jumps():
        raise RangeRefused(f"{partition} has no offset {position} any more, or not yet")
    if (batch := reader.undecodable().get(partition)) is not None:
        if batch.large:
            return batch
        raise RangeRefused(_undecodable(partition, batch, batch.reason))
    if (reason := reader.stuck().get(partition)) is not None:
        raise RangeRefused(f"a batch of {partition} at {position} cannot be decoded: {reason}")
    return None


def _undecodable(partition: TopicPartition, batch: UndecodableBatch, reason: str) -> str:
    where = f"{partition}, from {batch.first} up to {batch.next}"
    return f"a batch of {where}, cannot be decoded: {reason}"
