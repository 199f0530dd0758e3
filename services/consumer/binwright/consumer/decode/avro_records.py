"""Reads one Avro value into the fields of columns, by the schema that it was written with.

Values fit columns of their own type, and of wider ones: an `int` fits BIGINT and DOUBLE, a `float`
DOUBLE. A `long` fits INT where its number does. What has parts, or may be of several types, fits
STRING as JSON. What no column names is passed over.

A reader takes the bytes and a place in them, and returns what is there and the place behind it.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal as Number
from math import isfinite, isnan
from struct import Struct as Packed
from struct import error as packing_error
from typing import Any, TypeVar

import orjson

from binwright.consumer.decode.avro_memory import AvroMemory
from binwright.consumer.decode.avro_schemas import (
    LOCAL_TICKS,
    NUMBERS,
    TICKS,
    AvroSchema,
    Node,
    branch_names,
    common_type,
    others,
    plain_type,
    takes_nothing,
)
from binwright.consumer.decode.fits import (
    FIRST_DAY,
    LAST_DAY,
    Fit,
    fields_of,
    integer_fit,
    moment,
    within,
)
from binwright.consumer.decode.one_by_one import (
    REASON_LENGTH,
    Bad,
    Fields,
    Misfit,
    exact_decimal,
)
from binwright.consumer.decode.portions import MOST_BYTES
from binwright.consumer.decode.registry_schemas import HEADER
from binwright.tables.columns import Array, Columns, ColumnType, Decimal, Map, Simple, Struct
from binwright.tables.schemas import IS_PRESENT, SchemaRefused

Reader = Callable[[bytes, int], tuple[Any, int]]
Passing = Callable[[bytes, int], int]
"""Returns the place behind a value."""

_MALFORMED = (EOFError, IndexError, ValueError, packing_error, RecursionError)
"""What readers raise for bytes that are no value of a schema."""
_BITS, _INT_END = 64, 1 << 31


def record_reader(
    schema: AvroSchema, columns: Columns, most_bytes: int = MOST_BYTES
) -> "Callable[[bytes], Fields | Bad]":
    """Return what reads a value, with its header, into these columns.

    Fields that no column names are left out.

    Raises:
        SchemaRefused: No value of this schema fits the columns; says which field.
    """
    try:
        read_row = _Readers().row(schema.top, columns, is_top=True)
    except RecursionError:
        raise SchemaRefused("is nested too deep") from None

    memory = AvroMemory(schema, columns)

    def read(value: bytes) -> Fields | Bad:
        if fault := memory.fault(value, most_bytes):
            return fault
        try:
            fields, end = read_row(value, HEADER)
        except Misfit as exc:
            return exc.bad()
        except _MALFORMED as exc:
            reason = f"is no value of its schema: {type(exc).__name__} {exc}"
            return Bad("malformed", reason[:REASON_LENGTH])
        if end > len(value):
            return Bad("malformed", "is no value of its schema: ends within one")
        if rest := len(value) - end:
            return Bad("malformed", f"has {rest} more bytes than a value of its schema")
        row: Fields = fields or {}
        return row

    return read


class _Readers:
    """Makes the readers of one schema's types."""

    def __init__(self) -> None:
        self._passing: dict[int, Passing] = {}
        self._json: dict[int, Reader] = {}
        self._nothing: dict[int, bool] = {}
        self._values: dict[tuple[int, int], Reader | str] = {}

    def row(self, node: Node, columns: Columns, *, is_top: bool = False) -> Reader:
        """Return the reader of a record, or of a union of several, into these columns."""
        if node.kind == "union":
            return self._one_of_records(node, columns, is_top=is_top)
        wanted = fields_of(columns, node.fields, is_top=is_top)
        parts: list[tuple[str, str, Any]] = []
        for name, each in node.fields.items():
            if (column := wanted.get(name)) is None:
                parts.append((name, "", self.passing(each)))
                continue
            try:
                parts.append((name, column.name, self.value(each, column.type)))
            except SchemaRefused as exc:
                raise SchemaRefused(f"{name}{exc}") from None

        is_empty = IS_PRESENT in columns and not wanted

        def read(data: bytes, at: int) -> tuple[Fields, int]:
            row: Fields = {IS_PRESENT.name: True} if is_empty else {}
            for name, to, read_field in parts:
                if not to:
                    at = read_field(data, at)
                    continue
                try:
                    value, at = read_field(data, at)
                except Misfit as exc:
                    exc.path = f".{name}{exc.path}"
                    raise
                if value is not None:
                    row[to] = value
            return row, at

        return read

    def value(self, node: Node, wanted: ColumnType) -> Reader:
        """Return the reader of a type; raise `SchemaRefused`, with the rest of its path in front.

        A null is None. It is made once for each type and column, however often unions have both.
        """
        key = id(node), id(wanted)
        if key not in self._values:
            try:
                self._values[key] = self._value(node, wanted)
            except SchemaRefused as exc:
                self._values[key] = str(exc)
        if isinstance(made := self._values[key], str):
            raise SchemaRefused(made)
        return made

    def _value(self, node: Node, wanted: ColumnType) -> Reader:
        match wanted, node.kind:
            case _, "null":
                return _null
            case _, "union":
                return self._union(node, wanted)
            case Struct(columns), "record":
                try:
                    return self.row(node, columns)
                except SchemaRefused as exc:
                    raise SchemaRefused(f".{exc}") from None
            case Simple("boolean"), "record":  # that there is one is all that is stored
                passing = self.passing(node)
                return lambda data, at: (True, passing(data, at))
            case Array(item), "array" if not self._takes_nothing(node):
                return _list(self._item(node, item))
            case Map(item), "map":
                read = _map(self._item(node, item))
                return lambda data, at: _pairs(*read(data, at))
            case Simple("string"), "record" | "array" | "map" if not self._takes_nothing(node):
                return self._text(node)
        return _leaf(node, wanted)

    def _item(self, node: Node, wanted: ColumnType) -> Reader:
        try:
            return self.value(node.parts[0], wanted)
        except SchemaRefused as exc:
            raise SchemaRefused(f"[]{exc}") from None

    def _takes_nothing(self, node: Node) -> bool:
        """Return whether a type is a list of what takes no bytes."""
        return node.kind == "array" and takes_nothing(node.parts[0], self._nothing)

    # --- unions ----------------------------------------------------------------------------------

    def _union(self, node: Node, wanted: ColumnType) -> Reader:
        some = others(node)
        if isinstance(wanted, Struct) and branch_names(node):
            try:
                return self.row(node, wanted.fields)
            except SchemaRefused as exc:
                raise SchemaRefused(f".{exc}") from None
        if wanted == Simple("string") and len(some) > 1 and common_type(some) != wanted:
            return self._text(node)
        branches: list[Reader] = []
        refusals: list[SchemaRefused] = []
        for each in node.parts:
            try:
                branches.append(self.value(each, wanted))
            except SchemaRefused as exc:
                refusals.append(exc)
                branches.append(_never(each, wanted))
        if some and len(refusals) == len(some):
            raise refusals[0] if len(some) == 1 else SchemaRefused(f" needs {wanted}, has union")
        return _branch(branches)

    def _one_of_records(self, node: Node, columns: Columns, *, is_top: bool) -> Reader:
        """Return the reader of a union of records into a struct with a field for each."""
        names = branch_names(node)
        wanted = fields_of(columns, names, is_top=is_top)
        branches: dict[int, Reader] = {}
        for name, each in names.items():
            if (column := wanted.get(name)) is None:
                branches[id(each)] = _as_field("", _passed(self.passing(each)))
                continue
            try:
                branches[id(each)] = _as_field(column.name, self.value(each, column.type))
            except SchemaRefused as exc:
                raise SchemaRefused(f"{name}{exc}") from None
        return _branch([branches.get(id(each), _null) for each in node.parts])

    # --- what is passed over, and what is JSON ---------------------------------------------------

    def passing(self, node: Node) -> Passing:
        """Return what passes over values of a type."""
        match node.kind:
            case "null":
                return lambda _, at: at
            case "int" | "long" | "enum":
                return lambda data, at: number(data, at)[1]
            case "bytes" | "string":
                return _pass_bytes
            case "boolean" | "float" | "double" | "fixed":
                size = {"boolean": 1, "float": 4, "double": 8}.get(node.kind, node.size)
                return lambda _, at: at + size
            case _:
                return _once(node, self._passing, self._pass_parts)

    def _pass_parts(self, node: Node) -> Passing:
        match node.kind:
            case "record":
                fields = [*map(self.passing, node.fields.values())]

                def pass_record(data: bytes, at: int) -> int:
                    for each in fields:
                        at = each(data, at)
                    return at

                return pass_record
            case "union":
                branches = [*map(self.passing, node.parts)]

                def pass_union(data: bytes, at: int) -> int:
                    index, at = _index(data, at, len(branches))
                    return branches[index](data, at)

                return pass_union
        if self._takes_nothing(node):
            return lambda data, at: _count_of_nothing(data, at)[1]
        item = self.passing(node.parts[0])
        read = _list(_passed(item)) if node.kind == "array" else _map(_passed(item))
        return lambda data, at: read(data, at)[1]

    def _text(self, node: Node) -> Reader:
        """Return the reader of values as text of JSON."""
        read = self.json(node)

        def read_text(data: bytes, at: int) -> tuple[str | None, int]:
            value, at = read(data, at)
            try:
                return None if value is None else orjson.dumps(value).decode(), at
            except orjson.JSONEncodeError:  # it is nested deeper than the encoder goes
                raise Misfit("a value nested less deep", value) from None

        return read_text

    def json(self, node: Node) -> Reader:
        """Return the reader of values as `orjson` takes them."""
        match node.kind:
            case "null":
                return _null
            case "float" | "double":
                return _fitted(
                    _RAW[node.kind], lambda value: value if isfinite(value) else _name(value)
                )
            case "bytes" | "fixed":
                if node.logical == "decimal":
                    return _fitted(_raw(node), lambda value: orjson.Fragment(_decimal(value, node)))
                return _fitted(_raw(node), lambda value: b64encode(value).decode())
            case "record" | "union" | "array" | "map":
                return _once(node, self._json, self._json_of_parts)
            case _:
                return _raw(node)

    def _json_of_parts(self, node: Node) -> Reader:
        match node.kind:
            case "record":
                fields = [(name, self.json(each)) for name, each in node.fields.items()]

                def read_record(data: bytes, at: int) -> tuple[Fields, int]:
                    members: Fields = {}
                    for name, read in fields:
                        members[name], at = read(data, at)
                    return members, at

                return read_record
            case "union":
                named = not _differ(others(node))
                return _branch(
                    [
                        _as_field(each.name or each.kind, self.json(each))
                        if named and each.kind != "null"
                        else self.json(each)
                        for each in node.parts
                    ]
                )
            case "map":
                return _map(self.json(node.parts[0]))
        return _count_of_nothing if self._takes_nothing(node) else _list(self.json(node.parts[0]))


