"""The columns of a table, as its settings name them: names and SQL types.

The text is that of a Spark schema: `id BIGINT, item STRING, tags ARRAY<STRING>, at TIMESTAMP`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NoReturn

KAFKA = "_kafka"
"""The table's first column: a struct of the record's place, time, key and headers."""

KAFKA_KEY = "_kafka_key"
"""The column of keys, where a table has them decoded."""

KAFKA_DATE = "_kafka_date"
"""The column of the record's day, UTC, by which a table may be partitioned."""

OF_RECORD = {
    KAFKA: "the record's place in Kafka",
    KAFKA_KEY: "the record's key",
    KAFKA_DATE: "the record's day",
}
"""Names that no column of a value has -> what they are of the record."""

VARIANT = "variant"
"""The type of any JSON value; of a column of its own, not of parts of one."""

SIMPLE = frozenset(
    [
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
    ]
)
ALIASES = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
ALIASES |= {"real": "float", "bool": "boolean"}
_WITHOUT_ORDER = frozenset(["boolean", "binary", VARIANT])
_STEP = re.compile(r"(`(?:[^`]|``)+`|[^`.]+)(\.|\Z)")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|\w+|[<>(),:])")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED = re.compile(r"[ ,;{}()\n\t=]")
"""What Parquet refuses in names."""
LONGEST_NAME = 1_000  # characters
_NUMBER = re.compile(r"[0-9]{1,9}")
DEEPEST, MOST_DIGITS = 32, 38


@dataclass(frozen=True, slots=True)
class Simple:
    """A type without parts: one of `SIMPLE`, or `VARIANT`."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal number."""

    precision: int  # digits, 1 to 38
    scale: int  # of them behind the point

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class Array:
    """A list of values of one type."""

    item: "ColumnType"

    def __str__(self) -> str:
        return f"array<{self.item}>"


@dataclass(frozen=True, slots=True)
class Map:
    """Values of one type by text."""

    value: "ColumnType"

    def __str__(self) -> str:
        return f"map<string,{self.value}>"


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields."""

    fields: "Columns"

    def __str__(self) -> str:
        return f"struct<{','.join(f'{quoted(f.name)}:{f.type}' for f in self.fields)}>"


ColumnType = Simple | Decimal | Array | Map | Struct


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct; it may be NULL."""

    name: str
    type: ColumnType
    field: str | None = field(default=None, compare=False)
    """The name of the field in values, where no column may have it; None: that of the column."""

    @property
    def named(self) -> str:
        """Return the name of the field in values."""
        return self.name if self.field is None else self.field


Columns = tuple[Column, ...]
JSON = Simple("json")
"""The type of fields of JSON without one type: stored as text of JSON. No text names it."""


REST = Column("_rest", Simple("string"))
"""The column of the fields of a JSON object that no other column has, as JSON."""


def stored(columns: Columns) -> Columns:
    """Return columns as a table has them: text for `JSON`."""
    return tuple(replace(column, type=_stored(column.type)) for column in columns)


def _stored(kind: ColumnType) -> ColumnType:
    match kind:
        case Array(item):
            return Array(_stored(item))
        case Map(value):
            return Map(_stored(value))
        case Struct(fields):
            return Struct(stored(fields))
        case _:
            return Simple("string") if kind == JSON else kind


def folded(name: str) -> str:
    """Return a name by which Spark takes two for the same: whatever their case.

    It compares upper and lower case letter by letter; this takes a few more for the same.
    """
    return name.upper().casefold().replace("i\u0307", "i")


