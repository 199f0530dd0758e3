r"""Reads many JSON values at once, where Arrow's result is that of `json_records`.

The values are joined by line breaks and parsed as one text. Each begins with `{` and ends with `}`,
but for white space. Between a `}` and a `{` there is no comma, and strings have no line breaks, so
wherever one value meets the next, no object is open: each value is one object or more, or Arrow
refuses the text. As many rows as values are therefore one row each.

Arrow refuses most of what the strict reader refuses: wrong types, numbers out of range, lone
surrogates, control characters; also some that it accepts, like a key that is there twice. Where
Arrow accepts more, the value is not given to it: see `_SUSPECTS`.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from binwright.consumer.decode.arrow_types import arrow_type
from binwright.consumer.decode.json_records import MOST_NESTED, brackets
from binwright.tables.columns import (
    JSON,
    VARIANT,
    Array,
    Columns,
    ColumnType,
    Decimal,
    Map,
    Simple,
    Struct,
)

_SPACE = r"[ \t\r\n]*"
_BEFORE, _AFTER = r"[:,\[ \t\r\n]", rf"{_SPACE}[,\]}}]"
_SUSPECTS = (
    # Each alone, these stop early or skip to a letter: together they would look at each byte.
    rf"^{_SPACE}([^{{ \t\r\n]|$)",  # begins with something else than {
    rf"[^}} \t\r\n]{_SPACE}$",  # ends with something else than }
    r"\x00",  # ends the text for Arrow
    rf"\}}{_SPACE}n",  # null is a row for Arrow, or crashes it
    "|".join(
        [
            rf"{_BEFORE}-?(NaN|Inf|Infinity){_AFTER}",  # numbers for Arrow
            rf"{_BEFORE}-0{_AFTER}",  # the integer 0, and -0.0 for Arrow
            rf"{_BEFORE}-?[0-9.]+[eE]\+?[0-9]{{3}}",  # infinite? Arrow looks only if it is needed
            r"[0-9]{200}",  # likewise
        ]
    ),
)
LONGEST = 1 << 20  # bytes of a value that is read in a block

_DAY = r"[12][0-9]{3}-[0-9]{2}-[0-9]{2}"
_DATE = rf"^{_DAY}$"
_NAIVE = rf"{_DAY}[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,6}})?)?"
_ZONE = r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_TIMESTAMPS: list[tuple[str, pa.DataType]] = [
    (rf"^{_NAIVE}{_ZONE}$", pa.timestamp("us", "UTC")),
    (rf"^{_NAIVE}$", pa.timestamp("us")),
]
_QUOTE, _BACKSLASH, _COLON, _NULL = b'"\\:n'
_SPACES, _MOST_SPACES = 0x20, 32  # the highest of them; those between two tokens
_ROW = re.compile(r" in row ([0-9]+)$")
_NANOSECONDS, _MICROSECONDS = r"(\.[0-9]{6})[0-9]+", r"\1"


class BlockRefused(Exception):
    """Arrow refuses a block, or its result may differ from the strict reader's.

    Attributes:
        row: Which value Arrow names, mostly the right one; None: it names none.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        named = _ROW.search(reason)
        self.row = int(named[1]) if named else None


def in_blocks(columns: Columns) -> bool:
    """Return whether `BlockReader` reads all of these types."""
    return all(_is_read(column.type) for column in columns)


def _is_read(kind: ColumnType) -> bool:
    match kind:
        case Simple(name):
            # Arrow knows no base64, and one type a column.
            return name not in {"binary", VARIANT, JSON.name}
        case Decimal():
            return True
        case Array(item):
            return _is_read(item)
        case Struct(fields):
            return in_blocks(fields)
        case Map():
            return False  # Arrow wants a list of keys and values


def suspects(
    values: "pa.BinaryArray", too_large: Callable[[bytes], object] = lambda _: None
) -> npt.NDArray[np.bool_]:
    """Return which of these values, none of them NULL, `BlockReader` must not be given.

    Args:
        values: Many.
        too_large: Returns what is wrong with a value that takes too much memory.
    """
    are_suspect = np.zeros(len(values), np.bool_)
    for pattern in _SUSPECTS:
        matches = pc.match_substring_regex(values, pattern=pattern)
        are_suspect |= matches.to_numpy(zero_copy_only=False)
    lengths = pc.binary_length(values).to_numpy()
    # Each level of nesting is closed: it takes two bytes at least.
    for place in np.flatnonzero(~are_suspect & (lengths > 2 * MOST_NESTED)).tolist():
        value: bytes = values[place].as_py()
        are_suspect[place] = (
            len(value) > LONGEST or brackets(value) > MOST_NESTED or too_large(value) is not None
        )
    return are_suspect


