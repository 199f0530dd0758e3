"""Which types hold all values of another one, as Delta widens columns of files that exist.

`tests/integration/lake/test_widening.py` compares this with what Delta does.
"""

from binwright.tables.columns import ColumnType, Decimal, Simple, parse_type

_WIDER = {
    "tinyint": frozenset(["smallint", "int", "bigint", "double"]),
    "smallint": frozenset(["int", "bigint", "double"]),
    "int": frozenset(["bigint", "double"]),
    "float": frozenset(["double"]),
}
_DIGITS = {"tinyint": 10, "smallint": 10, "int": 10, "bigint": 20}
"""Before the point of a decimal, at least, that Delta widens an integer to."""


def widens(there: ColumnType, wanted: ColumnType) -> bool:
    """Return whether a column of one type can become one of the other, each value exactly."""
    match there, wanted:
        case Simple(one), Simple(other):
            return other in _WIDER.get(one, ())
        case Simple(name), Decimal(precision, scale):
            return name in _DIGITS and precision - scale >= _DIGITS[name]
        case Decimal(precision, scale), Decimal(more, finer):
            return there != wanted and 0 <= finer - scale <= more - precision
    return False


def wider(one: ColumnType, other: ColumnType) -> ColumnType | None:
    """Return that of two types which the other widens to; None: neither does."""
    if widens(one, other):
        return other
    return one if widens(other, one) else None


def type_there(text: str | None) -> ColumnType | None:
    """Return the type that a table's column has, by Spark's text; None: none that we write."""
    try:
        return parse_type(text or "")
    except ValueError:
        return None
