"""Decodes values that are text into one column."""

from typing import Any

import pyarrow as pa

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.one_by_one import Bad, Decoded, Fields, decode_each, not_text
from binwright.consumer.decode.value_memory import RECORD_BYTES, content
from binwright.tables.columns import Columns

_BYTE = 8  # of memory, for a byte of a text that is read alone


class TextDecoder:
    """A `ValueDecoder` of text in UTF-8.

    Attributes:
        columns: Of the rows: one, a string.
    """

    proposed: Columns = ()

    def __init__(self, columns: Columns) -> None:
        self.columns, self.settings = columns, ""

    def memory(self, values: "pa.Array[Any]", *_: Any) -> int:
        """Return what these values take; see `ValueDecoder.memory`."""
        return RECORD_BYTES * len(values) + _BYTE * len(content(values))

    def decode(self, values: "pa.Array[Any]", *_: Any) -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        name = self.columns[0].name
        try:
            texts = values.cast(pa.string())
        except pa.ArrowInvalid:
            return decode_each(values, lambda value: _read(name, value), row_type(self.columns))
        rows: pa.Array[Any] = pa.StructArray.from_arrays([texts], names=[name])
        return rows, pa.nulls(len(values), BAD)


def _read(name: str, value: bytes | None) -> Fields | Bad:
    if value is None:
        return {}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError as exc:
        return not_text(exc)
