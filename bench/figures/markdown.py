"""Rows as a Markdown table, numbers as people read them."""

from collections.abc import Mapping, Sequence
from math import floor, inf, isfinite, log10
from typing import Any

Row = Mapping[str, Any]

DIGITS = 3  # of a number from 1 on, where it has a fraction


def table(rows: Sequence[Row]) -> str:
    """Return a table: a column for each key of any row, in order of appearance.

    Raises:
        ValueError: There are no rows.
    """
    if not rows:
        raise ValueError("a table needs at least one row")
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [[value(row.get(column)) for column in columns] for row in rows]
    head, *rest = (f"| {' | '.join(line)} |" for line in (columns, *lines))
    return "\n".join([head, "|---" * len(columns) + "|", *rest])


def value(given: Any) -> str:
    """Return a value as text: three digits of a fraction, thousands apart, a dash for nothing."""
    match given:
        case None:
            return "-"
        case bool():
            return "yes" if given else "no"
        case float() if given == inf:
            return "never"
        case float() if isfinite(given):
            return _number(given)
        case int():
            return f"{given:,}"
        case _:
            return str(given).replace("|", "\\|")


def _number(given: float) -> str:
    """Return three digits of a number from 1 on, two of a smaller one, without zeros at its end."""
    if given == 0:
        return "0"
    magnitude = floor(log10(abs(given)))
    decimals = max(0, (DIGITS if magnitude >= 0 else DIGITS - 1) - 1 - magnitude)
    text = f"{given:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