def column_names(names: Iterable[str], taken: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the columns of fields with these names, none of them twice.

    A field whose name a column may have keeps it. In others what none may have is `_`. What would
    have the name of another, or one that is taken, whatever its case, gets a number behind it.
    """
    fields = [*names]
    used, counts = set(taken), dict[str, int]()
    columns: list[str] = []
    for name in fields:
        keeps = _cleaned(name) == name and folded(name) not in used
        used.update([folded(name)] if keeps else [])
        columns.append(name if keeps else "")
    for place, name in enumerate(fields):
        if not columns[place]:
            columns[place] = base = _cleaned(name)
            while folded(columns[place]) in used:
                counts[base] = counts.get(base, 1) + 1
                columns[place] = f"{base}_{counts[base]}"
            used.add(folded(columns[place]))
    return tuple(columns)


def _cleaned(name: str) -> str:
    """Return a name with `_` for what no column's name may have."""
    whole = RESERVED.sub("_", name[:LONGEST_NAME]) or "_"
    if whole.isprintable():
        return whole
    return "".join(character if character.isprintable() else "_" for character in whole)


def in_table(columns: Columns, taken: Iterable[str] = OF_RECORD) -> Columns:
    """Return columns, and the fields of their structs, under names that a table can have."""
    return _renamed([replace(each, type=_in_table(each.type)) for each in columns], taken)


def in_values(columns: Columns) -> Columns:
    """Return columns under the names of their fields in values."""
    return tuple(Column(column.named, _in_values(column.type)) for column in columns)


def _in_values(kind: ColumnType) -> ColumnType:
    match kind:
        case Array(item):
            return Array(_in_values(item))
        case Map(value):
            return Map(_in_values(value))
        case Struct(fields):
            return Struct(in_values(fields))
        case _:
            return kind


def _renamed(columns: Sequence[Column], taken: Iterable[str]) -> Columns:
    fields = [column.named for column in columns]
    return tuple(
        Column(name, column.type, None if name == was else was)
        for name, was, column in zip(column_names(fields, taken), fields, columns, strict=True)
    )


def _in_table(kind: ColumnType) -> ColumnType:
    match kind:
        case Array(item):
            return Array(_in_table(item))
        case Map(value):
            return Map(_in_table(value))
        case Struct(fields):
            return Struct(in_table(fields, ()))
        case _:
            return kind


def quoted(name: str) -> str:
    """Return a name as SQL takes it."""
    return name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


def columns_text(columns: Columns) -> str:
    """Return the text of columns, which `parse_columns` reads."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)


def parse_path(text: str) -> tuple[str, ...]:
    """Return the names of a path: of a column, then of fields within it, as in `by.name`.

    Raises:
        ValueError: It is malformed.
    """
    steps, end = [], 0
    while match := _STEP.match(text, end):
        name, end = match[1], match.end()
        steps.append(name[1:-1].replace("``", "`") if name.startswith("`") else name)
        if not match[2]:
            return tuple(steps)
    raise ValueError(f"{text!r} is no column, nor a field as in `column.field`")


def path_text(path: Sequence[str]) -> str:
    """Return the text of a path, which `parse_path` and SQL read."""
    return ".".join(map(quoted, path))


def type_at(columns: Columns, path: Sequence[str]) -> ColumnType | None:
    """Return the type of a column, or of a field within structs, whatever the names' case."""
    here: ColumnType | None = Struct(columns)
    for name in path:
        fields = here.fields if isinstance(here, Struct) else ()
        here = next((f.type for f in fields if folded(f.name) == folded(name)), None)
    return here


def is_variant(column: Column) -> bool:
    """Return whether a column has any JSON value: as text where it is staged."""
    return column.type == Simple(VARIANT)


def has_order(kind: ColumnType) -> bool:
    """Return whether files can show the least and greatest of such values."""
    if isinstance(kind, Simple):
        return kind.name not in _WITHOUT_ORDER
    return isinstance(kind, Decimal)


def parse_columns(text: str) -> Columns:
    """Return the columns that a text names.

    Raises:
        ValueError: It is malformed, or names a type that there is not; says where.
    """
    columns = parse_row(text)
    if taken := [c.name for c in columns if c.name.casefold() in OF_RECORD]:
        raise ValueError(
            f"the column {taken[0]} is {OF_RECORD[taken[0].casefold()]}; use another name"
        )
    return columns


@lru_cache(maxsize=1_000)
def parse_row(text: str) -> Columns:
    """Return the columns that a text names, also that of keys; raise as `parse_columns` does."""
    return _Parser(text).fields("")


def known_columns(text: object) -> Columns:
    """Return the columns that a text names; none, where a later version may have written it."""
    try:
        row = text.decode() if isinstance(text, bytes) else text
        return parse_row(row) if isinstance(row, str) and row else ()
    except ValueError:
        return ()


def parse_type(text: str) -> ColumnType:
    """Return the type that a text names; raise `ValueError` if it names none."""
    return parse_row(f"x {text}")[0].type


class _Parser:
    """Reads tokens of one text in turn."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._here = ""
        self._next()

    def fields(self, end: str) -> Columns:
        """Return the fields up to a token; "": the end of the text."""
        columns: list[Column] = []
        while self._here != end:
            if columns:
                self._take(",")
            token = self._word("a name")
            name = token[1:-1].replace("``", "`") if token.startswith("`") else token
            if self._here == ":":
                self._next()
            columns.append(Column(name, self._type()))
        if not columns:
            raise ValueError("names no column" if not end else "a struct names no field")
        names = Counter(folded(column.name) for column in columns)
        if doubled := sorted(name for name, count in names.items() if count > 1):
            raise ValueError(f"names {doubled[0]} twice; upper and lower case count as the same")
        if any(RESERVED.search(column.name) for column in columns):
            return _renamed(columns, ())
        return tuple(columns)

    def _type(self) -> ColumnType:
        token = self._word("a type").lower()
        name = ALIASES.get(token, token)
        if name in SIMPLE:
            return Simple(name)
        if name == VARIANT:
            return self._variant()
        if name in {"decimal", "numeric"}:
            return self._decimal()
        if name not in {"array", "map", "struct"}:
            raise ValueError(
                f"there is no type {token!r}: {', '.join(sorted(SIMPLE))}, "
                "decimal(p,s), array<…>, map<string,…>, struct<…> or variant"
            )
        self._depth += 1
        if self._depth > DEEPEST:
            raise ValueError(f"types lie more than {DEEPEST} deep in each other")
        self._take("<")
        made = self._parts(name)
        self._take(">")
        self._depth -= 1
        return made

    def _variant(self) -> Simple:
        if self._depth:
            raise ValueError("VARIANT is the type of a whole column, not of parts of one")
        return Simple(VARIANT)

    def _parts(self, name: str) -> ColumnType:
        if name == "array":
            return Array(self._type())
        if name == "struct":
            return Struct(self.fields(">"))
        if self._type() != Simple("string"):
            raise ValueError("the keys of a map must be string")
        self._take(",")
        return Map(self._type())

    def _decimal(self) -> Decimal:
        if self._here != "(":
            return Decimal(10, 0)
        self._next()
        precision, scale = self._number(), 0
        if self._here == ",":
            self._next()
            scale = self._number()
        self._take(")")
        if not 1 <= precision <= MOST_DIGITS or scale > precision:
            raise ValueError(f"there is no decimal({precision},{scale})")
        return Decimal(precision, scale)

    def _number(self) -> int:
        token = self._word("a number")
        if not _NUMBER.fullmatch(token):
            self._fail("a number", token)
        return int(token)

    def _word(self, wanted: str) -> str:
        here = self._here
        if not here or here in "<>(),:":
            self._fail(wanted, here)
        self._next()
        return here

    def _take(self, token: str) -> None:
        if self._here != token:
            self._fail(repr(token), self._here)
        self._next()

    def _next(self) -> None:
        if match := _TOKEN.match(self._text, self._at):
            self._here, self._at = match[1], match.end()
        elif rest := self._text[self._at :].strip():
            self._fail("a name or a type", rest[:20])
        else:
            self._here, self._at = "", len(self._text)

    def _fail(self, wanted: str, token: str) -> NoReturn:
        there = repr(token) if token else "its end"
        raise ValueError(f"needs {wanted} before character {self._at}, and has {there}")


MEASURED = parse_columns("partition INT, offset BIGINT, timestamp TIMESTAMP")
"""What of the record's place files have statistics of: what people filter by.

The topic is the same in all rows, and its statistics cost the most.
"""
