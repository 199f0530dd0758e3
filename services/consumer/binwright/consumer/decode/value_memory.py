"""How much memory values take while they are decoded, known before they are.

A megabyte of `{},` is 45 MB of dictionaries, and a byte of Avro may be a record of a thousand
fields. A process that takes more memory than it has is killed, and so is the one that reads on in
its place. So what values take is estimated from what is counted fast, and what takes too much is
not decoded. The weights are measured, and lie above what the worst values of their kind take; tests
compare estimates with what generated values take.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binwright.consumer.decode.one_by_one import Bad
from binwright.tables.columns import Array, Columns, ColumnType, Decimal, Map, Simple

RECORD_BYTES = 700  # of any value besides its content: objects, and what says that it is bad
_COUNTED = 1 << 16  # bytes that are counted at once: they stay in a processor's cache

_GROWTH = 4  # Arrow doubles the room of what it builds, and copies the result
_WIDTHS = {"boolean": 1, "tinyint": 1, "smallint": 2, "int": 4, "float": 8, "date": 8}
_WIDTH, _DECIMAL_WIDTH, _OFFSET = 9, 49, 5  # bytes with the bit of NULL; of text without it

_STRINGS, _QUOTES = r'(?s)"[^"\\]*(?:\\.[^"\\]*)*"', '""'
_FIRST_WIDE = 0xC4  # a byte of UTF-8 from which on a text takes more than a byte per character


def too_large(need: int, most: int) -> Bad:
    """Return a value as bad that takes too much memory."""
    limit = f"the limit of consumer.value_memory_bytes is {most >> 20} MB"
    return Bad("too_large", f"takes about {need >> 20} MB of memory once it is decoded; {limit}")


def width(kind: ColumnType) -> int:
    """Return the bytes of a value of this type in Arrow's columns, without what varies."""
    match kind:
        case Simple(name):
            return _WIDTHS.get(name, _WIDTH)
        case Decimal():
            return _DECIMAL_WIDTH
        case Array() | Map():
            return _OFFSET
        case _:
            return 1 + sum(width(field.type) for field in kind.fields)


def row_bytes(columns: Columns) -> int:
    """Return what a value without content takes with these columns."""
    return RECORD_BYTES + _GROWTH * sum(width(column.type) for column in columns)


def item_bytes(columns: Columns) -> int:
    """Return what an item of any list or map in these columns takes, if it has no content."""
    return _GROWTH * max((_widest_item(column.type) for column in columns), default=0)


def _widest_item(kind: ColumnType) -> int:
    match kind:
        case Array(item) | Map(item):
            return max(width(item), _widest_item(item))
        case Simple() | Decimal():
            return 0
        case _:
            return max((_widest_item(field.type) for field in kind.fields), default=0)


def content(values: "pa.Array[Any]") -> "npt.NDArray[np.uint8]":
    """Return the bytes of these binary values, one after the other."""
    _, offsets, data = values.buffers()
    if offsets is None or data is None:
        return np.zeros(0, np.uint8)
    begin, whole = values.offset, memoryview(data)
    ends = np.frombuffer(memoryview(offsets), np.int32, len(values) + 1, 4 * begin)
    return np.frombuffer(whole, np.uint8, int(ends[-1] - ends[0]), int(ends[0]))


class JsonMemory:
    """Estimates the memory of values that are read as JSON."""

    def __init__(self, columns: Columns, *, exact: bool) -> None:
        """Estimate for these columns.

        Args:
            columns: Into which the values are read.
            exact: Whether they are parsed a second time, with their numbers as they are written.
        """
        self._row = row_bytes(columns)
        self._weights = {
            ord("{"): 190 + item_bytes(columns),
            ord("["): 90,
            ord('"'): 34,
            ord(":"): 90,
            ord(","): 260 if exact else 40,
        }
        self._narrow, self._wide = (10, 20) if exact else (7, 14)
        self._most_per_byte = self._wide + max(self._weights.values())

    def of(self, values: "pa.Array[Any]") -> int:
        """Return what many values take together."""
        data, rows = content(values), self._row * len(values)
        return rows + self._wide * len(data) + self._of_parts(data)

    def fault(self, value: bytes, most: int) -> Bad | None:
        """Return a value as bad if it takes more than `most` bytes."""
        size = len(value)
        if size * self._most_per_byte <= most:
            return None
        if (need := size * self._narrow) > most:
            return too_large(need, most)
        data = np.frombuffer(value, np.uint8)
        if size * self._wide + self._of_parts(data) <= most:
            return None
        is_wide = data.max() >= _FIRST_WIDE or rb"\u" in value
        # Now without what stands in texts: there, commas and brackets are no parts.
        given: Any = pa.array([value], pa.binary())  # its types do not know this call
        bare = pc.replace_substring_regex(given, pattern=_STRINGS, replacement=_QUOTES)
        need = size * (self._wide if is_wide else self._narrow) + self._of_parts(content(bare))
        return too_large(need, most) if need > most else None

    def _of_parts(self, data: "npt.NDArray[np.uint8]") -> int:
        need = 0
        for begin in range(0, len(data), _COUNTED):
            piece = data[begin : begin + _COUNTED]
            for char, weight in self._weights.items():
                need += weight * int(np.count_nonzero(piece == char))
        return need
