"""Avro schemas: what they say of values, as columns.

A schema comes from a registry to which others may write: one that could make a reader of values
run without end, or deep, is refused.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import fastavro
import orjson
from fastavro.schema import SchemaParseException

from binwright.protocol.columns import (
    DEEPEST,
    MOST_DIGITS,
    Array,
    Column,
    Columns,
    ColumnType,
    Decimal,
    Map,
    Simple,
    Struct,
)
from binwright.protocol.schemas import SchemaRefused, check_names, check_place

Node = Any
"""A type as `fastavro` has it: a name, a list (a union), or a dictionary."""

SIMPLE = {
    "boolean": "boolean",
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "enum": "string",
    "fixed": "binary",
}
"""The types without parts, and those of their columns."""
TYPES = {*SIMPLE, "null", "array", "map", "record"}
ONLY_FIELD = "value"
TICKS = {"timestamp-millis": 1_000, "timestamp-micros": 1_000_000, "timestamp-nanos": 10**9}
"""Ticks per second of a moment."""


class AvroSchema:
    """One schema: of the values that name its id. One that is no record is read as `value` of one.

    Attributes:
        parsed: For `fastavro`, without logical types: values come as they are stored.
    """

    def __init__(self, text: str, references: Sequence[str] = ()) -> None:
        """Parse a schema; the types that it uses are in `references`, each after its own ones.

        Raises:
            SchemaRefused: It is not valid, or may not be read.
        """
        self._names: dict[str, Node] = {}
        plain: dict[str, Node] = {}
        try:
            for each in references:
                document = orjson.loads(each)
                fastavro.parse_schema(document, named_schemas=self._names)
                fastavro.parse_schema(_plain(document), named_schemas=plain)
            document = _record(orjson.loads(text))
            self._top: Node = fastavro.parse_schema(document, named_schemas=self._names)
            self.parsed = fastavro.parse_schema(_plain(document), named_schemas=plain)
            self._takes_bytes(self._top, ())
        except RecursionError:
            raise SchemaRefused("is nested too deep") from None
        except (SchemaParseException, ValueError, TypeError, KeyError, AttributeError) as exc:
            raise SchemaRefused(f"is no Avro schema: {type(exc).__name__}: {exc}"[:150]) from exc

    @cached_property
    def columns(self) -> Columns:
        """Return the columns of all that it has; raise `SchemaRefused`."""
        columns = self._columns(self._top)
        check_place(columns)
        return columns

    @property
    def fields(self) -> Mapping[str, Node]:
        """Return the fields of the record."""
        return fields_of(self._top)

    def node(self, node: Node) -> Node:
        """Return a type by its name, and the only type of a union that may be null."""
        if isinstance(node, list):
            others = [each for each in node if kind_of(each) != "null"]
            return self.node(others[0]) if len(others) == 1 else node
        return self._names.get(node, node) if isinstance(node, str) else node

    def _columns(self, record: Node) -> Columns:
        found = []
        for name, node in fields_of(record).items():
            try:
                kind = self.column_type(node)
            except SchemaRefused as exc:
                raise SchemaRefused(f"{name}: {exc}") from None
            if kind is not None:
                found.append(Column(name, kind))
        columns = tuple(found)
        check_names(columns)
        return columns

    def column_type(self, node: Node) -> ColumnType | None:
        """Return the type of a column of these values; None if there is nothing to store.

        Raises:
            SchemaRefused: There is no such type.
        """
        node = self.node(node)
        kind = kind_of(node)
        if logical := logical_type(node):
            return logical
        match kind:
            case "null":
                return None
            case "array":
                return Array(self._stored(node["items"]))
            case "map":
                return Map(self._stored(node["values"]))
            case "record":
                columns = self._columns(node)
                return Struct(columns) if columns else None
            case "union":
                kinds = ", ".join(map(kind_of, node))
                raise SchemaRefused(f"a union of {kinds or 'nothing'} has no column type")
            case _:
                return Simple(SIMPLE[kind])

    def _stored(self, node: Node) -> ColumnType:
        kind = self.column_type(node)
        if kind is None:
            raise SchemaRefused("a list of nothing has no column type")
        return kind

    def _takes_bytes(self, node: Node, inside: tuple[str, ...]) -> bool:
        """Return whether each value takes a byte at least; raise `SchemaRefused` if unsafe.

        A few bytes could ask for 2**62 items that take none.
        """
        if isinstance(node, str):
            node = self._names.get(node, node)
        if isinstance(node, list):
            for each in node:
                self._takes_bytes(each, inside)
            return True  # the number of the branch
        _check_type(node, inside)
        match kind := kind_of(node):
            case "record":
                within = (*inside, node["name"])
                parts = [self._takes_bytes(each, within) for each in fields_of(node).values()]
                return any(parts)
            case "array" | "map":
                item = node["items" if kind == "array" else "values"]
                if not self._takes_bytes(item, (*inside, "")) and kind == "array":
                    raise SchemaRefused("has a list of what takes no bytes")
                return True
            case "fixed":
                return bool(node["size"] > 0)
            case _:
                return kind != "null"


def _record(document: Any) -> Any:
    """Return the schema of a record, whose bytes are those of its fields one after the other."""
    if isinstance(document, dict) and document.get("type") in {"record", "error"}:
        return document
    if not isinstance(document, dict | list | str):
        return document  # which is no schema
    fields = [{"name": ONLY_FIELD, "type": document}]
    return {"type": "record", "name": "BinwrightValue", "fields": fields}


def kind_of(node: Node) -> str:
    """Return the name of a type; that of a named one, or `union`."""
    if isinstance(node, list):
        return "union"
    kind = node["type"] if isinstance(node, dict) else node
    return kind_of(kind) if isinstance(kind, dict | list) else str(kind)


def fields_of(record: Node) -> Mapping[str, Node]:
    """Return the types of a record's fields by name."""
    return {field["name"]: field["type"] for field in record["fields"]}


