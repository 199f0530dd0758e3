"""Columns that JSON objects seem to have, and which of their fields are left out, and why.

What is inferred lands: a field gets a type only if every value that was seen fits it as consumers
read it, so that none of these objects would be a bad record.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from binwright.tables.columns import (
    OF_RECORD,
    Array,
    Column,
    Columns,
    ColumnType,
    Simple,
    Struct,
    folded,
)
from binwright.tables.connect_schemas import SCHEMA, Node, are_envelopes, column_type, places

MOST_FIELDS = 200
"""Different names in the objects of one place: more are keys of a map, rather than fields."""
DEEPEST = 8
"""Arrays and objects in each other, up to which columns have them as such."""
LONGEST_NAME = 128
BIGINT_END = 1 << 63
_WIDE, _ARRAY, _STRUCT = "an integer beyond 64 bits", "array", "struct"
_CHANGE = frozenset(["before", "after", "op"])
"""Fields of Debezium's changes: what is before one, and after it, has the same fields."""
_NUMBERS = frozenset(["bigint", "double"])

OF_CONNECT = (
    "Kafka Connect's, in each record; with value.converter.schemas.enable=false values are what is "
    "in payload, and its fields become columns"
)
Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A field that no column has."""

    path: str  # as in `by.items[].price`
    why: str


@dataclass(frozen=True, slots=True)
class Inferred:
    """What objects seem to have, in the order in which it was seen first."""

    columns: Columns
    left_out: tuple[LeftOut, ...] = ()


@dataclass(slots=True)
class _Inference:
    left_out: list[LeftOut] = field(default_factory=list)
    described: Mapping[str, Node] = field(default_factory=dict)
    """Place -> what a schema says of it, for values that are always null."""

    def fields(self, documents: Sequence[Document], path: str, depth: int) -> Columns:
        """Return the fields of the objects of one place."""
        there: dict[str, list[Any]] = {}
        for document in documents:
            for name, value in document.items():
                there.setdefault(name, []).append(value)
        if not there:
            return self._none(path, "only empty objects")
        if len(there) > MOST_FIELDS:
            return self._none(path, f"{len(there):,} different names: keys of a map, perhaps")
        return tuple(self._fields(there, path, depth))

    def _fields(
        self, there: Mapping[str, Sequence[Any]], path: str, depth: int
    ) -> Iterator[Column]:
        taken: dict[str, str] = {} if path else dict(OF_RECORD)
        for name, values in there.items():
            place = f"{path}.{name}" if path else name
            if not _can_be_named(name):
                self._none(place, "a column cannot have this name")
            elif (other := taken.setdefault(folded(name), name)) is not name:
                self._none(place, f"the name of {other}, but for upper and lower case")
            elif kind := self._type(
                [*there["after"], *there["before"]]
                if there.keys() >= _CHANGE and name in {"after", "before"}
                else values,
                place,
                depth,
            ):
                yield Column(name, kind)

    def _type(self, values: Sequence[Any], path: str, depth: int) -> ColumnType | None:
        """Return the type that all values have; None, with the reason noted: there is none."""
        there = [value for value in values if value is not None]
        kinds = Counter(map(_kind, there))
        if not there and (described := column_type(self.described.get(path))):
            return described
        if kinds.keys() == _NUMBERS:
            return Simple("double")
        if len(kinds) != 1 or _WIDE in kinds:
            seen = ", ".join(f"{kind} in {number}" for kind, number in kinds.most_common())
            self._none(path, seen or "only null")
            return None
        (kind,) = kinds
        if kind not in {_ARRAY, _STRUCT}:
            return Simple(kind)
        if depth == DEEPEST:
            self._none(path, f"more than {DEEPEST} deep")
            return None
        if kind == _ARRAY:
            return self._array([item for items in there for item in items], path, depth + 1)
        fields = self.fields(there, path, depth + 1)
        return Struct(fields) if fields else None

    def _array(self, items: Sequence[Any], path: str, depth: int) -> ColumnType | None:
        if not items and f"{path}[]" not in self.described:
            self._none(path, "only empty arrays")
            return None
        item = self._type(items, f"{path}[]", depth)
        return Array(item) if item else None

    def _none(self, path: str, why: str) -> Columns:
        self.left_out.append(LeftOut(path, why))
        return ()


def infer_columns(documents: Sequence[Document]) -> Inferred:
    """Return the columns of these objects, as orjson parses them; none where none is certain."""
    if not are_envelopes(documents):
        inference = _Inference()
        columns = inference.fields(documents, "", 0)
        return Inferred(columns, tuple(inference.left_out))
    newest = next((each for each in reversed(documents) if each[SCHEMA]), {SCHEMA: None})
    inference = _Inference([LeftOut(SCHEMA, OF_CONNECT)], places(newest))
    payloads = [{name: each[name] for name in each if name != SCHEMA} for each in documents]
    columns = inference.fields(payloads, "", 0)
    return Inferred(columns, tuple(inference.left_out))


def _kind(value: object) -> str:
    """Return the type of a value of JSON that is not null."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "bigint" if -BIGINT_END <= value < BIGINT_END else _WIDE
        case float():
            return "double"
        case str():
            return "string"
        case list():
            return _ARRAY
        case _:
            return _STRUCT


def _can_be_named(name: str) -> bool:
    return name.isprintable() and 0 < len(name) <= LONGEST_NAME
