"""What makes values of a schema ones of columns, exactly or not at all."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from binwright.consumer.decode.one_by_one import INTEGER_BITS, Misfit
from binwright.tables.columns import OF_RECORD, Column, Columns, column_names, folded

Fit = Callable[[Any], Any]
"""Makes a value that is not null one of a column; raises `Misfit`."""

EXACT_IN_DOUBLE = 1 << 53
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, days after 1970-01-01
FIRST_US, LAST_US = FIRST_DAY * 86_400_000_000, (LAST_DAY + 1) * 86_400_000_000 - 1


def within(name: str, lowest: int, highest: int) -> Fit:
    """Return the fit of integers between two bounds, both included."""

    def fit(value: int) -> int:
        if not lowest <= value <= highest:
            raise Misfit(name, value)
        return value

    return fit


def integer_fit(name: str) -> Fit | None:
    """Return the fit of integers into columns of a type; None: there is none."""
    if name in INTEGER_BITS:
        end = 1 << (INTEGER_BITS[name] - 1)
        return within(name, -end, end - 1)
    return within(name, -EXACT_IN_DOUBLE, EXACT_IN_DOUBLE) if name == "double" else None


def moment(value: int, ticks: int) -> int:
    """Return ticks after 1970 as microseconds; what is finer is cut. Raises `Misfit`."""
    us = value * 1_000_000 // ticks
    if not FIRST_US <= us <= LAST_US:
        raise Misfit("a timestamp of the years 1 to 9999", value)
    return us


def fields_of(
    columns: Columns, names: Iterable[str], *, is_top: bool = False
) -> Mapping[str, Column]:
    """Return the columns of fields with these names: of the same name, else whatever its case.

    Args:
        columns: Of a struct.
        names: All of the values' fields.
        is_top: Whether they are columns of a table.
    """
    given = [*names]
    names_of_columns = column_names(given, OF_RECORD if is_top else ())
    by_column = {folded(to): name for to, name in zip(names_of_columns, given, strict=True)}
    by_name, fields = {name: name for name in given}, dict[str, Column]()
    for column in columns:
        same = by_name.get(
            column.named, by_name.get(column.name, by_column.get(folded(column.name)))
        )
        if same is not None:
            fields[same] = column
    return fields


def as_it_is(value: Any) -> Any:
    """Return a value."""
    return value
