"""Reads one JSON value into the fields of columns, or says what is wrong with it.

This reader is the authority: `json_blocks` may only return what it would return.
"""

import json
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal as Number
from decimal import InvalidOperation
from typing import Any, Protocol

import orjson

from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.one_by_one import (
    INTEGER_BITS,
    REASON_LENGTH,
    Bad,
    Fields,
    Misfit,
    described,
    exact_decimal,
    read_items,
    read_pairs,
)
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.consumer.decode.value_memory import JsonMemory
from binwright.consumer.decode.variant_limits import unfit_for_variant, with_signs
from binwright.tables.columns import (
    JSON,
    VARIANT,
    Array,
    Columns,
    ColumnType,
    Decimal,
    Map,
    Simple,
)

MOST_NESTED = 500  # arrays and objects in each other; deeper values are malformed
BOM = b"\xef\xbb\xbf"
"""What some producers write in front of UTF-8; it is no part of a value."""

LONGEST_NUMBER, LONGEST_TIME = 1_000, 200  # characters of a text that is read as one
# No repetition here gives back what it took: a pattern looks at each character once.
_NUMBER = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_OFFSET = r"[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9](?::?[0-5][0-9])?)?"
_TIMESTAMP = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[Tt ]((?:[01][0-9]|2[0-3]):[0-5][0-9])"
    r"(?::([0-5][0-9]|60)(?:[.,]([0-9]++))?)?"
    rf"(?: ?(?:[Zz]|UTC|GMT|({_OFFSET}))(?:\[[A-Za-z0-9_+/-]++\]| [A-Z]{{1,5}})?)?)?"
)
_FLOAT_END = (2 - 2**-24) * 2**127  # a 32-bit float rounds it, and all above, to infinity
_END_OF_INTEGERS = 1 << 64  # those that orjson writes, from half of it below zero on
_LONGEST_INTEGER = 20  # characters; one that is longer does not fit 64 bits

Read = Callable[[Any], Any]
ReadFields = Callable[[Any], Fields]


class Beyond(Protocol):
    """What is done with fields that no column has."""

    columns: Columns
    """Those that it fills."""

    @property
    def proposed(self) -> Columns:
        """Return columns for fields that it was given."""

    def fields(self, value: bytes, document: Any) -> Fields:
        """Return these columns' fields that are not NULL, by a value and what it parses to.

        Raises:
            Misfit: They cannot be read.
        """


class _NumberText(str):
    """A number as it was written: with a fraction or an exponent, or too long for 64 bits."""

    __slots__ = ()


