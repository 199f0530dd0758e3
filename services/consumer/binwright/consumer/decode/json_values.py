"""Decodes JSON values into columns: in blocks as far as possible, else one by one."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decide.new_columns import EXACT_IN_DOUBLE
from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.json_blocks import (
    BlockReader,
    BlockRefused,
    in_blocks,
    suspects,
)
from binwright.consumer.decode.json_records import Beyond, RecordReader
from binwright.consumer.decode.one_by_one import Decoded, Fields, Misfit, decode_each
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.tables.columns import Columns, Simple, stored

BLOCK_ROWS, BLOCK_BYTES = 16384, 16 << 20  # at most, unless a block has few rows
FEW = 256  # rows of a refused block that are read one by one: as dear as to try again
ALONE = 32  # rows that are read one by one at once: as dear as a block
PARTS = 8  # by which blocks become smaller


class JsonDecoder:
    """A `ValueDecoder` of JSON objects.

    Attributes:
        columns: Of the rows: text where those that it reads are of type `JSON`.
    """

    def __init__(
        self,
        columns: Columns,
        beyond: Beyond | None = None,
        *,
        added: Columns = (),
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Decode into these columns.

        Args:
            columns: Of the rows.
            beyond: What is done with fields that none of them has.
            added: The first columns of `beyond`, which are read in blocks, too.
            most_bytes: Of memory that a value may take.
        """
        more = () if beyond is None else beyond.columns
        self.columns, self.settings = (*stored(columns), *more), ""
        self._records = RecordReader(columns, beyond, most_bytes=most_bytes)
        in_block = (*columns, *added)
        self._blocks = BlockReader(in_block) if columns and in_blocks(in_block) else None
        self._beyond, self._rest = beyond, more[len(added) :]
        self._doubles = [c.name for c in added if c.type == Simple("double")]

    @property
    def proposed(self) -> Columns:
        """Return columns for new fields of what was decoded."""
        return () if self._beyond is None else self._beyond.proposed

    def memory(self, values: "pa.Array[Any]", *_: Any) -> int:
        """Return what these values take; see `ValueDecoder.memory`."""
        return self._records.memory.of(values)

    def decode(self, values: "pa.Array[Any]", *_: Any) -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        records, blocks = self._records, self._blocks
        if blocks is None:
            return decode_each(values, records.read, records.type)
        anything: Any = values  # its types do not know this call
        texts: pa.BinaryArray = pc.fill_null(anything, b"{}") if values.null_count else anything
        is_suspect = suspects(texts, records.too_large)
        plain, rest = np.flatnonzero(~is_suspect), np.flatnonzero(is_suspect)
        if not len(rest):
            return _joined([*self._pieces(texts, blocks)], self.columns)
        pieces = [
            *self._pieces(texts.take(plain), blocks),
            decode_each(texts.take(rest), records.read, records.type),
        ]
        order = np.argsort(np.concatenate([plain, rest]))
        rows, bad = _joined(pieces, self.columns)
        return rows.take(order), bad.take(order)

    def _pieces(self, values: "pa.BinaryArray", blocks: BlockReader) -> Iterator[Decoded]:
        """Read values in blocks, in smaller ones for a while behind a value that was refused."""
        records = self._records
        begin, size, suspect = 0, BLOCK_ROWS, len(values)
        while begin < len(values):
            if begin == suspect:
                part, suspect = values.slice(begin, 1), len(values)
            else:
                part = values.slice(begin, min(size, suspect - begin))
            if len(part) > FEW and part.nbytes > BLOCK_BYTES:
                size = max(FEW, len(part) // PARTS)
                continue
            if len(part) <= ALONE:
                yield decode_each(part, records.read, records.type)
                begin += len(part)
                continue
            try:
                rows = self._block(part, blocks)
            except BlockRefused as exc:
                size = max(FEW, len(part) // PARTS)
                if len(part) <= FEW:
                    yield decode_each(part, records.read, records.type)
                    begin += len(part)
                elif exc.row is not None and exc.row < len(part):
                    suspect = begin + exc.row
            else:
                yield rows, pa.nulls(len(rows), BAD)
                begin += len(part)
                size = min(2 * size, BLOCK_ROWS)

    def _block(self, part: "pa.BinaryArray", blocks: BlockReader) -> "pa.Array[Any]":
        """Read one block; raise `BlockRefused`."""
        rows, has_more = blocks.read(part)
        for name in self._doubles:
            if (pc.max(pc.abs(pc.struct_field(rows, name))).as_py() or 0) >= EXACT_IN_DOUBLE:
                raise BlockRefused  # it may be an integer that is rounded
        if (beyond := self._beyond) is None:
            return rows
        more: list[Fields] = [{}] * len(part)
        if has_more:
            texts: list[Any] = part.to_pylist()
            try:  # one at a time: what all of them parse to may take much memory
                more = [beyond.fields(text, orjson.loads(text)) for text in texts]
            except (Misfit, orjson.JSONDecodeError) as exc:  # reading one by one says which
                raise BlockRefused(str(exc)) from exc
        if not self._rest:
            return rows
        structs: list[Any] = [rows, pa.array(more, row_type(self._rest))]
        arrays = [array for struct in structs for array in struct.flatten()]
        return pa.StructArray.from_arrays(arrays, fields=[*self._records.type])


def _joined(pieces: list[Decoded], columns: Columns) -> Decoded:
    rows = [pa.array([], row_type(columns)), *(rows for rows, _ in pieces)]
    bad = [pa.array([], BAD), *(bad for _, bad in pieces)]
    return pa.concat_arrays(rows), pa.concat_arrays(bad)
