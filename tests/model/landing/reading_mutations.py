"""What replaces functions of a consumer that reads and decodes: see `mutations`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from binwright.consumer.decide import buffer as buffers
from binwright.consumer.decide.buffer import Buffer, BufferedRange
from binwright.consumer.decode import one_by_one
from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.protocol.landing import OffsetRange
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Records
from binwright.tables.ports import ValueDecoder

_take = Buffer.take_ranges


def begins_at_first_record(self: Buffer, topic: str) -> Mapping[TopicPartition, BufferedRange]:
    return {
        p: replace(s, range=OffsetRange(s.records[0].offsets[0], s.range.next)) if s.records else s
        for p, s in _take(self, topic).items()
    }


def begins_too_early(self: Buffer, topic: str) -> Mapping[TopicPartition, BufferedRange]:
    return {
        p: replace(s, range=OffsetRange(max(0, s.range.first - 1), s.range.next))
        for p, s in _take(self, topic).items()
    }


def drops_nothing(_self: Buffer, _partition: TopicPartition) -> None:
    pass


def keeps_rows(self: Buffer, partition: TopicPartition, offset: int, *, cut: bool = False) -> None:
    rows = self._rows.setdefault(partition, buffers._Rows(offset, offset, []))
    rows.begin, rows.cut = min(rows.begin, offset), cut


def ignores_cuts(
    self: Buffer, partition: TopicPartition, offset: int, *, cut: bool = False
) -> None:
    del cut
    _buffer_begin(self, partition, offset)


_buffer_begin = Buffer.begin


def ends_too_late(self: Buffer, topic: str) -> Mapping[TopicPartition, BufferedRange]:
    return {
        p: replace(s, range=OffsetRange(s.range.first, s.range.next + 1))
        for p, s in _take(self, topic).items()
    }


def loses_record(self: Buffer, partition: TopicPartition, records: Records, now: float) -> None:
    _add(self, partition, records.since(records.offsets[min(1, len(records) - 1)]), now)


_add = Buffer.add


def raises_for_a_file(decoder: ValueDecoder, values: Any, headers: Any, keys: Any) -> Any:
    return decoder.decode(values, headers, keys)


def all_are_bad(decoder: ValueDecoder, values: Any, headers: Any, keys: Any) -> Any:
    try:
        return decoder.decode(values, headers, keys)
    except OverflowError as exc:
        fault = one_by_one.undecodable(exc)
        bad = [one_by_one._bad_record(value, fault) for value in values.to_pylist()]
        return pa.nulls(len(bad), row_type(decoder.columns)), pa.array(bad, BAD)
