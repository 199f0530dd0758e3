"""Conditions on a table's rows, as people write them: a part of Spark's SQL that can do no more.

    condition = part {OR part}          part = term {AND term}          term = {NOT} predicate
    predicate = value [ comparison value | IS [NOT] (NULL | TRUE | FALSE)
                      | [NOT] (IN "(" value {"," value} ")" | (LIKE | ILIKE | RLIKE) value
                              | BETWEEN value AND value) ]
    value = "(" condition ")" | function "(" [condition {"," condition}] ")"
          | TRY_CAST "(" condition AS type ")" | column {"." field} | number | NULL | TRUE | FALSE
          | [DATE | TIMESTAMP | X] text

Spark is given what was read here, written anew: each name in backquotes, each text in quotes that
mean the same to all of Spark's parsers. So it reads one expression: there is no statement, subquery
or comment in it, no function with effects, and none whose result differs from one call to the next.
"""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

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
LITERALS = ("date", "timestamp", "x")
"""In front of a text: of a date, of a time, of bytes."""
CONSTANTS = ("null", "true", "false")
LIKES = ("like", "ilike", "rlike")
WORDS = frozenset({"and", "or", "not", "in", "is", "between", "as", *LIKES, *CONSTANTS})
"""They name a column in backquotes alone."""
COMPARISONS = ("<=>", "<=", ">=", "<>", "!=", "==", "=", "<", ">")
MOST_LISTED, MOST_NESTED = 30, 50

