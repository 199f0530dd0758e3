"""Reads one Protobuf message into the fields of columns, by the schema that it was written with.

Values fit columns of their own type, and of wider ones: an `int32` fits BIGINT and DOUBLE, a
`float` DOUBLE. An `int64` fits INT where its number does, and so does any integer a DECIMAL. What
has parts fits STRING as JSON. Fields
that have presence and are absent are NULL; others have their default value.
"""

from collections.abc import Callable
from decimal import Decimal as Number
from functools import partial
from threading import local
from typing import Any

from google.protobuf import message_factory
from google.protobuf.message import DecodeError

from binwright.consumer.decode.fits import Fit, as_it_is, fields_of, integer_fit, moment
from binwright.consumer.decode.one_by_one import (
    REASON_LENGTH,
    Bad,
    Fields,
    Misfit,
    exact_decimal,
    not_text,
    read_items,
    read_pairs,
)
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.consumer.decode.protobuf_json import field_text, json_text
from binwright.consumer.decode.protobuf_memory import MemoryOf
from binwright.consumer.decode.protobuf_schemas import (
    JSON_TEXT,
    Message,
    is_map,
    kind_of,
    messages_in,
)
from binwright.tables.columns import Array, Columns, ColumnType, Decimal, Map, Simple, Struct
from binwright.tables.schemas import IS_PRESENT, SchemaRefused

NANOS = 1_000_000_000
MOST_FIELDS, FIELDS_PER_BYTE = 100_000, 4
"""Fields that a value may become, and those more for each of its bytes.

A few bytes can be messages whose many fields all have their default values.
"""


def record_reader(
    message: Message, columns: Columns, most_bytes: int = MOST_BYTES
) -> "Callable[[bytes], Fields | Bad]":
    """Return what reads a message, without its header, into these columns.

    Fields that no column names, and those that its schema does not have, are left out.

    Raises:
        SchemaRefused: No value of this message fits the columns; says which field.
    """
    budget = _Budget()
    fit = _Fits(budget).fields(message, columns, is_top=True)
    made: Any = message_factory.GetMessageClass(message)
    memory = MemoryOf(message, columns)
    requires = any(f.is_required for each in messages_in(message).values() for f in each.fields)

    def read(body: bytes) -> Fields | Bad:
        if fault := memory.fault(body, most_bytes):
            return fault
        budget.left = MOST_FIELDS + FIELDS_PER_BYTE * len(body)
        try:
            parsed = made.FromString(body)
            if requires and (lacking := parsed.FindInitializationErrors()):
                return Bad("malformed", f"lacks {', '.join(lacking)}"[:REASON_LENGTH])
            fields: Fields = fit(parsed)
        except DecodeError as exc:
            return Bad("malformed", f"is no value of its schema: {exc}"[:REASON_LENGTH])
        except UnicodeDecodeError as exc:  # strings of proto2 are not checked as they are parsed
            return not_text(exc)
        except Misfit as exc:
            return exc.bad()
        return fields

    return read


class _Budget(local):
    """How many fields the value that a thread reads may still become."""

    left = 0


