"""Comparisons of columns, by which a table takes some records and leaves out others."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal as Number

from binwright.tables.columns import Columns, ColumnType, Decimal, Simple, parse_path, type_at

Literal = str | Number | bool
"""As it is written: a text, a number, or true and false."""
Value = Literal | int | float | date | datetime
"""As a column has it."""

_NAME = r"(?:`(?:[^`]|``)+`|[A-Za-z_]\w*)"
_COMPARISON = re.compile(
    rf"\s*(?P<path>{_NAME}(?:\.{_NAME})*)\s*"
    r"(?P<operator>is\s+not\s+null\b|is\s+null\b|not\s+in\b|in\b|<=|>=|!=|=|<|>)\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_LITERAL = re.compile(
    r"\s*(?:'(?P<text>(?:[^']|'')*)'"
    r"|(?P<number>[-+]?\d{1,38}(?:\.\d{1,38})?(?:e[-+]?\d{1,3})?)(?![\w.])|(?P<bool>true|false)\b)\s*",
    re.IGNORECASE,
)
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_LISTS, _OF_NULL = ("in", "not in"), ("is null", "is not null")
MOST_DIGITS = 38  # before and behind the point of a number


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column, an operator and values. A record is taken where it holds, as SQL has it."""

    path: tuple[str, ...]
    operator: str  # in lower case
    literals: tuple[Literal, ...] = ()

    def values(self, columns: Columns) -> tuple[ColumnType, tuple[Value, ...]]:
        """Return the column's type, and the values as such a column has them.

        Raises:
            ValueError: There is no such column, or it cannot be compared with these values.
        """
        name = ".".join(self.path)
        if (kind := type_at(columns, self.path)) is None:
            raise ValueError(f"there is no column or field {name}")
        if self.operator in _OF_NULL:
            return kind, ()
        read = _reading(kind)
        if read is None:
            raise ValueError(f"{name} is {kind}, which is compared with `is null` alone")
        if kind == Simple("boolean") and self.operator in {"<", "<=", ">", ">="}:
            raise ValueError(f"{name} is boolean, which has no order")
        try:
            return kind, tuple(map(read, self.literals))
        except (ValueError, ArithmeticError) as exc:
            raise ValueError(f"{name} is {kind}, and {exc}") from exc


def parse_comparison(text: str) -> Comparison:
    """Return the comparison that a text is, as `status != 'test'`; raise `ValueError` if none."""
    if (match := _COMPARISON.fullmatch(text)) is None:
        raise ValueError(
            f"{text!r} is no comparison of a column, as status != 'test', amount >= 10, "
            "region in ('eu', 'us') or by.name is not null"
        )
    operator, rest = " ".join(match["operator"].lower().split()), match["rest"]
    path = parse_path(match["path"])
    if operator in _OF_NULL:
        if rest.strip():
            raise ValueError(f"{text!r} has {rest!r} behind `{operator}`")
        return Comparison(path, operator)
    if operator in _LISTS:
        return Comparison(path, operator, _list(text, rest.strip()))
    if (literal := _LITERAL.fullmatch(rest)) is None:
        raise ValueError(f"{text!r} has no one text, number, true or false behind `{operator}`")
    return Comparison(path, operator, (_literal(literal),))


def _list(text: str, rest: str) -> tuple[Literal, ...]:
    literals, end, close = list[Literal](), 1, len(rest) - 1
    while rest[:1] == "(" and rest[-1:] == ")" and (found := _LITERAL.match(rest, end, close)):
        literals.append(_literal(found))
        if found.end() == close:
            return tuple(literals)
        if rest[found.end()] != ",":
            break
        end = found.end() + 1
    raise ValueError(f"{text!r} has no list of texts, numbers, true or false in parentheses")


def _literal(found: "re.Match[str]") -> Literal:
    if found["text"] is not None:
        return found["text"].replace("''", "'")
    return Number(found["number"]) if found["number"] else found["bool"].lower() == "true"


def _reading(kind: ColumnType) -> Callable[[Literal], Value] | None:
    """Return what reads a literal as a value of a type; None: such are not compared."""
    if isinstance(kind, Decimal):
        return _decimal
    if not isinstance(kind, Simple):
        return None
    if (bits := _BITS.get(kind.name)) is not None:
        return lambda literal: _integer(literal, bits)
    return _READINGS.get(kind.name)


def _number(literal: Literal) -> Number:
    if not isinstance(literal, Number):
        raise ValueError(f"{_shown(literal)} is no number")  # noqa: TRY004 - a setting's value
    return literal


def _integer(literal: Literal, bits: int) -> int:
    number, end = _number(literal), 1 << (bits - 1)
    if not -end <= number < end or number != int(number):
        raise ValueError(f"{number} is none")
    return int(number)


def _decimal(literal: Literal) -> Number:
    number = _number(literal)
    if number.adjusted() >= MOST_DIGITS or int(number.as_tuple().exponent) < -MOST_DIGITS:
        raise ValueError(f"{number} has more than {MOST_DIGITS} digits before or behind the point")
    return number


def _boolean(literal: Literal) -> bool:
    if not isinstance(literal, bool):
        raise ValueError(f"{_shown(literal)} is not true or false")  # noqa: TRY004 - as above
    return literal


def _text(literal: Literal) -> str:
    if not isinstance(literal, str):
        raise ValueError(f"{_shown(literal)} is no text in '…'")  # noqa: TRY004 - as above
    return literal


def _timestamp(literal: Literal) -> datetime:
    moment = datetime.fromisoformat(_text(literal))
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _shown(literal: Literal) -> str:
    return f"'{literal}'" if isinstance(literal, str) else str(literal).lower()


_READINGS: dict[str, Callable[[Literal], Value]] = {
    "float": lambda literal: float(_number(literal)),
    "double": lambda literal: float(_number(literal)),
    "boolean": _boolean,
    "string": _text,
    "date": lambda literal: date.fromisoformat(_text(literal)),
    "timestamp": _timestamp,
}
