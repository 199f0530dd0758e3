"""Decodes JSON values into columns: in blocks as far as possible, else one by one."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decoding.arrow_types import BAD, row_type
from binwright.consumer.decoding.json_blocks import BlockReader, in_blocks, suspects
from binwright.consumer.decoding.json_records import RecordReader
from binwright.consumer.decoding.one_by_one import Decoded, decode_each
from binwright.protocol.columns import Columns

BLOCK_ROWS, BLOCK_BYTES = 16384, 16 << 20  # at most, unless a block has few rows
FEW = 256  # rows of a refused block that are read one by one: as dear as a block of no rows
PARTS = 8  # into which a larger one is split


class JsonDecoder:
    """A `ValueDecoder` of JSON objects.

    Attributes:
        columns: Of the rows; one at least.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def decode(self, values: "pa.Array[Any]") -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        return decode(values, self.columns)


def decode(values: "pa.Array[Any]", columns: Columns) -> Decoded:
    """Return the values' rows, and the bad ones; a tombstone has NULL in each column.

    Args:
        values: Binary: JSON, or NULL.
        columns: One at least.
    """
    records = RecordReader(columns)
    if not in_blocks(columns):
        return decode_each(values, records.read, records.type)
    anything: Any = values  # its types do not know this call
    texts: pa.BinaryArray = pc.fill_null(anything, b"{}") if values.null_count else anything
    is_suspect = suspects(texts)
    plain, rest = np.flatnonzero(~is_suspect), np.flatnonzero(is_suspect)
    if not len(rest):
        return _joined([*_blocks(texts, BlockReader(columns), records)], columns)
    pieces = [
        *_blocks(texts.take(plain), BlockReader(columns), records),
        decode_each(texts.take(rest), records.read, records.type),
    ]
    order = np.argsort(np.concatenate([plain, rest]))
    rows, bad = _joined(pieces, columns)
    return rows.take(order), bad.take(order)


def _joined(pieces: list[Decoded], columns: Columns) -> Decoded:
    rows = [pa.array([], row_type(columns)), *(rows for rows, _ in pieces)]
    bad = [pa.array([], BAD), *(bad for _, bad in pieces)]
    return pa.concat_arrays(rows), pa.concat_arrays(bad)


def _blocks(
    values: "pa.BinaryArray", blocks: BlockReader, records: RecordReader
) -> Iterator[Decoded]:
    for begin in range(0, len(values), BLOCK_ROWS):
        yield from _block(values.slice(begin, BLOCK_ROWS), blocks, records)


def _block(
    values: "pa.BinaryArray", blocks: BlockReader, records: RecordReader
) -> Iterator[Decoded]:
    """Read a block as a whole, or its parts."""
    is_small = len(values) <= FEW
    if is_small or values.nbytes <= BLOCK_BYTES:
        if (rows := blocks.read(values)) is not None:
            yield rows, pa.nulls(len(rows), BAD)
            return
        if is_small:
            yield decode_each(values, records.read, records.type)
            return
    size = -(-len(values) // PARTS)
    for begin in range(0, len(values), size):
        yield from _block(values.slice(begin, size), blocks, records)
