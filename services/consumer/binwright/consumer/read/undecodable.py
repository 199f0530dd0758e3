"""What becomes of batches that cannot be decoded, and of large ones.

A batch that cannot be decoded is kept in a file for a person, and reading goes on behind it.

A large one may take more memory than the process has: it is killed then, and so is each process
that gets the partition after it. So it is decoded only behind a mark, a file that all consumers of
the group see, which is deleted once the batch's rows are decoded and encoded: what ends a consumer
while they are written is not the batch. Two marks remain where two consumers have ended: the third
keeps the batch and steps over it.
"""

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import batch_name, mark_name
from binwright.protocol.ports.kafka import UndecodableBatch
from binwright.runtime.backoff import Backoff
from binwright.runtime.logs import log
from binwright.tables.ports import Staging

BATCH_UNKEPT = LogEvent.error(
    "batch.unkept", "A batch that cannot be decoded could not be written to a file; tried again."
)
BATCH_LARGE = LogEvent.warning(
    "batch.large", "A batch that inflates to much memory is decoded, behind a mark for others."
)
BATCH_SKIPPED = LogEvent.error(
    "batch.skipped",
    "Reading goes on behind a batch that cannot be decoded; `file` has its bytes, but where the "
    "topic has a mask.",
)
STAGING_MARK_LEFT = LogEvent.warning(
    "staging.mark_left", "The mark of a large batch cannot be deleted; tried again."
)

Continue = Callable[[TopicPartition, UndecodableBatch], None]
DEATHS = "it is large, and two consumers ended while they decoded it"


@dataclass(frozen=True, slots=True)
class Mark:
    """A file that says that a consumer decodes a large batch."""

    next: int  # the offset behind the batch
    name: str
    all_names: tuple[str, ...]  # of this batch, whichever consumer wrote them


def mark_names(partition: TopicPartition, batch: UndecodableBatch) -> tuple[str, ...]:
    """Return the names of a batch's marks."""
    checksum = zlib.crc32(batch.content)
    return tuple(mark_name(partition.partition, batch.first, checksum, n) for n in (1, 2))


async def mark(staging: Staging, partition: TopicPartition, batch: UndecodableBatch) -> Mark | None:
    """Mark a large batch; return None if two consumers did so and ended.

    Raises:
        StagingUnavailable: It cannot be marked now.
    """
    names = mark_names(partition, batch)
    existing = set(await staging.existing(partition.topic, names))
    free = [name for name in names if name not in existing]
    if not free:
        return None
    await staging.keep(partition.topic, free[0], b"a consumer decodes this batch")
    return Mark(batch.next, free[0], names)


class UndecodableBatches:
    """Batches at which partitions are stopped, and marks of those whose rows are not decoded."""

    def __init__(
        self,
        staging: Staging,
        *,
        step_over: Continue,
        decode: Continue,
        is_masked: Callable[[str], bool],
    ) -> None:
        """Have reading go on in one of two ways.

        Args:
            staging: Where batches and marks are kept.
            step_over: Goes on behind a batch that is kept.
            decode: Goes on at a large batch that is marked.
            is_masked: Whether a topic's records may not be kept as they are.
        """
        self._staging, self._step_over, self._decode = staging, step_over, decode
        self._is_masked = is_masked
        self._arrived: asyncio.Queue[tuple[TopicPartition, UndecodableBatch]] = asyncio.Queue()
        self._stopped: dict[TopicPartition, UndecodableBatch] = {}
        self._marks: dict[TopicPartition, Mark] = {}
        self._needless: asyncio.Queue[tuple[str, tuple[str, ...]]] = asyncio.Queue()

    def add(self, partition: TopicPartition, batch: UndecodableBatch) -> None:
        """Have reading go on from a batch at which the partition is stopped."""
        self._stopped[partition] = batch
        self._arrived.put_nowait((partition, batch))

    def forget(self, partition: TopicPartition) -> None:
        """Leave the partition's batch alone: it is no longer read, or from elsewhere."""
        self._stopped.pop(partition, None)
        if own := self._marks.pop(partition, None):
            self._needless.put_nowait((partition.topic, (own.name,)))

    def decoded(self, topic: str, end: Callable[[TopicPartition], int | None]) -> None:
        """Delete the marks of batches before the `end` of what is decoded of a partition."""
        for partition, own in list(self._marks.items()):
            if partition.topic == topic and (end(partition) or 0) >= own.next:
                del self._marks[partition]
                # Those who left the other mark ended for another reason.
                self._needless.put_nowait((topic, own.all_names))

    async def run(self) -> None:
        """Do all this until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._delete_marks())
            while True:
                tasks.create_task(self._go_on(*await self._arrived.get()))

    async def _go_on(self, partition: TopicPartition, batch: UndecodableBatch) -> None:
        where = {"partition": str(partition), "offset": batch.first}
        pause = Backoff()
        while self._stopped.get(partition) is batch:
            try:
                own = await self._mark(partition, batch) if batch.large else None
                file = "" if own else await self._keep(partition, batch)
            except StagingUnavailable as exc:
                log(BATCH_UNKEPT, **where, reason=str(exc), then="tried again")
                await asyncio.sleep(pause.next())
                continue
            if self._stopped.get(partition) is not batch:
                if own:
                    self._needless.put_nowait((partition.topic, (own.name,)))
                return
            del self._stopped[partition]
            if own:
                self._marks[partition] = own
                log(BATCH_LARGE, **where, stored_bytes=len(batch.content), mark=own.name)
                self._decode(partition, batch)
            else:
                offsets, reason = batch.next - batch.first, DEATHS if batch.large else batch.reason
                log(BATCH_SKIPPED, **where, offsets=offsets, reason=reason, file=file)
                self._step_over(partition, batch)

    async def _mark(self, partition: TopicPartition, batch: UndecodableBatch) -> Mark | None:
        own = self._marks.get(partition)
        if own is not None and own.all_names == mark_names(partition, batch):
            return own
        return await mark(self._staging, partition, batch)

    async def _keep(self, partition: TopicPartition, batch: UndecodableBatch) -> str:
        """Write the batch to a file, if it may be; return where it is, "": nowhere."""
        if self._is_masked(partition.topic):
            return ""
        name = batch_name(partition.partition, batch.first, zlib.crc32(batch.content))
        await self._staging.keep(partition.topic, name, batch.content)
        return f"{self._staging}/{partition.topic}/{name}"

    async def _delete_marks(self) -> None:
        pause = Backoff()
        while True:
            topic, names = await self._needless.get()
            while True:
                try:
                    await self._staging.delete(topic, names)
                except StagingUnavailable as exc:
                    log(STAGING_MARK_LEFT, topic=topic, reason=str(exc))
                    await asyncio.sleep(pause.next())
                else:
                    pause.reset()
                    break