def _differ(branches: Sequence[Node]) -> bool:
    """Return whether JSON tells values of these types apart; numbers are the same to it."""
    kinds = []
    for each in branches:
        match each.kind:
            case kind if kind in NUMBERS:
                kinds.append("time" if each.logical else "number")
            case "bytes" | "fixed" if each.logical == "decimal":
                kinds.append("number")
            case "string" | "enum" | "bytes" | "fixed":
                kinds.append("string")
            case "record" | "map":
                kinds.append("object")
            case kind:
                kinds.append(kind)
    numbers = kinds.count("number")
    if "time" in kinds and (numbers or kinds.count("time") > 1):
        return False
    return len(set(kinds)) == len(kinds) - max(numbers - 1, 0)


Made = TypeVar("Made", Reader, Passing)


def _once(node: Node, known: dict[int, Made], make: Callable[[Node], Made]) -> Made:
    """Return what is made of a type, made once; within itself, what calls it."""
    if id(node) not in known:
        made: list[Any] = []

        def call_it(data: bytes, at: int) -> Any:
            return made[0](data, at)

        known[id(node)] = call_it
        made.append(make(node))
        known[id(node)] = made[0]
    return known[id(node)]


# --- readers -------------------------------------------------------------------------------------


def number(data: bytes, at: int) -> tuple[int, int]:
    """Read an integer of up to 64 bits."""
    byte = data[at]
    if byte < 0x80:  # noqa: PLR2004 - the bit that says that more follow
        return (byte >> 1) ^ -(byte & 1), at + 1
    bits, shift = byte & 0x7F, 7
    while True:
        at += 1
        byte = data[at]
        bits |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - as above
            break
        shift += 7
        if shift >= _BITS:
            raise ValueError("an integer of more than 64 bits")
    if bits >> _BITS:
        raise ValueError("an integer of more than 64 bits")
    return (bits >> 1) ^ -(bits & 1), at + 1


