"""What the schema beside a value of Kafka Connect's JSON says of its parts: `schema`, `payload`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from binwright.tables.columns import Array, Column, ColumnType, Map, Simple, Struct

Node = Any
"""A part of such a schema, as JSON has it."""
SCHEMA, PAYLOAD = "schema", "payload"
MOST_DEEP = 8  # parts in each other that are looked at
MOST_PARTS = 10_000
_SIMPLE = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def are_envelopes(documents: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether all of these objects are envelopes of a schema and its payload."""
    return bool(documents) and all(
        document.keys() == {SCHEMA, PAYLOAD}
        and (document[SCHEMA] is None or _is_schema(document[SCHEMA]))
        for document in documents
    )


def _is_schema(node: Node) -> bool:
    return isinstance(node, dict) and isinstance(node.get("type"), str)


def places(document: Mapping[str, Any]) -> Mapping[str, Node]:
    """Return the parts of an envelope's schema by the place of what they describe.

    As in `payload.items[].price`: the first ones, if there are very many.
    """
    nodes: dict[str, Node] = {}
    for place, node in _places(PAYLOAD, document[SCHEMA], MOST_DEEP):
        if len(nodes) == MOST_PARTS:
            break
        nodes[place] = node
    return nodes


def _places(path: str, node: Node, deep: int) -> Iterator[tuple[str, Node]]:
    if not _is_schema(node):
        return
    yield path, node
    if deep:
        for name, part in _fields(node):
            yield from _places(f"{path}.{name}", part, deep - 1)
        yield from _places(f"{path}[]", node.get("items"), deep - 1)


def _fields(node: Node) -> Iterator[tuple[str, Node]]:
    fields = node.get("fields")
    for part in fields if isinstance(fields, list) else ():
        if isinstance(part, dict) and isinstance(part.get("field"), str):
            yield part["field"], part


def column_type(node: Node, deep: int = MOST_DEEP) -> ColumnType | None:
    """Return the type of a column of what a part describes; None: there is none that is certain.

    Bytes are base64; a decimal is that or a number, by a setting of the converter.
    """
    if not _is_schema(node) or not deep:
        return None
    match node["type"]:
        case "bytes" if node.get("name") != _DECIMAL:
            return Simple("binary")
        case "array":
            item = column_type(node.get("items"), deep - 1)
            return item and Array(item)
        case "map" if _is_schema(keys := node.get("keys")) and keys["type"] == "string":
            value = column_type(node.get("values"), deep - 1)
            return value and Map(value)
        case "struct":
            types = {name: column_type(part, deep - 1) for name, part in _fields(node)}
            names = {name.casefold() for name in types}
            if not types or len(names) < len(types) or None in types.values():
                return None
            return Struct(tuple(Column(name, kind) for name, kind in types.items() if kind))
        case name:
            return Simple(_SIMPLE[name]) if name in _SIMPLE else None
