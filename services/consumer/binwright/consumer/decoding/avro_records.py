"""Reads one Avro value into the fields of columns, by the schema that it was written with.

Values fit columns of their own type, and of wider ones: an `int` fits BIGINT and DOUBLE, a `float`
DOUBLE. A `long` fits INT where its number does.
"""

from collections.abc import Callable
from decimal import Decimal as Number
from io import BytesIO
from typing import Any

from fastavro import schemaless_reader

from binwright.consumer.decoding.avro_schemas import (
    TICKS,
    AvroSchema,
    Node,
    fields_of,
    kind_of,
    logical_type,
)
from binwright.consumer.decoding.fits import (
    FIRST_DAY,
    LAST_DAY,
    Fit,
    as_it_is,
    integer_fit,
    moment,
    within,
)
from binwright.consumer.decoding.one_by_one import (
    REASON_LENGTH,
    Bad,
    Fields,
    Misfit,
    exact_decimal,
    read_items,
    read_pairs,
)
from binwright.consumer.decoding.registry_schemas import HEADER
from binwright.protocol.columns import Array, Columns, ColumnType, Decimal, Map, Simple, Struct
from binwright.protocol.schemas import SchemaRefused

_MALFORMED = (EOFError, IndexError, ValueError, OverflowError)
"""What `fastavro` raises for bytes that are no value of a schema."""


def record_reader(schema: AvroSchema, columns: Columns) -> "Callable[[bytes], Fields | Bad]":
    """Return what reads a value, with its header, into these columns.

    Fields that no column names are left out.

    Raises:
        SchemaRefused: No value of this schema fits the columns; says which field.
    """
    fit = _Fits(schema).fields(schema.fields, columns)
    parsed = schema.parsed

    def read(value: bytes) -> Fields | Bad:
        source = BytesIO(value)
        source.seek(HEADER)
        try:
            found: Any = schemaless_reader(source, parsed, None)
        except _MALFORMED as exc:
            reason = f"is no value of its schema: {type(exc).__name__} {exc}"
            return Bad("malformed", reason[:REASON_LENGTH])
        if rest := len(value) - source.tell():
            return Bad("malformed", f"has {rest} more bytes than a value of its schema")
        try:
            fields: Fields = found if fit is None else fit(found)
        except Misfit as exc:
            return exc.bad()
        return fields

    return read


class _Fits:
    """Makes the fits of one schema's types. None: the value as it is fits."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def fields(self, nodes: "dict[str, Node] | Any", columns: Columns) -> Fit | None:
        """Return the fit of a record with these fields."""
        by_name = {name.lower(): name for name in nodes}
        fits: list[tuple[str, str, Fit | None]] = []
        for column in columns:
            name = column.name if column.name in nodes else by_name.get(column.name.lower(), "")
            if not name or kind_of(self._schema.node(nodes[name])) == "null":
                continue
            try:
                fits.append((name, column.name, self._value(nodes[name], column.type)))
            except SchemaRefused as exc:
                raise SchemaRefused(f"{name}{exc}") from None
        names = [name for name, _, _ in fits]
        if names == list(nodes) and all(n == to and fit is None for n, to, fit in fits):
            return None

        def fit_fields(value: Any) -> Fields:
            found: Fields = {}
            for name, to, fit in fits:
                if (field := value[name]) is not None:
                    try:
                        found[to] = field if fit is None else fit(field)
                    except Misfit as exc:
                        exc.path = f".{name}{exc.path}"
                        raise
            return found

        return fit_fields

    def _value(self, node: Node, wanted: ColumnType) -> Fit | None:
        """Return the fit of a type; raise `SchemaRefused`, with the rest of its path in front."""
        node = self._schema.node(node)
        match wanted, kind_of(node):
            case Struct(columns), "record":
                try:
                    return self.fields(fields_of(node), columns)
                except SchemaRefused as exc:
                    raise SchemaRefused(f".{exc}") from None
            case Array(item), "array":
                fit = self._item(node["items"], item)
                return None if fit is None else read_items(fit)
            case Map(item), "map":
                return read_pairs(self._item(node["values"], item) or as_it_is)
        return _leaf(node, wanted)

    def _item(self, node: Node, wanted: ColumnType) -> Fit | None:
        try:
            return self._value(node, wanted)
        except SchemaRefused as exc:
            raise SchemaRefused(f"[]{exc}") from None


def _leaf(node: Node, wanted: ColumnType) -> Fit | None:
    """Return the fit of a type without parts; raise as `_Fits._value` does."""
    logical, kind = logical_type(node), kind_of(node)
    match wanted:
        case Simple(name) if logical is None:
            if (name, kind) in _AS_IT_IS:
                return None
            if kind == "int" and name in {"bigint", "double"}:
                return integer_fit("int")  # what has more bits was written by another schema
            if kind in {"int", "long"} and (fit := integer_fit(name)):
                return fit
        case Simple("date") if wanted == logical:
            return within("date", FIRST_DAY, LAST_DAY)
        case Simple("timestamp") if wanted == logical:
            return _moment(TICKS[node["logicalType"]])
        case Decimal() if isinstance(logical, Decimal):
            return _decimal(logical, wanted)
        case Decimal() if logical is None and kind in {"int", "long"}:
            fit_exactly = exact_decimal(wanted)
            return lambda value: fit_exactly(Number(value), value)
    raise SchemaRefused(f" needs {wanted}, has {logical or kind}")


_AS_IT_IS = frozenset(
    [
        ("boolean", "boolean"),
        ("int", "int"),
        ("bigint", "long"),
        ("float", "float"),
        ("double", "float"),
        ("double", "double"),
        ("binary", "bytes"),
        ("binary", "fixed"),
        ("string", "string"),
        ("string", "enum"),
    ]
)
"""Column types and stored types whose values need no look."""


def _moment(ticks: int) -> Fit:
    return lambda value: moment(value, ticks)


def _decimal(there: Decimal, wanted: Decimal) -> Fit:
    fit_exactly = exact_decimal(wanted)

    def fit(value: bytes) -> Number:
        stored = int.from_bytes(value, "big", signed=True)
        if abs(stored) >> 256:
            raise Misfit(str(wanted), f"{len(value)} bytes")
        number = Number(f"{stored}E-{there.scale}")
        return fit_exactly(number, number)

    return fit
