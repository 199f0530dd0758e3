"""Conditions on a table's rows, as people write them: a part of Spark's SQL that can do no more.

Comparisons with literals, joined by AND, OR and NOT. Spark reads what is checked here as one
expression: there is no statement, subquery or comment in it, no function with effects, and none
whose result differs from one call to the next.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from binwright.tables.columns import KAFKA

Path = tuple[str, ...]

FUNCTIONS = (
    "array_contains",
    "coalesce",
    "contains",
    "element_at",
    "endswith",
    "get_json_object",
    "hex",
    "length",
    "lower",
    "sha2",
    "startswith",
    "string",
    "substring",
    "timestamp_millis",
    "to_date",
    "to_timestamp",
    "trim",
    "try_cast",
    "upper",
)
TYPES = frozenset({"string", "int", "bigint", "double", "date", "timestamp", "boolean", "binary"})
WORDS = frozenset({"and", "or", "not", "in", "is", "null", "like", "ilike", "rlike", "between"}) | {
    "true",
    "false",
    "as",
}
LITERALS = frozenset({"date", "timestamp", "x"})
"""In front of a text: of a date, of a time, of bytes."""
OTHERS = frozenset({"select", "from", "exists", "with", "values", "table", "case", "interval"})
MOST_LISTED = 30

_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`)"
_TOKEN = re.compile(
    rf"""(?P<text>'(?:[^'\\]|\\.)*')
       | (?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?L?(?![A-Za-z0-9_.]))
       | (?P<path>{_NAME}(?:\.{_NAME})*)
       | (?P<mark><=>|<=|>=|<>|!=|==|[=<>(),])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was checked; `text` is Spark's SQL."""

    text: str
    columns: tuple[Path, ...] = field(compare=False)  # that it names, with fields of structs

    @property
    def is_of_records(self) -> bool:
        """Whether it is on a record's place alone, which rows and bad records both have."""
        return all(path[0].lower() == KAFKA for path in self.columns)

    def check(self, table: str, there: Collection[str]) -> None:
        """Check that a table has the columns; raise `ValueError`, which names what is wrong."""
        known = {name.lower() for name in there}
        for path in self.columns:
            if path[0].lower() not in known:
                listed = ", ".join([*there][:MOST_LISTED])
                more = ", …" if len(there) > MOST_LISTED else ""
                raise ValueError(
                    f"{self.text!r}: {table} has no column {path[0]}; it has: {listed}{more}"
                )


def parse_condition(text: str) -> Condition:
    """Check a condition.

    Raises:
        ValueError: It is none, or has what conditions here have not; says what, and what they have.
    """
    columns, depth, tokens = list[Path](), 0, [*_tokens(text)]
    following = [value for _, value in (*tokens, ("", ""))][1:]
    before = ""
    for (kind, value), after in zip(tokens, following, strict=True):
        depth += (value == "(") - (value == ")")
        if depth < 0:
            raise ValueError(f"{text!r}: a parenthesis is closed that was not opened")
        if kind == "path":
            word = value.lower()
            if before == "as" and word not in TYPES:
                raise ValueError(f"{text!r}: no type {value}; there are: {_listed(TYPES)}")
            if before != "as" and not _is_word(word, after):
                if word in OTHERS or (after == "(" and word not in FUNCTIONS):
                    raise ValueError(
                        f"{text!r}: no {value} in a condition: comparisons of columns with "
                        f"literals, AND, OR, NOT, and the functions {_listed(FUNCTIONS)}"
                    )
                if after != "(":
                    columns.append(_path(value))
        before = value.lower()
    if depth:
        raise ValueError(f"{text!r}: a parenthesis is not closed")
    if not columns:
        raise ValueError(f"{text!r}: it names no column, so it would mean all rows, or none")
    return Condition(text, tuple(dict.fromkeys(columns)))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(
                f"{text!r}: {rest[:20]!r} is no part of a condition: texts are in single quotes, "
                "other names in backquotes"
            )
        yield str(found.lastgroup), found[0]
        at = found.end()


def _is_word(word: str, after: str) -> bool:
    return word in WORDS or (word in LITERALS and after.startswith("'"))


def _path(text: str) -> Path:
    names = re.findall(_NAME, text)
    return tuple(name[1:-1].replace("``", "`") if name.startswith("`") else name for name in names)


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
