"""Decodes bad records again, as what is read today is decoded, and stages the rows of a portion."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING
from uuid import uuid4

from binwright.consumer.decide.land.states import Portion
from binwright.consumer.decode.decoders import DecoderOf, MaskOf, no_decoder, no_mask
from binwright.consumer.decode.portions import DecodingMemory
from binwright.protocol.errors import TableRefused
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import portion_name
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.operations import Cursor
from binwright.tables.ports import (
    BadPlace,
    BadPortion,
    BadRow,
    Footer,
    Ranges,
    Staging,
)
from binwright.tables.targets import Target

if TYPE_CHECKING:
    from binwright.consumer.stage.portions import Decoded, Fault, RecordName

MASKED_TWICE = (
    "keys or headers of its bad records are masked by `sha256` or `last` already, and would be "
    "masked again: have the records read from Kafka again instead"
)


@dataclass(frozen=True, slots=True)
class DecodedAgain:
    """What became of bad records."""

    portion: Portion
    removed: Sequence[BadPlace] = ()  # they are rows now, or in no table
    changed: Sequence[BadRow] = ()  # they are bad for another reason than before


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecordDecoder:
    """Decodes the bad records of tables by the settings of this process."""

    staging: Staging
    decoder_of: DecoderOf = no_decoder
    mask_of: MaskOf = no_mask
    memory: DecodingMemory = field(default_factory=DecodingMemory)

    async def decode(self, target: Target, read: BadPortion, *, dry_run: bool) -> DecodedAgain:
        """Decode bad records of a topic, and stage the rows of those that decode.

        Args:
            target: The topic's part of the table.
            read: The records, in order of their places; none: there are no more.
            dry_run: Stage nothing.

        Raises:
            TableRefused: They would be masked twice.
            ExternalError: They cannot be decoded, or staged, now.
        """
        if target.entry is not None and target.entry.mask and target.entry.mask.hides_twice:
            raise TableRefused(f"the table {target.name}: {MASKED_TWICE}")
        if not read.rows:
            return DecodedAgain(Portion(masked=read.masked))
        named: dict[RecordName, list[BadRow]] = {}  # one that is there twice becomes one row
        for row in read.rows:
            at = row.place
            name = at.partition.partition, at.offset, at.timestamp_ms
            named.setdefault(name, []).append(row)
        records: dict[TopicPartition, list[Record]] = {}
        for first, *_ in named.values():
            records.setdefault(first.place.partition, []).append(first.record)
        as_read = {p: [Records.of(own)] for p, own in records.items()}
        decoder = await self.decoder_of(target, as_read)
        if decoder is None:
            raise TableRefused(f"the table {target.name} has raw records, by its settings")
        mask = await self.mask_of(target)
        module = await asyncio.to_thread(import_module, "binwright.consumer.stage.portions")
        footer = Footer(None, 0, {}, topic=target.topic, masked_by=target.masking)
        decoded: Decoded = await asyncio.to_thread(
            module.decode_again, as_read, footer, decoder, self.memory, mask
        )
        file = "" if dry_run or not decoded.rows else portion_name(uuid4().hex)
        if file:
            await self.staging.keep(target.name, file, decoded.content)
        ranges: Ranges = module.ranges_of(decoded.rows)
        last = read.rows[-1].place
        portion = Portion(
            after=Cursor(*last.partition, last.offset),
            file=file,
            bytes=len(decoded.content),
            rows=len(decoded.rows),
            places={TopicPartition(target.topic, p): ends for p, ends in ranges.items()},
            moved=Counter(row.kind for name in decoded.rows for row in named[name]),
            left=Counter(row.kind for name in decoded.bad for row in named[name]),
            skipped=len(named) - len(decoded.rows) - len(decoded.bad),
            masked=read.masked,
        )
        removed = [
            row.place for name, rows in named.items() if name not in decoded.bad for row in rows
        ]
        changed = [
            after
            for name, why in decoded.bad.items()
            for row in named[name]
            if (after := _changed(row, why)) != row
        ]
        return DecodedAgain(portion, removed, changed)


def _changed(row: BadRow, why: "Fault") -> BadRow:
    record = replace(row.record, value=why.value)
    return replace(row, record=record, kind=why.kind, reason=why.reason)
