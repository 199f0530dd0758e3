"""Segments of batches of format 2: records that are found by their lengths, and not decoded yet.

To find a record takes a tenth of a microsecond. Segments of several batches are decoded together
into columns (`columns`), which pays where a batch has few records too.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from aiokafka.record.util import decode_varint_py as decode_varint  # the other reads beyond the end

from binwright.protocol.ports.kafka import RECORD_BYTES

_MORE, _LAST_SHIFT = 0x80, 28  # of a varint: another byte follows; of a length, which has 32 bits


class OneByOne:
    """The records of a batch, each decoded by itself when that is wanted."""

    def __init__(self, records: Iterator[Any]) -> None:
        self._records, self._next = records, 0

    def between(self, first: int, end: int | None) -> Iterator[Any]:
        """Return the records of these numbers in the batch, all behind those of the last call."""
        at, self._next = self._next, first if end is None else end
        return islice(self._records, first - at, None if end is None else end - at)


class Segment(NamedTuple):
    """Consecutive records of one batch."""

    batch: Any
    stored: memoryview  # the batch as if it had been stored without compression
    positions: list[int]  # of the records in it; empty: of unknown ones, to the batch's end
    end: int  # the position behind them
    offset: int  # of the last one
    after: int  # the offset of the record before the first one, or the one before the batch's first
    first: int  # the number of the first one in the batch
    records: OneByOne  # of the batch

    def one_by_one(self) -> Iterator[Any]:
        """Decode the records one by one; what is wrong with one is raised."""
        end = self.first + len(self.positions) if self.positions else None
        return self.records.between(self.first, end)

    @property
    def bytes(self) -> int:
        """Return an estimate of the records' memory; many headers may take more."""
        return self.end - self.positions[0] + RECORD_BYTES * len(self.positions)


def find_records(stored: memoryview, at: int, most: int, room: int) -> tuple[list[int], int]:
    """Return the positions of records, and the position behind them.

    Args:
        stored: The batch, not compressed.
        at: The position of the first.
        most: How many.
        room: About how many bytes of memory they may take; the last one may exceed that.

    Raises:
        IndexError: A record does not end in the batch.
        ValueError: A record has no length.
    """
    positions: list[int] = []
    for _ in range(most):
        positions.append(at)
        size = stored[at]
        at += 1
        if size >= _MORE:
            shift, more = 0, size
            while more >= _MORE:
                more = stored[at]
                at += 1
                shift += 7
                size += (more - 1) << shift  # less the bit of the byte before, that more follows
                if shift > _LAST_SHIFT:
                    raise ValueError("the length of a record is no number of 32 bits")
        size >>= 1  # a negative length is noticed when the record is decoded
        at += size
        room -= size + RECORD_BYTES
        if room <= 0:
            break
    if at > len(stored):
        raise IndexError(f"a record ends at {at}, in a batch of {len(stored)} bytes")
    return positions, at


def offset_in_batch(stored: memoryview, at: int) -> int:
    """Return the offset of the record at this position, from the batch's first; raise the same."""
    for _ in range(3):  # length, attributes, timestamp
        _, at = decode_varint(stored, at)
    delta: int = decode_varint(stored, at)[0]
    return delta
