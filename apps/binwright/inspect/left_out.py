"""Which records a table's filters leave out: they are decoded as consumers decode them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from binwright.consumer.decide.memory import MOST_VALUE_BYTES
from binwright.consumer.decode.decoders import Decoders
from binwright.consumer.decode.portions import DecodingMemory
from binwright.consumer.stage.parquet import decoded, to_arrow
from binwright.protocol.errors import MaskUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record, Records
from binwright.runtime.settings.group import Settings


@dataclass(frozen=True, slots=True)
class LeftOutRecords:
    """A `LeftOut` of one table.

    A filter that the table has no longer is applied as well, as far as its columns are there.
    """

    settings: Settings
    topic: str
    table: str
    filters: tuple[tuple[str, ...], ...]

    async def __call__(
        self, partition: TopicPartition, records: Sequence[Record]
    ) -> Collection[int]:
        """Return the offsets of these records that one of the filters leaves out.

        Raises:
            ExternalError: Their schemas cannot be had.
        """
        target = next(t for t in self.settings.targets(self.topic) if t.name == self.table)
        left = set[int]()
        if not self.filters or not records or target.decoded is None:
            return left
        rows = {partition: [Records.of(records)]}
        memory = DecodingMemory(self.settings.consumer.value_memory_bytes or MOST_VALUE_BYTES)
        async with Decoders(self.settings, memory.most_bytes, waits=False) as decoders:
            for where in self.filters:
                entry = target.decoded.model_copy(update={"where": where, "mask": None})
                try:
                    decoder = await decoders.of(replace(target, entry=entry), rows)
                except MaskUnavailable:
                    continue  # of columns that are no longer there
                assert decoder is not None, target
                there = {record.offset for record in records}
                for batch in decoded(to_arrow(rows), decoder, memory):
                    there.difference_update(batch["offset"].to_pylist())
                left |= there
        return left
