"""Decodes lines of CSV into columns, by position."""

import csv
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.json_records import READERS, decimal_reader, number_text
from binwright.consumer.decode.one_by_one import (
    INTEGER_BITS,
    REASON_LENGTH,
    Bad,
    Decoded,
    Fields,
    Misfit,
    decode_each,
    not_text,
)
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.consumer.decode.value_memory import content, row_bytes, too_large
from binwright.tables.columns import Columns, ColumnType, Decimal, Simple

csv.field_size_limit(1 << 30)  # of the process; a value is bounded by what Kafka takes

_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_BOOLEANS = {"true": True, "false": False}
_FLOATS = {"float", "double"}
_BYTE, _FIELD = 18, 45  # of memory, for a byte of a value and for each of its fields

Read = Callable[[str], Any]


class CsvDecoder:
    """A `ValueDecoder` of values that are one line of CSV each, as RFC 4180 has it.

    An empty field is NULL, quoted or not.

    Attributes:
        columns: Of the rows.
    """

    proposed: Columns = ()

    def __init__(self, columns: Columns, delimiter: str, most_bytes: int = MOST_BYTES) -> None:
        self.columns, self.settings = columns, ""
        self._row, self._most_bytes = row_bytes(columns), most_bytes
        self._delimiter = delimiter
        self._readers = [(column.name, _reader(column.type)) for column in columns]

    def memory(self, values: "pa.Array[Any]", *_: Any) -> int:
        """Return what these values take; see `ValueDecoder.memory`."""
        data = content(values)
        fields = int(np.count_nonzero(data == ord(self._delimiter)))
        return self._row * len(values) + _BYTE * len(data) + _FIELD * fields

    def decode(self, values: "pa.Array[Any]", *_: Any) -> Decoded:
        """Return the rows of these values, and the bad ones; see `ValueDecoder.decode`."""
        return decode_each(values, self.read, row_type(self.columns))

    def read(self, value: bytes | None) -> Fields | Bad:
        """Return the fields that are not empty; a tombstone (None) has none."""
        if value is None:
            return {}
        need = _BYTE * len(value)
        if need > self._most_bytes // 4:  # delimiters are counted only where they matter
            need += _FIELD * value.count(self._delimiter.encode())
        if need > self._most_bytes:
            return too_large(need, self._most_bytes)
        try:
            lines = [
                *csv.reader([value.decode("utf-8-sig")], delimiter=self._delimiter, strict=True)
            ]
        except UnicodeDecodeError as exc:
            return not_text(exc)
        except csv.Error as exc:
            return Bad("malformed", f"is no line of CSV: {exc}"[:REASON_LENGTH])
        texts = lines[0] if lines else []
        if len(texts) != len(self._readers):
            return Bad("malformed", f"needs {len(self._readers)} fields, has {len(texts)}")
        return self._fields(texts)

    def _fields(self, texts: list[str]) -> Fields | Bad:
        row: Fields = {}
        for (name, read), text in zip(self._readers, texts, strict=True):
            if text:
                try:
                    row[name] = read(text)
                except Misfit as exc:
                    exc.path = name
                    return exc.bad()
        return row


def _reader(kind: ColumnType) -> Read:
    """Return what reads a text that is not empty into a type; it raises `Misfit`."""
    match kind:
        case Simple(name) if name in INTEGER_BITS:
            return _integer_reader(name)
        case Simple("boolean"):
            return _boolean
        case Simple(name) if name in _FLOATS:
            return lambda text: READERS[name](_finite(text, name))
        case Decimal():
            return decimal_reader(kind)
        case Simple(name):
            return READERS[name]
        case _:
            raise TypeError(f"no field of CSV is {kind}")


def _integer_reader(name: str) -> Read:
    end = 1 << (INTEGER_BITS[name] - 1)

    def read(text: str) -> int:
        if not _INTEGER.fullmatch(text) or not -end <= int(text) < end:
            raise Misfit(name, text)
        return int(text)

    return read


def _boolean(text: str) -> bool:
    if (value := _BOOLEANS.get(text.lower())) is None:
        raise Misfit("true or false", text)
    return value


def _finite(text: str, wanted: str) -> float:
    if math.isinf(number := float(number_text(text, wanted))):
        raise Misfit(wanted, text)
    return number