_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*|`(?:[^`]|``)+`)"
_TOKEN = re.compile(
    rf"""(?P<text>'(?:[^'\\]|\\.|'')*')
       | (?P<number>-?[0-9]+(?:L|(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_.]))
       | (?P<path>{_NAME}(?:\.{_NAME})*)
       | (?P<mark><=>|<=|>=|<>|!=|==|[=<>(),])""",
    re.VERBOSE | re.DOTALL,
)
_UNIT = re.compile(r"\\.|''|.", re.DOTALL)
_UNITS = {"''": r"\'", "$": r"\u0024", r"\$": r"\u0024"}
"""Parts of a text as they are given to Spark, which puts its settings in place of `${...}`."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that was read; `text` is what Spark is given."""

    text: str
    columns: tuple[Path, ...] = field(compare=False)  # that it names, with fields of structs

    @property
    def is_of_records(self) -> bool:
        """Whether it is on a record's place alone, which rows and bad records both have."""
        return all(path[0].lower() == KAFKA for path in self.columns)

    def check(self, table: str, there: Collection[str]) -> None:
        """Check that a table has the columns.

        Raises:
            ValueError: One is not there. It says which by its number: what was written for a name
                may be a value whose quotes were left out.
        """
        known = {name.lower() for name in there}
        for number, path in enumerate(self.columns, 1):
            if path[0].lower() not in known:
                listed = ", ".join([*there][:MOST_LISTED])
                more = ", …" if len(there) > MOST_LISTED else ""
                raise ValueError(
                    f"name {number} in it is no column of {table}, which has: {listed}{more}"
                )


def parse_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        ValueError: It is none, or has what conditions here have not; quotes it, and says what.
    """
    try:
        return _Reader([*_tokens(text)]).whole()
    except ValueError as exc:
        raise ValueError(f"{text!r}: {exc}") from exc


class _Token(NamedTuple):
    kind: str  # text, number, path, mark, or end
    value: str

    @property
    def word(self) -> str:
        """Return it as keywords are compared."""
        return self.value.lower() if self.kind in {"path", "mark"} else ""


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        if (match := _TOKEN.match(text, at)) is None:
            raise ValueError(
                f"{rest[:20]!r} is no part of a condition: texts are in single quotes, "
                "other names in backquotes"
            )
        yield _Token(str(match.lastgroup), match[0])
        at = match.end()
    yield _Token("end", "")


class _Reader:
    """Reads tokens by the grammar, a method for each rule: each returns what Spark is given."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.columns: list[Path] = []
        self._tokens, self._at, self._nested = tokens, 0, 0

    @property
    def next(self) -> _Token:
        """Return the token that is read next."""
        return self._tokens[self._at]

    def unexpected(self, wanted: str) -> ValueError:
        """Return the error of what comes next, where something else must."""
        behind = f" behind {self._tokens[self._at - 1].value}" if self._at else ""
        return ValueError(f"{self.next.value or 'its end'}{behind}, and not {wanted}")

    def whole(self) -> Condition:
        sql = self.condition()
        if self.next.kind != "end":
            raise self.unexpected("AND, OR, or the end")
        if not self.columns:
            raise ValueError("it names no column, so it would mean all rows, or none")
        return Condition(sql, tuple(dict.fromkeys(self.columns)))

    def condition(self) -> str:
        return self._joined("OR", lambda: self._joined("AND", self._term))

    def _joined(self, word: str, part: Callable[[], str]) -> str:
        parts = [part()]
        while self._take(word.lower()):
            parts.append(part())
        return f" {word} ".join(parts)

    def _term(self) -> str:
        negations = 0
        while self._take("not"):
            negations += 1
        return "NOT " * negations + self._predicate()

    def _predicate(self) -> str:
        value = self._value()
        if mark := self._take(*COMPARISONS):
            return f"{value} {mark} {self._value()}"
        if self._take("is"):
            negated = "NOT " if self._take("not") else ""
            return f"{value} IS {negated}{self._wanted(*CONSTANTS).upper()}"
        negated = " NOT" if self._take("not") else ""
        if self._take("in"):
            self._wanted("(")
            return f"{value}{negated} IN ({self._listed(self._value)})"
        if like := self._take(*LIKES):
            return f"{value}{negated} {like.upper()} {self._value()}"
        if self._take("between"):
            least = self._value()
            self._wanted("and")
            return f"{value}{negated} BETWEEN {least} AND {self._value()}"
        if negated:
            raise self.unexpected("IN, LIKE or BETWEEN")
        return value

    def _value(self) -> str:
        self._nested += 1
        if self._nested > MOST_NESTED:
            raise ValueError(f"more than {MOST_NESTED} parentheses are within each other")
        value = self._atom()
        self._nested -= 1
        return value

    def _atom(self) -> str:
        token = self.next
        if self._take("("):
            return f"({self._closed(self.condition())})"
        if constant := self._take(*CONSTANTS):
            return constant.upper()
        if token.kind in {"end", "mark"} or token.word in WORDS:
            raise self.unexpected("a column, a text, a number or a function")
        self._at += 1
        if token.kind == "number":
            return token.value
        if token.kind == "text":
            return _quoted(token.value)
        if token.word in LITERALS and self.next.kind == "text":
            self._at += 1
            return f"{token.value.upper()}{_quoted(self._tokens[self._at - 1].value)}"
        if self._take("("):
            return self._call(token.word)
        self.columns.append(_path(token.value))
        return ".".join("`{}`".format(name.replace("`", "``")) for name in self.columns[-1])

    def _call(self, name: str) -> str:
        if name not in FUNCTIONS:
            raise ValueError(
                f"no {name} in a condition: comparisons of columns with literals, AND, OR, NOT, "
                f"and the functions {', '.join(FUNCTIONS)}"
            )
        if name == "try_cast":
            value = self.condition()
            self._wanted("as")
            return f"{name}({value} AS {self._closed(self._wanted(*sorted(TYPES)).upper())})"
        return f"{name}({self._listed(self.condition)})"

    def _listed(self, part: Callable[[], str]) -> str:
        """Return what is up to the closing parenthesis, with commas between."""
        parts = [part()]
        while self._take(","):
            parts.append(part())
        return self._closed(", ".join(parts))

    def _closed(self, inside: str) -> str:
        self._wanted(")")
        return inside

    def _take(self, *words: str) -> str:
        """Take the next token if it is one of these; return it, in small letters."""
        word = self.next.word
        if word not in words:
            return ""
        self._at += 1
        return word

    def _wanted(self, *words: str) -> str:
        """Take the next token; raise `ValueError` if it is none of these."""
        if not (word := self._take(*words)):
            raise self.unexpected(", ".join(words))
        return word


def _quoted(text: str) -> str:
    inside = (_UNITS.get(unit, unit) for unit in _UNIT.findall(text[1:-1]))
    return f"'{''.join(inside)}'"


def _path(text: str) -> Path:
    if "${" in text:
        raise ValueError("a name with ${ in it, in whose place Spark would put a setting")
    names = re.findall(_NAME, text)
    return tuple(name[1:-1].replace("``", "`") if name.startswith("`") else name for name in names)