def _check_type(node: Node, inside: tuple[str, ...]) -> None:
    """Raise `SchemaRefused` for a type that `fastavro` takes, and no reader may be given."""
    if len(inside) > DEEPEST:
        raise SchemaRefused(f"is nested more than {DEEPEST} deep")
    if (kind := kind_of(node)) not in TYPES:
        raise SchemaRefused(f"has the type {kind}, which no value has")
    if kind != "record":
        return
    if node["name"] in inside:
        raise SchemaRefused(f"has the type {node['name']} within itself")
    seen = set[str]()
    for field in node["fields"]:
        name = field["name"]
        if not isinstance(name, str):
            raise SchemaRefused(f"has a field whose name is no text, but {name!r}"[:150])
        if name in seen:
            raise SchemaRefused(f"has two fields named {name}")
        seen.add(name)


def logical_type(node: Node) -> ColumnType | None:
    """Return the column type of a logical type; None: that of the type which it is stored as."""
    name = node.get("logicalType") if isinstance(node, dict) else None
    match name, kind_of(node):
        case "date", "int":
            return Simple("date")
        case str(), "long" if name in TICKS:
            return Simple("timestamp")
        case "decimal", "bytes" | "fixed":
            precision, scale = node.get("precision"), node.get("scale", 0)
            if not (isinstance(precision, int) and isinstance(scale, int)):
                return None
            if not 0 <= scale <= precision <= MOST_DIGITS or not precision:
                raise SchemaRefused(f"a decimal({precision},{scale}) has no column type")
            return Decimal(precision, scale)
    return None


def _plain(node: Any) -> Any:
    """Return a schema without logical types."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {key: each for key, each in node.items() if key != "logicalType"}
    for key in ("type", "items", "values"):
        if key in kept:
            kept[key] = _plain(kept[key])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_plain(field) for field in kept["fields"]]
    return kept
