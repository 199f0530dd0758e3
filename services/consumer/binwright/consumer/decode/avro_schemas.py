"""Avro schemas: what they say of values, as columns.

Only what says how values lie in bytes is read of a schema. The rest, as defaults, aliases and names
that no Java class may have, is no reason to refuse it: producers and registries take them too.

A schema comes from a registry to which others may write: its size, and that of its columns, are
bounded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log10
from typing import Any

import orjson

from binwright.tables.columns import (
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
    in_table,
)
from binwright.tables.schemas import IS_PRESENT, SchemaRefused

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
PRIMITIVE = frozenset(SIMPLE) - {"enum", "fixed"} | {"null"}
NUMBERS = ("int", "long", "float", "double")
ONLY_FIELD = "value"
TICKS = {"timestamp-millis": 1_000, "timestamp-micros": 1_000_000, "timestamp-nanos": 10**9}
"""Ticks per second of a moment."""
LOCAL_TICKS = {f"local-{name}": ticks for name, ticks in TICKS.items()}
"""Likewise of a moment without a zone: the number as stored, unless `columns` wants a timestamp."""
MOST_PARTS = 10_000  # types and fields of a schema, with those that it uses; and of its columns
JSON_TEXT = Simple("string")
"""The type of a column of JSON, as text."""


@dataclass(slots=True, eq=False)
class Node:
    """A type. One that is named is the same object wherever it is used, also within itself."""

    kind: str  # of `SIMPLE`, or null, array, map, record, union
    name: str = ""  # of a named type, in full
    logical: str = ""
    precision: int = 0  # of a decimal
    scale: int = 0
    size: int = 0  # of a fixed
    symbols: Sequence[str] = ()
    fields: Mapping[str, "Node"] = field(default_factory=dict)  # of a record
    parts: "Sequence[Node]" = ()  # the items of an array, the values of a map, a union's branches

    def __str__(self) -> str:
        return self.logical or self.kind


class AvroSchema:
    """One schema: of the values that name its id. One that is no record is read as `value` of one.

    Attributes:
        top: Its type.
    """

    def __init__(self, text: str, references: Sequence[str] = ()) -> None:
        """Parse a schema; the types that it uses are in `references`, each after its own ones.

        Raises:
            SchemaRefused: It is not valid.
        """
        parser = _Parser()
        try:
            for each in references:
                parser.node(orjson.loads(each))
            top = parser.node(orjson.loads(text))
        except RecursionError:
            raise SchemaRefused("is nested too deep") from None
        except ValueError as exc:
            raise SchemaRefused(f"is no Avro schema: {exc}"[:150]) from exc
        is_row = top.kind == "record" or branch_names(top)
        self.top = top if is_row else Node("record", fields={ONLY_FIELD: top})
        self._columns_and_notes: tuple[Columns, tuple[str, ...]] | None = None

    @property
    def columns(self) -> Columns:
        """Return the columns of all that it has; raise `SchemaRefused` for too many."""
        return self._columns()[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """Return which fields have no column, or one of JSON, and why."""
        return self._columns()[1]

    def _columns(self) -> tuple[Columns, tuple[str, ...]]:
        if self._columns_and_notes is None:
            made = _Columns()
            try:
                self._columns_and_notes = in_table(made.row(self.top)), tuple(made.notes)
            except RecursionError:
                raise SchemaRefused("is nested too deep") from None
        return self._columns_and_notes


class _Parser:
    """Reads the documents of one schema, and of those that it uses."""

    def __init__(self) -> None:
        self._named: dict[str, Node] = {}
        self._left = MOST_PARTS

    def node(self, given: Any, namespace: str = "") -> Node:
        """Return a type; raise `SchemaRefused`."""
        self._left -= 1
        if self._left < 0:
            raise SchemaRefused(f"has more than {MOST_PARTS} parts")
        match given:
            case str():
                return self._of_name(given, namespace)
            case list():
                return Node("union", parts=[self.node(each, namespace) for each in given])
            case {"type": dict() | list() as inner}:
                return self.node(inner, namespace)
            case {"type": "array", "items": part} | {"type": "map", "values": part}:
                return Node(given["type"], parts=[self.node(part, namespace)])
            case {"type": "record" | "error" | "enum" | "fixed"}:
                return self._defined(given, namespace)
            case {"type": str(name)}:
                node = self._of_name(name, namespace)
                return _logical(Node(node.kind), given) if name in PRIMITIVE else node
        raise SchemaRefused(f"is no Avro schema: has no type in {given!r}"[:150])

    def _defined(self, given: Mapping[str, Any], namespace: str) -> Node:
        match given:
            case {"fields": list() as fields, "type": "record" | "error"}:
                return self._record(given, fields, namespace)
            case {"symbols": list() as symbols, "type": "enum"}:
                if not all(isinstance(each, str) for each in symbols):
                    raise SchemaRefused("is no Avro schema: has a symbol that is no text")
                return self._known(given, namespace, Node("enum", symbols=symbols))
            case {"size": int(size), "type": "fixed"} if size >= 0:
                return self._known(given, namespace, _logical(Node("fixed", size=size), given))
        raise SchemaRefused(f"is no Avro schema: {given!r} lacks something"[:150])

    def _of_name(self, name: str, namespace: str) -> Node:
        if name in PRIMITIVE:
            return Node(name)
        node = self._named.get(f"{namespace}.{name}") if namespace and "." not in name else None
        if (node := node or self._named.get(name)) is None:
            raise SchemaRefused(f"is no Avro schema: has the type {name}, which is not there"[:150])
        return node

    def _record(self, given: Any, fields: list[Any], namespace: str) -> Node:
        nodes: dict[str, Node] = {}
        record = self._known(given, namespace, Node("record", fields=nodes))
        within = record.name.rpartition(".")[0]
        for each in fields:
            match each:
                case {"name": str(name), "type": kind}:
                    pass
                case _:
                    raise SchemaRefused(f"has a field without a name or a type: {each!r}"[:150])
            if name in nodes:
                raise SchemaRefused(f"has two fields named {name}"[:150])
            nodes[name] = self.node(kind, within)
        return record

    def _known(self, given: Any, namespace: str, node: Node) -> Node:
        """Return a named type, from now on known by its name."""
        match given:
            case {"name": str(name)}:
                pass
            case _:
                raise SchemaRefused(f"is no Avro schema: has a {node.kind} without a name")
        own = given.get("namespace", namespace)
        node.name = f"{own}.{name}" if own and isinstance(own, str) and "." not in name else name
        self._named[node.name] = node
        return node


def _logical(node: Node, given: Mapping[str, Any]) -> Node:
    """Return a type with its logical one, if that is valid; else Avro has it ignored."""
    match given.get("logicalType"), node.kind:
        case "date", "int":
            node.logical = "date"
        case str(name), "long" if name in TICKS or name in LOCAL_TICKS:
            node.logical = name
        case "decimal", "bytes" | "fixed":
            precision, scale = given.get("precision"), given.get("scale", 0)
            if type(precision) is int and type(scale) is int and 0 <= scale <= precision:
                # what the bytes can hold
                most = log10(2) * (8 * node.size - 1) if node.kind == "fixed" else precision
                if 0 < precision <= most:
                    node.logical, node.precision, node.scale = "decimal", precision, scale
    return node


def others(node: Node) -> list[Node]:
    """Return the branches of a union that are not null; of another type itself."""
    return [each for each in node.parts if each.kind != "null"] if node.kind == "union" else [node]


def only(node: Node) -> Node:
    """Return the only type of a union that may be null, through unions in unions."""
    while node.kind == "union" and len(rest := others(node)) == 1:
        node = rest[0]
    return node


def branch_names(node: Node) -> Mapping[str, Node]:
    """Return the records of a union of several, by name; none: it is no such union.

    They have the last parts of their names, unless two have the same.
    """
    records = others(node) if node.kind == "union" else []
    if len(records) <= 1 or any(each.kind != "record" for each in records):
        return {}
    short = {each.name.rpartition(".")[2]: each for each in records}
    return short if len(short) == len(records) else {each.name: each for each in records}


def row_fields(node: Node) -> Mapping[str, Node]:
    """Return the fields of what a struct is of: a record, or a union of several."""
    return node.fields if node.kind == "record" else branch_names(node)


def takes_nothing(node: Node, known: dict[int, bool]) -> bool:
    """Return whether values take no bytes: a few bytes could ask for 2**62 of them in a list.

    `known` is of records by identity, and grows.
    """
    match node.kind:
        case "null":
            return True
        case "fixed":
            return not node.size
        case "record":
            if id(node) not in known:
                known[id(node)] = True  # within itself it adds no byte
                parts = node.fields.values()
                known[id(node)] = all(takes_nothing(each, known) for each in parts)
            return known[id(node)]
        case _:
            return False


def plain_type(node: Node) -> ColumnType | None:
    """Return the column type of a type without parts, None of others; a null has none either."""
    match node.logical:
        case "date":
            return Simple("date")
        case "decimal" if node.scale > MOST_DIGITS:
            return Simple("string")
        case "decimal":
            return Decimal(min(node.precision, MOST_DIGITS), node.scale)
        case name if name in TICKS:
            return Simple("timestamp")
    return Simple(SIMPLE[node.kind]) if node.kind in SIMPLE else None


def common_type(branches: Sequence[Node]) -> ColumnType | None:
    """Return the type of a column of several, without a part lost; None: JSON alone has all."""
    if all(each.kind in NUMBERS and not each.logical for each in branches):
        widest = max(NUMBERS.index(each.kind) for each in branches)
        return Simple("double" if NUMBERS[widest] == "float" else SIMPLE[NUMBERS[widest]])
    kinds = {plain_type(each) for each in branches}
    return kinds.pop() if len(kinds) == 1 else None


class _Columns:
    """Makes the columns of one schema.

    Attributes:
        notes: Which fields have no column, or one of JSON, and why.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._nothing: dict[int, bool] = {}
        self._left = MOST_PARTS

    def row(self, node: Node, inside: tuple[Node, ...] = (), depth: int = 0) -> Columns:
        """Return the fields of a record, or of a union of several, as they are named in it."""
        columns = []
        within = (*inside, node)
        for name, each in row_fields(node).items():
            self._left -= 1
            if self._left < 0:
                raise SchemaRefused(f"has more than {MOST_PARTS} fields; `columns` can name some")
            kind, why = self._kind(each, within, depth)
            if kind is None and node.kind == "union":  # which record it was is something
                kind = Struct((IS_PRESENT,))
            elif why:
                what = "is left out" if kind is None else "is JSON as text"
                self.notes.append(f"{name} {what}: {why}")
            if kind is not None:
                columns.append(Column(name, kind))
        return tuple(columns)

    def _kind(
        self, node: Node, inside: tuple[Node, ...], depth: int
    ) -> tuple[ColumnType | None, str]:
        """Return the type of a column, None if there is nothing to store; and why not its own."""
        may_be_null, node = node.kind == "union", only(node)
        if (kind := plain_type(node)) is not None:
            return kind, ""
        if node in inside:
            return JSON_TEXT, f"it is a {node.name} within itself"
        if node.kind == "null" or not (some := others(node)):
            return None, "it has no value but null"
        if node.kind == "union" and not branch_names(node):
            kind = common_type(some)
            why = "" if kind else f"it is a union of {', '.join(map(str, some))}"
            return kind or JSON_TEXT, why
        if depth >= DEEPEST:
            return JSON_TEXT, f"it is nested more than {DEEPEST} deep"
        if node.kind in {"array", "map"}:
            return self._list(node, inside, depth)
        if fields := self.row(node, inside, depth + 1):
            return Struct(fields), ""
        present = Struct((IS_PRESENT,))
        return (present, "") if may_be_null else (None, "it is a record without fields")

    def _list(
        self, node: Node, inside: tuple[Node, ...], depth: int
    ) -> tuple[ColumnType | None, str]:
        if node.kind == "array" and takes_nothing(node.parts[0], self._nothing):
            return None, "it is a list of what takes no bytes"
        kind, why = self._kind(node.parts[0], inside, depth + 1)
        if kind is None:
            return JSON_TEXT, "its items have no column type"
        return Array(kind) if node.kind == "array" else Map(kind), why
