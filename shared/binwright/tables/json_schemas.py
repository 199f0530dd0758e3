"""JSON Schemas: what they say of values, as columns.

Drafts 4 to 2020-12, as far as they say of what types values are. What else they ask of a value,
as its length or its bounds, does not change a type: a wider bound would be another column.

A schema comes from a registry to which others may write: its size, and that of its columns, are
bounded.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from binwright.tables.columns import (
    DEEPEST,
    JSON,
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
from binwright.tables.json_documents import Documents, Node, Resource
from binwright.tables.json_unions import all_of, either, one_of
from binwright.tables.schemas import NoColumn, SchemaRefused, SchemaTooLarge

MOST_PARTS = 10_000  # schemas within one, each as often as it is referred to
MOST_WORK = 100_000  # fields that come from several schemas, tens of items, thousands of characters
LONGEST_PATH = 100  # of schemas within each other
_SHOWN = 60  # characters of a name
TYPES = frozenset(["array", "boolean", "integer", "null", "number", "object", "string"])
_TOGETHER = ("allOf", "oneOf", "anyOf")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
INTEGERS = {f"int{bits}": Simple("int") for bits in (8, 16, 32)}
FORMATS = {"date-time": Simple("timestamp"), "date": Simple("date")}
_DIGITS = re.compile(r"[0-9]{1,2}")

Within = tuple[int, ...]
"""The schemas around one, by their identities."""
Part = Callable[..., ColumnType | None]
"""Returns the type of values of a schema within one; of a property, if it has that name."""


class JsonSchema:
    """One schema: of the records that name its id.

    Attributes:
        notes: Which properties are of any JSON because their own schema has no column, and why.
    """

    def __init__(
        self, text: str, references: Mapping[str, str] | None = None, *, is_whole: bool = False
    ) -> None:
        """Parse a schema; that takes up to a second.

        Args:
            text: The schema.
            references: Those that it uses, by the names it has for them.
            is_whole: Whether a part that is no schema refuses the whole: a person can mend it.

        Raises:
            SchemaRefused: It is no JSON.
        """
        documents = Documents(text, references or {})
        self._columns: Columns | SchemaRefused
        made = _Columns(documents, is_whole=is_whole)
        try:
            self._columns = made.table()
        except SchemaRefused as exc:
            self._columns = exc
        self.notes: tuple[str, ...] = tuple(made.notes)

    @property
    def columns(self) -> Columns:
        """Return the columns of all that it has, some of type `JSON`; raise `SchemaRefused`."""
        if isinstance(self._columns, SchemaRefused):
            raise SchemaRefused(str(self._columns))
        return self._columns


class _Columns:
    """Makes the columns of one schema.

    A type is None where a schema allows no value but null, and `JSON` where it allows several.
    """

    def __init__(self, documents: Documents, *, is_whole: bool) -> None:
        self.notes: list[str] = []
        self._documents, self._left = documents, MOST_PARTS
        self._work_left, self._is_whole = MOST_WORK, is_whole

    def table(self) -> Columns:
        """Return the columns of all that the schema has; raise `SchemaRefused`."""
        top = self._documents.top
        kind = self.kind(top.root, top, (), 0)
        if not isinstance(kind, Struct):
            raise SchemaRefused("describes no object with properties")
        return in_table(kind.fields)

    def kind(self, node: Node, around: Resource, within: Within, depth: int) -> ColumnType | None:
        """Return the type of values of a schema, which lies in others, and so deep in columns."""
        kind = self._unconditional(node, around, within, depth)
        if not isinstance(node, dict) or not (isinstance(kind, Struct) or _may_be_object(node)):
            return kind
        place, inside = self._documents.entered(node, around), (*within, id(node))
        some = [self.kind(each, place, inside, depth) for each in _conditional(node)]
        structs = [each for each in some if isinstance(each, Struct)]
        return self._merged(all_of([kind, either(structs)])) if structs else kind

    def _unconditional(
        self, node: Node, around: Resource, within: Within, depth: int
    ) -> ColumnType | None:
        """Return the type of a schema without those parts that hold for some objects only."""
        self._check_bounds(within, depth)
        if isinstance(node, bool):
            return JSON if node else None
        if not isinstance(node, dict):
            raise SchemaRefused("has no object where a schema must be")
        self._spend(_work_of(node))
        place, inside = self._documents.entered(node, around), (*within, id(node))

        def part(each: Node, name: str | None = None) -> ColumnType | None:
            return self._part(each, name, place, inside, depth + 1)

        def branch(each: Node) -> ColumnType | None:
            return self.kind(each, place, inside, depth)

        def member(each: Node) -> ColumnType | None:
            return self._unconditional(each, place, inside, depth)

        referred = (
            self._referred(node[key], place, inside, depth) for key in _REFERENCES if key in node
        )
        kind = all_of([_own(node, part), *referred, *map(member, _list(node, "allOf"))])
        for key in ("oneOf", "anyOf"):
            if branches := _list(node, key):
                kind = one_of(kind, [*map(branch, branches)])
        return self._merged(kind) if any(key in node for key in _TOGETHER) else kind

    def _part(
        self, node: Node, name: str | None, around: Resource, within: Within, depth: int
    ) -> ColumnType | None:
        """Return the type of what is in an object or a list; of a property without one `JSON`."""
        try:
            kind = self.kind(node, around, within, depth)
            if depth > DEEPEST and isinstance(kind, Array | Map | Struct):
                raise NoColumn(f"is nested more than {DEEPEST} deep")
        except SchemaTooLarge:
            raise
        except SchemaRefused as exc:
            if name is None:
                raise
            if self._is_whole and not isinstance(exc, NoColumn):
                raise SchemaRefused(f"{name[:_SHOWN]}: {exc}") from None
            self.notes.append(f"{name[:_SHOWN]} is JSON as text: it {exc}")
            return JSON
        return kind

    def _merged(self, kind: ColumnType | None) -> ColumnType | None:
        """Return a type that several schemas made."""
        self._spend(_fields_in(kind))
        return kind

    def _spend(self, work: int) -> None:
        self._work_left -= work
        if self._work_left < 0:
            raise SchemaTooLarge("takes too long to read: its parts are large, or often merged")

    def _check_bounds(self, within: Within, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise SchemaTooLarge(f"has more than {MOST_PARTS} parts")
        if depth > DEEPEST + 1 or len(within) > LONGEST_PATH:
            raise NoColumn(f"is nested more than {DEEPEST} deep")

    def _referred(
        self, reference: Node, resource: Resource, within: Within, depth: int
    ) -> ColumnType | None:
        node, place = self._documents.find(reference, resource)
        if id(node) in within:
            raise NoColumn(f"has {reference[:_SHOWN]} within itself")
        return self.kind(node, place, within, depth)


# --- parts ---------------------------------------------------------------------------------------


def _own(node: dict[str, Node], part: Part) -> ColumnType | None:
    """Return the type that a schema itself names."""
    types = _types(node)
    if types is None:
        return JSON
    types = types - {"null"} - ({"integer"} if "number" in types else set())
    if len(types) != 1:
        return JSON if types else None
    match next(iter(types)):
        case "object":
            return _object(node, part)
        case "array":
            return _array(node, part)
        case name:
            return _scalar(name, node)


def _object(node: dict[str, Node], part: Part) -> ColumnType | None:
    if properties := _object_of(node, "properties"):
        fields = []
        for name, each in properties.items():
            if (kind := part(each, name)) is not None:
                fields.append(Column(name, kind))
        return Struct(tuple(fields)) if fields else None
    others = node.get("additionalProperties", True)
    values = [*_object_of(node, "patternProperties").values()]
    return _of_items([*values, *([] if others is False else [others])], part, Map, None)


def _array(node: dict[str, Node], part: Part) -> ColumnType | None:
    items = node.get("items", True)
    if isinstance(items, list):  # one for each place, before 2020
        items = [*items, node.get("additionalItems", False)]
    elif "prefixItems" in node:
        items = [*_list(node, "prefixItems"), node.get("items", False)]
    else:
        items = [items]
    return _of_items(items, part, Array, JSON)


def _of_items(
    items: Iterable[Node],
    part: Part,
    made: Callable[[ColumnType], ColumnType],
    empty: ColumnType | None,
) -> ColumnType | None:
    """Return a list or a map, `JSON` if its items have no single type."""
    kinds = [kind for each in items if (kind := part(each)) is not None]
    if not kinds:
        return empty
    kind = either(kinds)
    return JSON if kind == JSON else made(kind)


def _types(node: dict[str, Node]) -> frozenset[str] | None:
    """Return the types that a schema allows; None: all."""
    match node:
        case {"type": [*named]}:
            types = named
        case {"type": named}:
            types = [named]
        case {"enum": [*values]}:
            types = [*map(_type_of, values)]
        case {"const": value}:
            types = [_type_of(value)]
        case {"properties": _} | {"patternProperties": _} | {"additionalProperties": _}:
            types = ["object"]
        case {"items": _} | {"prefixItems": _}:
            types = ["array"]
        case _:
            return None
    for each in types:
        if not isinstance(each, str) or each not in TYPES:
            raise SchemaRefused(f"has the type {each!r}"[:_SHOWN] + ", which no value has")
    return frozenset(types)


def _type_of(value: Node) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _scalar(name: str, node: dict[str, Node]) -> ColumnType:
    match name:
        case "integer":
            return INTEGERS.get(str(node.get("connect.type")), Simple("bigint"))
        case "number":
            return _number(node)
        case "boolean":
            return Simple("boolean")
        case _:
            if node.get("connect.type") == "bytes":
                return Simple("binary")
            return FORMATS.get(str(node.get("format")), Simple("string"))


def _number(node: dict[str, Node]) -> ColumnType:
    """Return the type of a number, which Connect's converter says more of."""
    if node.get("connect.type") == "float32":
        return Simple("float")
    if node.get("title") != "org.apache.kafka.connect.data.Decimal":
        return Simple("double")
    parameters = _object_of(node, "connect.parameters")
    digits = parameters.get("connect.decimal.precision", str(MOST_DIGITS)), parameters.get("scale")
    if not all(isinstance(each, str) and _DIGITS.fullmatch(each) for each in digits):
        raise NoColumn("is a decimal without a scale")
    precision, scale = map(int, digits)
    if not 0 <= scale <= min(precision, MOST_DIGITS) or not precision:
        raise NoColumn(f"is a decimal({precision},{scale}), which no column has")
    return Decimal(min(precision, MOST_DIGITS), scale)


