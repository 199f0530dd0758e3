"""Reads records from before a table's beginning, and stages their rows as consumers do."""

from collections.abc import Collection
from contextlib import aclosing, suppress
from dataclasses import dataclass
from uuid import uuid4

from binwright.consumer.decide.buffer import TakenRows
from binwright.consumer.decide.land.states import EarlierPortion, TooLarge
from binwright.consumer.read.ranges import RangeReader
from binwright.consumer.stage.file_writer import RowWriter
from binwright.protocol.errors import ExternalError, StagingUnavailable
from binwright.protocol.landing import OffsetRange
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import portion_name
from binwright.runtime.clock import loop_s
from binwright.tables.ports import FileSlice
from binwright.tables.targets import Target

PIECE_BYTES = 8 << 20  # of memory, in a file: what lands live waits while one is encoded


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierStager:
    """Stages ranges of offsets, as files whose names no reader takes for its own (†)."""

    reader: RangeReader  # beside that of live records
    writer: RowWriter
    piece_bytes: int = PIECE_BYTES

    async def stage(
        self,
        target: Target,
        topic_id: str | None,
        partition: TopicPartition,
        wanted: OffsetRange,
        most_bytes: int | None = None,
    ) -> EarlierPortion | TooLarge:
        """Stage all that a reader sees in a range, in a file for each piece of it that has rows.

        Args:
            target: The partition's part of the table.
            topic_id: Of the topic, as Kafka has it now.
            partition: What is read.
            wanted: The offsets.
            most_bytes: Of records in memory; None: however many there are.

        Raises:
            ExternalError: Not all of it can be read, decoded or staged now; nothing is left.
        """
        slices, names, size = list[FileSlice](), list[str](), 0
        try:
            async with aclosing(self.reader.read(partition, wanted, self.piece_bytes)) as pieces:
                async for piece in pieces:
                    size += piece.bytes
                    if most_bytes is not None and size > most_bytes:
                        await self.delete(target.name, names)
                        return TooLarge()
                    if not piece.count:
                        continue
                    names.append(portion_name(uuid4().hex))
                    ranges = {partition: piece}
                    taken = TakenRows(partition.topic, topic_id, ranges, loop_s(), piece.bytes)
                    write = await self.writer.prepared(names[-1], target, taken)
                    offsets = {partition.partition: (piece.range.first, piece.range.next)}
                    slices.append(
                        FileSlice(
                            names[-1],
                            offsets,
                            whole=True,
                            bytes=await write(),
                            topic=partition.topic,
                        )
                    )
            footers = await self.writer.staging.footers(target.name, names)
            if lost := [name for name in names if name not in footers]:
                raise StagingUnavailable(f"what was staged of {partition} is gone: {lost[0]}")
        except ExternalError:
            await self.delete(target.name, names)
            raise
        empty = [name for name in names if not footers[name].rows]  # all is left out
        await self.delete(target.name, empty)
        bad = sum(footer.bad for footer in footers.values())
        return EarlierPortion(
            partition=partition,
            first=wanted.first,
            slices=tuple(part for part in slices if part.file not in empty),
            rows=sum(footer.rows for footer in footers.values()) - bad,
            bad=bad,
            skipped=sum(footer.skipped for footer in footers.values()),
            bytes=size,
        )

    async def delete(self, table: str, files: Collection[str]) -> None:
        """Delete files that do not land; what cannot be deleted is collected by age."""
        if files:
            with suppress(StagingUnavailable):
                await self.writer.staging.delete(table, files)