def _int(data: bytes, at: int) -> tuple[int, int]:
    value, at = number(data, at)
    if not -_INT_END <= value < _INT_END:
        raise ValueError("an int of more than 32 bits")
    return value, at


def _null(_: bytes, at: int) -> tuple[None, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    if data[at] > 1:
        raise ValueError("a boolean that is neither 0 nor 1")
    return data[at] == 1, at + 1


_FLOAT, _DOUBLE = Packed("<f"), Packed("<d")


def _float(data: bytes, at: int) -> tuple[float, int]:
    (value,) = _FLOAT.unpack_from(data, at)
    return value, at + 4


def _double(data: bytes, at: int) -> tuple[float, int]:
    (value,) = _DOUBLE.unpack_from(data, at)
    return value, at + 8


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    begin, at = at, _pass_bytes(data, at)
    _, begin = number(data, begin)
    return data[begin:at], at


def _string(data: bytes, at: int) -> tuple[str, int]:
    length, begin = number(data, at)
    end = begin + length
    if not begin <= end <= len(data):
        raise EOFError("ends within a text")
    return data[begin:end].decode(), end


def _pass_bytes(data: bytes, at: int) -> int:
    length, begin = number(data, at)
    if not 0 <= length <= len(data) - begin:
        raise EOFError("ends within bytes")
    return begin + length


_RAW: Mapping[str, Reader] = {
    "boolean": _boolean,
    "int": _int,
    "long": number,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}


def _raw(node: Node) -> Reader:
    """Return the reader of a type without parts, as it is stored."""
    match node.kind:
        case "fixed":
            size = node.size

            def read_fixed(data: bytes, at: int) -> tuple[bytes, int]:
                if at + size > len(data):
                    raise EOFError("ends within a fixed")
                return data[at : at + size], at + size

            return read_fixed
        case "enum":
            symbols = node.symbols

            def read_enum(data: bytes, at: int) -> tuple[str, int]:
                index, at = _index(data, at, len(symbols))
                return symbols[index], at

            return read_enum
    return _RAW[node.kind]


def _index(data: bytes, at: int, count: int) -> tuple[int, int]:
    index, at = number(data, at)
    if not 0 <= index < count:
        raise IndexError(f"{index} of {count} branches or symbols")
    return index, at


def _fitted(read: Reader, fit: Fit) -> Reader:
    def read_fitted(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read(data, at)
        return fit(value), at

    return read_fitted


def _passed(passing: Passing) -> Reader:
    return lambda data, at: (None, passing(data, at))


def _branch(branches: Sequence[Reader]) -> Reader:
    def read(data: bytes, at: int) -> tuple[Any, int]:
        index, at = _index(data, at, len(branches))
        return branches[index](data, at)

    return read


def _as_field(name: str, read: Reader) -> Reader:
    def read_field(data: bytes, at: int) -> tuple[Fields, int]:
        try:
            value, at = read(data, at)
        except Misfit as exc:
            exc.path = f".{name}{exc.path}"
            raise
        return {name: value} if name else {}, at

    return read_field


def _never(node: Node, wanted: ColumnType) -> Reader:
    def read(_: bytes, __: int) -> tuple[None, int]:
        raise Misfit(str(wanted), node)

    return read


def _counts(data: bytes, at: int) -> tuple[int, int]:
    """Return how many items follow in a list or map, 0: it ends here."""
    count, at = number(data, at)
    if count < 0:
        size, at = number(data, at)
        if size < 0:
            raise ValueError("a block of less than no bytes")
        return -count, at
    return count, at


def _count_of_nothing(data: bytes, at: int) -> tuple[int, int]:
    """Return the number of items of a list of what takes no bytes, instead of these."""
    total = 0
    while True:
        count, at = _counts(data, at)
        if not count:
            return total, at
        total += count


def _list(read_item: Reader) -> Reader:
    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        try:
            while True:
                count, at = _counts(data, at)
                if not count:
                    return items, at
                if count > len(data) - at:  # each takes a byte at least
                    raise EOFError("ends within a list")
                for _ in range(count):
                    item, at = read_item(data, at)
                    items.append(item)
        except Misfit as exc:
            exc.path = f"[{len(items)}]{exc.path}"
            raise

    return read


def _map(read_item: Reader) -> Reader:
    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        entries: dict[str, Any] = {}
        while True:
            count, at = _counts(data, at)
            if not count:
                return entries, at
            if count > len(data) - at:
                raise EOFError("ends within a map")
            for _ in range(count):
                key, at = _string(data, at)
                try:
                    entries[key], at = read_item(data, at)
                except Misfit as exc:
                    exc.path = f".{key}{exc.path}"
                    raise

    return read


def _pairs(entries: dict[str, Any], at: int) -> tuple[list[tuple[str, Any]], int]:
    """Return a map as Arrow takes it."""
    return [*entries.items()], at


def _leaf(node: Node, wanted: ColumnType) -> Reader:
    """Return the reader of a type without parts; raise as `_Readers.value` does."""
    kind, logical = node.kind, node.logical
    match wanted:
        case Simple("date") if logical == "date":
            return _fitted(_int, within("date", FIRST_DAY, LAST_DAY))
        case Simple("timestamp") if ticks := (TICKS | LOCAL_TICKS).get(logical):
            return _fitted(number, lambda value: moment(value, ticks))
        case Decimal() if logical == "decimal":
            fit_exactly = exact_decimal(wanted)
            return _fitted(_raw(node), lambda value: _exactly(_decimal(value, node), fit_exactly))
        case Simple("string") if logical == "decimal":
            return _fitted(_raw(node), lambda value: _decimal(value, node))
        case Simple("binary") if kind in {"bytes", "fixed"}:
            return _raw(node)
        case Decimal() if not logical and kind in {"int", "long"}:
            fit_number = exact_decimal(wanted)
            return _fitted(_RAW[kind], lambda value: fit_number(Number(value), value))
        case Simple(name) if not logical or logical in LOCAL_TICKS:
            if (name, kind) in _AS_IT_IS:
                return _raw(node)
            if kind in {"int", "long"} and (fit := integer_fit(name)):
                return _fitted(_RAW[kind], fit)
    is_as_stored = not logical or logical in LOCAL_TICKS
    raise SchemaRefused(f" needs {wanted}, has {kind if is_as_stored else plain_type(node)}")


_AS_IT_IS = frozenset(
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("bigint", "int"),
        ("bigint", "long"),
        ("float", "float"),
        ("double", "float"),
        ("double", "double"),
        ("double", "int"),
        ("string", "string"),
        ("string", "enum"),
    ]
)
"""Column types and stored types whose values need no look."""


def _decimal(value: bytes, node: Node) -> str:
    """Return a decimal's text; one of more than 256 bits is a `Misfit`."""
    stored = int.from_bytes(value, "big", signed=True)
    if abs(stored) >> 256:
        raise Misfit(f"decimal({node.precision},{node.scale})", f"{len(value)} bytes")
    return f"{Number(f'{stored}E-{node.scale}'):f}"


def _exactly(text: str, fit: Callable[[Number, object], Number]) -> Number:
    number_there = Number(text)
    return fit(number_there, number_there)


def _name(value: float) -> str:
    """Return what JSON has no number for as Protobuf's JSON writes it."""
    return "NaN" if isnan(value) else f"{'-' if value < 0 else ''}Infinity"