def _may_be_object(node: dict[str, Node]) -> bool:
    types = _types(node)
    return types is None or types - {"null"} == {"object"}


def _conditional(node: dict[str, Node]) -> list[Node]:
    """Return the schemas that hold for some objects: those of a schema, and of its `allOf`."""
    schemas = [node[key] for key in ("then", "else") if key in node and "if" in node]
    for key in ("dependentSchemas", "dependencies"):
        schemas += [each for each in _object_of(node, key).values() if not isinstance(each, list)]
    for each in _list(node, "allOf"):
        schemas += _conditional(each) if isinstance(each, dict) else []
    return schemas


def _list(node: dict[str, Node], key: str) -> list[Node]:
    items = node.get(key, [])
    if not isinstance(items, list):
        raise SchemaRefused(f"has {key}, which is no array")
    return items


def _object_of(node: dict[str, Node], key: str) -> dict[str, Node]:
    members = node.get(key, {})
    if not isinstance(members, dict):
        raise SchemaRefused(f"has {key}, which is no object")
    return members


def _work_of(node: dict[str, Node]) -> int:
    items = sum(len(each) for each in node.values() if isinstance(each, list | dict))
    characters = sum(len(each) for each in node.values() if isinstance(each, str))
    return (len(node) + items) // 10 + characters // 1_000


def _fields_in(kind: ColumnType | None) -> int:
    match kind:
        case Struct(fields):
            return sum(1 + _fields_in(field.type) for field in fields)
        case Array(inner) | Map(inner):
            return _fields_in(inner)
        case _:
            return 0