class BlockReader:
    """Reads values into these columns, whose types are all `in_blocks`."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._schema = pa.schema([pa.field(c.named, _text_type(c.type)) for c in columns])

    def read(self, values: "pa.BinaryArray") -> tuple["pa.Array[Any]", bool]:
        """Return a row for each value, of `row_type`; and whether they may have more fields.

        Fields are more than null, and have no column. If there are none, that is certain.

        Args:
            values: One at least, none of them NULL or among the `suspects`.

        Raises:
            BlockRefused: Not all of them can be read in one block.
        """
        try:
            values.cast(pa.string())  # also refuses what is not UTF-8 where Arrow does not look
            text = _joined(values)
            source: Any = pa.BufferReader(text)
            table = pj.read_json(
                source,
                pj.ReadOptions(use_threads=False, block_size=text.size),
                pj.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore"),
            )
            if table.num_rows != len(values):
                raise BlockRefused
            parts = [column.combine_chunks() for column in table.columns]
            has_more = _has_more(text, _fields_read(parts, self._columns))
            arrays = [_typed(a, c.type) for a, c in zip(parts, self._columns, strict=True)]
        except pa.ArrowInvalid as exc:
            raise BlockRefused(str(exc)) from exc
        rows = pa.StructArray.from_arrays(arrays, names=[c.name for c in self._columns])
        return rows, has_more


def _has_more(text: Any, fields: int) -> bool:
    """Return whether a valid text may have more fields that are not null than these."""
    content = np.frombuffer(text, np.uint8)
    colons = np.flatnonzero(content == _COLON)
    before = content[colons - 1]
    if not (before <= _SPACES).any():
        # Texts may have a colon behind a quote, too, but no field is missed.
        values = colons[before == _QUOTE] + 1
        first = content[values]
        spaces = np.flatnonzero(first == _SPACES)
        first[spaces] = content[values[spaces] + 1]
        if np.count_nonzero(first != _NULL) == fields:
            return False
    return _fields_there(content) != fields


def _fields_there(content: npt.NDArray[np.uint8]) -> int | None:
    """Return how many fields that are not null the objects of a valid text have.

    None: that takes too many looks, as behind many backslashes or spaces.
    """
    quotes = np.flatnonzero(content == _QUOTE)
    before = quotes[content[quotes - 1] == _BACKSLASH]  # there is a { before the first one
    if len(before):
        if (content[before - 2] == _BACKSLASH).any():
            return None
        quotes = quotes[content[quotes - 1] != _BACKSLASH]
    behind = _behind_space(content, quotes[1::2] + 1)  # of two quotes, one ends a string
    if behind is None:
        return None
    names = behind[content[behind] == _COLON]
    values = _behind_space(content, names + 1)
    return None if values is None else int(np.count_nonzero(content[values] != _NULL))


def _behind_space(
    content: npt.NDArray[np.uint8], places: npt.NDArray[np.intp]
) -> npt.NDArray[np.intp] | None:
    """Return the places of the next characters that are no space; the last one is a line break."""
    is_space = content[places] <= _SPACES
    for _ in range(_MOST_SPACES):
        if not is_space.any():
            return places
        places = np.minimum(places + is_space, len(content) - 1)
        is_space &= (content[places] <= _SPACES) & (places < len(content) - 1)
    return None


def _fields_read(arrays: list[Any], columns: Columns) -> int:
    """Return how many fields that are not null were read into arrays, and within them."""
    number = 0
    for array, column in zip(arrays, columns, strict=True):
        number += len(array) - array.null_count + _fields_within(array, column.type)
    return number


def _fields_within(array: Any, kind: ColumnType) -> int:
    match kind:
        case Array(item):
            return _fields_within(array.flatten(), item)
        case Struct(fields):
            return _fields_read(array.flatten(), fields)
        case _:
            return 0


def _joined(values: "pa.BinaryArray") -> Any:
    """Return a buffer of the values, each with a line break behind it."""
    lines = pa.concat_arrays([values, pa.array([b""], pa.binary())])
    ends = pa.array([0, len(lines)], pa.int32())
    joined: Any = pc.binary_join(pa.ListArray.from_arrays(ends, lines), b"\n")
    return joined[0].as_buffer()


def _text_type(kind: ColumnType) -> pa.DataType:
    """Return the type as which Arrow reads a type from JSON, before `_typed`."""
    match kind:
        case Simple("date" | "timestamp"):
            return pa.string()
        case Simple("float"):
            return pa.float64()
        case Decimal(precision, scale):
            # Its digits, at most `precision`, are multiplied by up to 10**scale before they are
            # checked: that overflows 128 bits in silence, but never 256.
            return pa.decimal256(precision, scale)
        case Array(item):
            return pa.list_(_text_type(item))
        case Struct(fields):
            return pa.struct([pa.field(f.named, _text_type(f.type)) for f in fields])
        case _:
            return arrow_type(kind)


def _typed(array: Any, kind: ColumnType) -> Any:
    """Return an array as read, of `kind`'s Arrow type; raise `BlockRefused`, `ArrowInvalid`."""
    match kind:
        case Simple("date"):
            if not _all_match(array, _DATE):
                raise BlockRefused
            return array.cast(pa.date32())
        case Simple("timestamp"):
            return _timestamps(array)
        case Simple("float"):
            floats = array.cast(pa.float32())
            if pc.any(pc.is_inf(floats)).as_py():
                raise BlockRefused
            return floats
        case Decimal():
            array.validate(full=True)  # Arrow's reader lets some pass that have too many digits
            return array.cast(arrow_type(kind))
        case Array(item):
            items = _typed(array.values, item)
            return pa.ListArray.from_arrays(array.offsets, items, mask=array.is_null())
        case Struct(fields):
            parts = [_typed(array.field(i), f.type) for i, f in enumerate(fields)]
            names = [f.name for f in fields]
            return pa.StructArray.from_arrays(parts, names=names, mask=array.is_null())
        case _:
            return array


def _timestamps(texts: Any) -> Any:
    cut = pc.replace_substring_regex(texts, pattern=_NANOSECONDS, replacement=_MICROSECONDS)
    for pattern, kind in _TIMESTAMPS:
        if _all_match(cut, pattern):
            return cut.cast(kind).cast(pa.timestamp("us", "UTC"))
    raise BlockRefused


def _all_match(texts: Any, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern=pattern)).as_py() is not False
