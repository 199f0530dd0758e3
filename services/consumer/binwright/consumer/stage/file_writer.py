"""Writes taken rows to the staged files of a topic's tables, and says what is announced of them."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

from binwright.consumer.decide.buffer import TakenRows
from binwright.consumer.decode.decoders import DecoderOf, MaskOf, no_decoder, no_mask
from binwright.consumer.read.backlog import Backlog
from binwright.consumer.stage.timings import Timings
from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.names import staged_by
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.tables.ports import Footer, Staging
from binwright.tables.targets import Target

STAGING_SLOW = LogEvent.warning("staging.slow", "Staging one file takes long.")

CONCURRENT_WRITES = 4  # files, each of another table
SLOW_S = 15.0  # a slower write is logged


@dataclass(frozen=True, slots=True)
class Origin:
    """The consumer that stages, and the topic of its announcements."""

    slot: Slot
    epoch: int
    landing_topic: str


def one_raw_table(topic: str) -> tuple[Target, ...]:
    """Return the tables of a topic that no entry of the settings names."""
    return (Target(topic, topic),)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWriter:
    """Writes rows as a table's file, decoded and masked by the settings of this process."""

    staging: Staging
    decoder_of: DecoderOf = no_decoder
    mask_of: MaskOf = no_mask

    async def prepared(
        self,
        name: str,
        target: Target,
        taken: TakenRows,
        encoded: Callable[[], None] = lambda: None,
    ) -> Callable[[], Coroutine[Any, Any, int]]:
        """Return what writes the file, whole and durably, and returns its bytes.

        `encoded` is called when the rows are decoded and encoded.

        Raises:
            ExternalError: They cannot be decoded, or masked, now.
        """
        rows = {p: part.records for p, part in taken.ranges.items()}
        footer = Footer(
            taken.topic_id,
            taken.count,
            {p.partition: (r.range.first, r.range.next) for p, r in taken.ranges.items()},
            topic=taken.topic,
            masked_by=target.masking,
            cut=frozenset(p.partition for p, part in taken.ranges.items() if part.cut),
        )
        mask = await self.mask_of(target)
        decoder = await self.decoder_of(target, rows)
        return partial(
            self.staging.write,
            *(target.name, name, rows, footer, decoder),
            mask=mask,
            by_day=target.by_day,
            encoded=encoded,
        )


class FileWriter:
    """Writes files whole and durably, of several tables at the same time.

    Attributes:
        targets: Returns the tables of a topic.
    """

    def __init__(
        self,
        *,
        origin: Origin,
        staging: Staging,
        backlog: Backlog,
        timings: Timings,
        targets: Callable[[str], Collection[Target]] = one_raw_table,
        decoder_of: DecoderOf = no_decoder,
        mask_of: MaskOf = no_mask,
    ) -> None:
        self.targets = targets
        self._origin, self._staging, self._backlog = origin, staging, backlog
        self._rows = RowWriter(staging=staging, decoder_of=decoder_of, mask_of=mask_of)
        self._timings = timings
        self._slots = asyncio.Semaphore(CONCURRENT_WRITES)
        self._count = 0

    def file_name(self) -> str:
        """Return the name of a new file."""
        self._count += 1
        origin = self._origin
        return f"{origin.slot}-{origin.epoch}-{self._count}-{uuid4().hex[:8]}.parquet"

    async def write(
        self,
        name: str,
        target: Target,
        taken: TakenRows,
        encoded: Callable[[], None] = lambda: None,
    ) -> Staged:
        """Write a table's file; return its announcement, in which the rows have no age yet.

        `encoded` is called when the rows are decoded and encoded.

        Raises:
            ExternalError: It cannot be staged, or decoded, now.
        """
        write = await self._rows.prepared(name, target, taken, encoded)
        async with self._slots:
            began_at = loop_s()
            size = await self._warn_if_slow(write(), taken.topic)
            self._timings.staging.observe(loop_s() - began_at)
        return Staged(
            topic=taken.topic,
            table=target.name,
            topic_id=taken.topic_id,
            file=name,
            rows=taken.count,
            bytes=size,
            ranges={p: part.range for p, part in taken.ranges.items()},
            slot=self._origin.slot,
            epoch=self._origin.epoch,
            cut=tuple(p for p, part in taken.ranges.items() if part.cut),
        )

    async def staged_before(
        self, topic: str, topic_id: str | None, lost: Mapping[TopicPartition, OffsetRange]
    ) -> Sequence[Staged]:
        """Return announcements of files, of whichever consumer, that have some of these offsets.

        They are in the order of their offsets. One that has landed is deleted by the table's
        writer; one that is announced already counts once.

        Raises:
            StagingUnavailable: The storage does not reply, or refuses.
        """
        staged = []
        for target in self.targets(topic):
            sizes = await self._staging.sizes(target.name)
            footers = await self._staging.footers(target.name, sizes.keys())
            for name, footer in footers.items():
                ranges = {
                    TopicPartition(topic, p): OffsetRange(*r) for p, r in footer.ranges.items()
                }
                own = (footer.topic or target.name) == topic and footer.topic_id == topic_id
                if own and any(_meet(each, lost.get(p)) for p, each in ranges.items()):
                    staged.append(_announcement(name, target, topic, footer, sizes[name]))
        return sorted(staged, key=lambda each: (sorted(each.ranges.items()), each.file))

    def keep(self, staged: Staged) -> None:
        """Count an announced file, whoever staged it, until its table's writer deletes it."""
        for target in self.targets(staged.topic):
            if target.name == staged.target:
                self._backlog.add(target, staged.file, staged.bytes)

    @staticmethod
    async def _warn_if_slow(writing: Coroutine[Any, Any, int], topic: str) -> int:
        """Wait for a write; log when it takes long."""
        slow = asyncio.get_running_loop().call_later(
            SLOW_S, lambda: log(STAGING_SLOW, topic=topic, waited_s=SLOW_S)
        )
        try:
            return await writing
        finally:
            slow.cancel()


def _meet(one: OffsetRange, other: OffsetRange | None) -> bool:
    return other is not None and one.first < other.next and other.first < one.next


def _announcement(name: str, target: Target, topic: str, footer: Footer, size: int) -> Staged:
    """Return what the consumer that staged a file would announce."""
    slot, epoch = staged_by(name)
    return Staged(
        topic=topic,
        table=target.name,
        topic_id=footer.topic_id,
        file=name,
        rows=footer.rows + footer.skipped,
        bytes=size,
        ranges={TopicPartition(topic, p): OffsetRange(*r) for p, r in footer.ranges.items()},
        slot=Slot(slot),
        epoch=epoch,
        cut=tuple(TopicPartition(topic, p) for p in sorted(footer.cut or ())),
    )