class RecordReader:
    """Reads values into these columns, one by one.

    A decimal is exact, and so is a number in a variant: where there is either, a second parse gives
    the numbers as they were written.
    """

    def __init__(
        self,
        columns: Columns,
        beyond: "Beyond | None" = None,
        *,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """Read into these columns.

        Args:
            columns: Of the rows.
            beyond: What is done with fields that none of them has; None: nothing.
            most_bytes: Of memory that a value may take.
        """
        self._fields, self._beyond = _fields_reader(columns), beyond
        whole = columns if beyond is None else (*columns, *beyond.columns)
        self.type = row_type(whole)
        self._exact = any(_is_exact(column.type) for column in columns)
        is_exact = self._exact or (beyond is not None and bool(beyond.columns))
        self.memory, self._most_bytes = JsonMemory(whole, exact=is_exact), most_bytes
        self._memory_as_written = JsonMemory(whole, exact=True)

    def too_large(self, value: bytes) -> Bad | None:
        """Return a value as bad that takes too much memory."""
        return self.memory.fault(value, self._most_bytes)

    def read(self, value: bytes | None) -> Fields | Bad:
        """Return the fields that are there and not null, as Arrow takes them for `type`.

        A tombstone (None) has no fields.
        """
        if value is None:
            return {}
        if fault := self.too_large(value):
            return fault
        value = value.removeprefix(BOM)
        try:
            document = orjson.loads(value)
        except orjson.JSONDecodeError as exc:
            return Bad("malformed", str(exc)[:REASON_LENGTH])
        if type(document) is not dict:
            return Bad("malformed", f"needs an object, has {described(document)}")
        if fault := too_deep(value, document):
            return fault
        try:
            fields = self._read(value, document)
            return fields if self._beyond is None else fields | self._beyond.fields(value, document)
        except Misfit as exc:
            return exc.bad()

    def _read(self, value: bytes, document: Any) -> Fields:
        if not self._exact:
            try:
                return self._fields(document)
            except Misfit as exc:
                # Only as it was written it shows if it is whole.
                is_float = type(exc.there) is float
                if not is_float or self._memory_as_written.fault(value, self._most_bytes):
                    raise
        return self._fields(as_written(value))


def brackets(value: bytes) -> int:
    """Return the number of opening brackets and braces: JSON is nested at most as deep."""
    return value.count(b"[") + value.count(b"{")


def too_deep(value: bytes, document: object) -> Bad | None:
    """Return what is wrong with a value that is nested too deep."""
    if brackets(value) > MOST_NESTED and _is_too_deep(document):
        return Bad("malformed", f"nested more than {MOST_NESTED} deep")
    return None


def _is_too_deep(document: object) -> bool:
    level: list[Any] = [document]
    for _ in range(MOST_NESTED):
        parts = [part.values() if type(part) is dict else part for part in level]
        level = [inner for part in parts for inner in part if type(inner) in {dict, list}]
    return bool(level)


def _is_exact(kind: ColumnType) -> bool:
    match kind:
        case Simple(name):
            return name in {VARIANT, JSON.name}
        case Decimal():
            return True
        case Array(inner) | Map(inner):
            return _is_exact(inner)
        case _:
            return any(_is_exact(field.type) for field in kind.fields)


def as_written(value: bytes) -> Any:
    """Parse JSON that is known to be valid; see `_NumberText`."""
    return json.loads(value.decode(), parse_float=_NumberText, parse_int=_integer)


def _integer(text: str) -> int | _NumberText:
    number = int(text) if len(text) <= _LONGEST_INTEGER else _END_OF_INTEGERS
    return number if -_END_OF_INTEGERS // 2 <= number < _END_OF_INTEGERS else _NumberText(text)


# --- types ---------------------------------------------------------------------------------------


def _reader(kind: ColumnType) -> Read:
    """Return what reads a JSON value that is not null into a type; it raises `Misfit`."""
    match kind:
        case Simple(name) if name in INTEGER_BITS:
            return _integer_reader(name)
        case Simple(name):
            return READERS[name]
        case Decimal():
            return decimal_reader(kind)
        case Array(item):
            return _array_reader(item)
        case Map(value):
            return _map_reader(value)
        case _:
            return _fields_reader(kind.fields)


def _fields_reader(columns: Columns) -> ReadFields:
    readers = [(column.named, column.name, _reader(column.type)) for column in columns]

    def read(value: Any) -> Fields:
        if type(value) is not dict:
            raise Misfit("an object", value)
        row: Fields = {}
        for name, to, read_field in readers:
            if (field := value.get(name)) is not None:
                try:
                    row[to] = read_field(field)
                except Misfit as exc:
                    exc.path = f".{name}{exc.path}"
                    raise
        return row

    return read


def _array_reader(kind: ColumnType) -> Read:
    read_list = read_items(_reader(kind))

    def read(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Misfit("an array", value)
        return read_list(value)

    return read


def _map_reader(kind: ColumnType) -> Read:
    read_map = read_pairs(_reader(kind))

    def read(value: Any) -> list[tuple[str, Any]]:
        if type(value) is not dict:
            raise Misfit("an object", value)
        return read_map(value)

    return read


def _integer_reader(name: str) -> Read:
    end = 1 << (INTEGER_BITS[name] - 1)

    def read(value: Any) -> int:
        number = _whole(_number(value, name)) if type(value) is _NumberText else value
        if type(number) is not int or not -end <= number < end:
            raise Misfit(name, value)
        return number

    return read


def _whole(number: Number) -> int | None:
    """Return 1 of 1.0, and 1000 of 1e3, which are integers to JSON Schema; None if it is none."""
    if number.is_zero():
        return 0
    fits = number.adjusted() < _LONGEST_INTEGER  # else it may have a billion digits
    return int(number) if fits and number == number.to_integral_value() else None


def decimal_reader(kind: Decimal) -> Read:
    """Return what reads numbers, and texts that are numbers, exactly."""
    fit = exact_decimal(kind)

    def read(value: Any) -> Number:
        if type(value) is int:
            return fit(Number(value), value)
        if type(value) not in {str, _NumberText}:
            raise Misfit(str(kind), value)
        return fit(_number(value, str(kind)), value)

    return read


def _number(text: str, wanted: str) -> Number:
    """Return the number that a text is; raise `Misfit`."""
    try:
        return Number(number_text(text, wanted))
    except InvalidOperation:  # its exponent is beyond what decimals have
        raise Misfit(wanted, text) from None


def number_text(text: str, wanted: str) -> str:
    """Return a text that is a number; raise `Misfit`: for `nan` and `inf`, too."""
    if len(text) > LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        raise Misfit(wanted, text)
    return text


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise Misfit("boolean", value)
    return value


def _double(value: Any) -> float:
    if type(value) not in {float, int, _NumberText}:
        raise Misfit("double", value)
    return float(value)


def _float(value: Any) -> float:
    if type(value) not in {float, int, _NumberText} or abs(number := float(value)) >= _FLOAT_END:
        raise Misfit("float", value)
    return number


def _string(value: Any) -> str:
    if type(value) is not str:
        raise Misfit("string", value)
    return value


def _binary(value: Any) -> bytes:
    if type(value) is str:
        try:
            return b64decode(value, validate=True)
        except ValueError:
            pass
    raise Misfit("binary as base64", value)


def _date(value: Any) -> date:
    if type(value) is str and _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise Misfit("a date YYYY-MM-DD", value)


def _timestamp(value: Any) -> datetime:
    is_text = type(value) is str and len(value) <= LONGEST_TIME
    if is_text and (match := _TIMESTAMP.fullmatch(value)):
        day, minute, second, fraction, offset = match.groups()
        micros = (fraction or "")[:6].ljust(6, "0")
        leap = second == "60"  # datetime has none; it becomes the second behind it
        time = f"{minute or '00:00'}:{'59' if leap else second or '00'}.{micros}"
        try:
            local = datetime.fromisoformat(f"{day}T{time}{offset or 'Z'}")
            return local.astimezone(UTC) + timedelta(seconds=leap)
        except (ValueError, OverflowError):
            pass
    raise Misfit("a timestamp of ISO 8601", value)


def json_text(value: Any) -> str:
    """Return JSON, with numbers as they were written; raise `Misfit` if it is nested too deep."""
    return _json_bytes(value).decode()


def _json_bytes(value: Any) -> bytes:
    try:
        return orjson.dumps(value, _written, orjson.OPT_PASSTHROUGH_SUBCLASS)
    except orjson.JSONEncodeError:  # it is nested deeper than the encoder goes
        raise Misfit("a value nested less deep", value) from None


def _variant(value: Any) -> str:
    text = _json_bytes(value)
    if fault := unfit_for_variant(text, value):
        raise Misfit(fault, value)
    return with_signs(text).decode()


def _written(value: _NumberText) -> orjson.Fragment:
    return orjson.Fragment(str(value))


READERS: dict[str, Read] = {
    "boolean": _boolean,
    "float": _float,
    "double": _double,
    "string": _string,
    "binary": _binary,
    "date": _date,
    "timestamp": _timestamp,
    VARIANT: _variant,
    JSON.name: json_text,
}
