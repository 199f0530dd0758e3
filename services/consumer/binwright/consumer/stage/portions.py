"""Records that are decoded again: a file with the rows of those that decode, and other faults.

Imported when it is needed: Arrow takes a while.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decode.portions import DecodingMemory
from binwright.consumer.stage.parquet import decoded, decoded_schema, encode_rows, to_arrow
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Records
from binwright.tables.ports import Footer, Ranges, RecordMask, ValueDecoder

RecordName = tuple[int, int, int]
"""Names a record among those of one topic: partition, offset, and timestamp (ms; -1: none)."""


class Fault(NamedTuple):
    """Why a record is bad, and its value, as both may be kept."""

    value: bytes | None
    kind: str
    reason: str


class Decoded(NamedTuple):
    """What became of records; those that are in neither are in no table, as the settings want."""

    content: bytes  # of the file
    rows: frozenset[RecordName]
    bad: Mapping[RecordName, Fault]


def decode_again(
    records: Mapping[TopicPartition, Sequence[Records]],
    footer: Footer,
    decoder: ValueDecoder,
    memory: DecodingMemory,
    mask: RecordMask | None,
) -> Decoded:
    """Decode records of one topic as they are when they are read; see `stage.parquet.encode`.

    The footer's ranges become those of the rows.
    """
    batches = decoded(to_arrow(records), decoder, memory, mask)
    table = pa.Table.from_batches(batches, decoded_schema(decoder.columns))
    good, bad = table.filter(pc.is_null(table["bad"])), table.filter(pc.is_valid(table["bad"]))
    rows = frozenset(_names(good))
    whole = replace(footer, ranges=ranges_of(rows))
    content = encode_rows(good, whole, decoder).to_pybytes() if rows else b""
    whys: list[Any] = bad["bad"].to_pylist()
    faults = (Fault(*why.values()) for why in whys)
    return Decoded(content, rows, dict(zip(_names(bad), faults, strict=True)))


def ranges_of(names: Collection[RecordName]) -> Ranges:
    """Return the ranges that have these records, and others between them."""
    offsets: dict[int, list[int]] = {}
    for name in names:
        offsets.setdefault(name[0], []).append(name[1])
    return {partition: (min(own), max(own) + 1) for partition, own in sorted(offsets.items())}


def _names(table: pa.Table) -> list[RecordName]:
    partitions: list[Any] = table["partition"].to_pylist()
    offsets: list[Any] = table["offset"].to_pylist()
    micros: list[Any] = table["timestamp"].cast(pa.int64()).to_pylist()
    times = (-1 if at is None else at // 1000 for at in micros)
    return [*zip(partitions, offsets, times, strict=True)]