class _Fits:
    """Makes the fits of one message's types. None: the value as it is fits."""

    def __init__(self, budget: _Budget) -> None:
        self._budget = budget

    def fields(self, message: Message, columns: Columns, *, is_top: bool = False) -> Fit:
        """Return the fit of a message."""
        fits: list[tuple[str, str, bool, Fit | None]] = []
        names = [field.name for field in message.fields]
        for name, column in fields_of(columns, names, is_top=is_top).items():
            field = message.fields_by_name[name]
            try:
                fit = self._field(field, column.type)
            except SchemaRefused as exc:
                raise SchemaRefused(f"{field.name}{exc}") from None
            fits.append((field.name, column.name, field.has_presence, fit))
        if not message.fields and IS_PRESENT in columns:
            return lambda _: {IS_PRESENT.name: True}
        # Fields may be named like methods: those of the class are meant.
        has: Any = message_factory.GetMessageClass(message).HasField
        budget, width = self._budget, len(fits)

        def fit_fields(value: Any) -> Fields:
            budget.left -= width
            if budget.left < 0:
                raise Misfit("fewer fields of messages", "more than its bytes warrant")
            row: Fields = {}
            for name, to, may_be_absent, fit in fits:
                if may_be_absent and not has(value, name):
                    continue
                field = getattr(value, name)
                try:
                    row[to] = field if fit is None else fit(field)
                except Misfit as exc:
                    exc.path = f".{name}{exc.path}"
                    raise
            return row

        return fit_fields

    def _field(self, field: Any, wanted: ColumnType) -> Fit | None:
        """Return the fit of a field; raise `SchemaRefused`, with the rest of its path in front."""
        if wanted == JSON_TEXT and (field.is_repeated or kind_of(field) == "message"):
            return partial(field_text, field)
        if is_map(field):
            return self._map(field, wanted)
        if not field.is_repeated:
            return self._value(field, wanted)
        if not isinstance(wanted, Array):
            raise SchemaRefused(f" needs {wanted}, has a list")
        fit = self._item(field, wanted.item)
        return list if fit is None else read_items(fit)

    def _map(self, field: Any, wanted: ColumnType) -> Fit:
        key, value = field.message_type.fields
        match wanted:
            case Map(item) if kind_of(key) == "string":
                pairs = read_pairs(self._item(value, item) or as_it_is)
                return lambda entries: pairs(dict(_sorted(entries)))
            case Array(Struct(columns)):
                fits = {
                    name: self._item(part, column.type) or as_it_is
                    for column in columns
                    for name, part in (("key", key), ("value", value))
                    if column.name.lower() == name
                }
                names = [(column.name, column.name.lower()) for column in columns]
                to = [(name, part == "key", fits[part]) for name, part in names if part in fits]
                entry = _entry(to)
                return lambda entries: [entry(pair) for pair in _sorted(entries)]
        raise SchemaRefused(f" needs {wanted}, has a map by {kind_of(key)}")

    def _item(self, field: Any, wanted: ColumnType) -> Fit | None:
        try:
            return self._value(field, wanted)
        except SchemaRefused as exc:
            raise SchemaRefused(f"[]{exc}") from None

    def _value(self, field: Any, wanted: ColumnType) -> Fit | None:
        """Return the fit of one value of a field; raise as `_field` does."""
        match wanted, (kind := kind_of(field)):
            case Simple("boolean"), "message" if not field.message_type.fields:
                return lambda _: True
            case Struct(columns), "message" | "timestamp":
                try:
                    return self.fields(field.message_type, columns)
                except SchemaRefused as exc:
                    raise SchemaRefused(f".{exc}") from None
            case _, "wrapper":
                fit = self._value(field.message_type.fields_by_name["value"], wanted) or as_it_is
                return lambda wrapper: fit(wrapper.value)
            case Simple("timestamp"), "timestamp":
                return _moment
            case Simple("string"), "json":
                return json_text
            case Simple("string"), "enum":
                return _name_in(field.enum_type)
        return _leaf(kind, wanted)


def _leaf(kind: str, wanted: ColumnType) -> Fit | None:
    """Return the fit of a type without parts; raise as `_Fits._field` does."""
    match wanted:
        case Simple(name) if (name, kind) in _AS_IT_IS:
            return None
        case Simple(name) if kind in _INTEGERS and (fit := integer_fit(name)):
            return fit
        case Simple("string") if kind == "string":
            return _text
        case Decimal() if kind in _INTEGERS:
            fit_exactly = exact_decimal(wanted)
            return lambda value: fit_exactly(Number(value), value)
    raise SchemaRefused(f" needs {wanted}, has {kind}")


_INTEGERS = frozenset(["int32", "uint32", "int64", "uint64", "enum"])
_AS_IT_IS = frozenset(
    [
        ("boolean", "bool"),
        ("int", "int32"),
        ("int", "enum"),
        ("bigint", "int32"),
        ("bigint", "uint32"),
        ("bigint", "int64"),
        ("bigint", "enum"),
        ("float", "float"),
        ("double", "float"),
        ("double", "double"),
        ("double", "int32"),
        ("double", "uint32"),
        ("binary", "bytes"),
    ]
)
"""Column types and kinds whose values need no look."""


def _sorted(entries: Any) -> list[tuple[Any, Any]]:
    """Return the entries of a map in the order of their keys: their own is another each time."""
    return sorted(entries.items(), key=lambda pair: pair[0])


def _entry(to: list[tuple[str, bool, Fit]]) -> Callable[[tuple[Any, Any]], Fields]:
    def fit(pair: tuple[Any, Any]) -> Fields:
        key, value = pair
        try:
            return {name: fit(key if of_key else value) for name, of_key, fit in to}
        except Misfit as exc:
            exc.path = f".{key}{exc.path}"
            raise

    return fit


def _text(value: Any) -> Any:
    """Return a text; one of proto2 that is no UTF-8 comes as bytes. Raises `UnicodeDecodeError`."""
    return value if type(value) is str else value.decode()


def _moment(value: Any) -> int:
    if not 0 <= value.nanos < NANOS:
        raise Misfit("nanoseconds of a timestamp", value.nanos)
    return moment(value.seconds * NANOS + value.nanos, NANOS)


def _name_in(enum: Any) -> Fit:
    """Return the fit of numbers as their names; one that has none is the number as text."""
    names: dict[int, str] = {}
    for value in enum.values:
        names.setdefault(value.number, value.name)
    return lambda number: names.get(number) or str(number)
