"""What makes values of a schema ones of columns, exactly or not at all."""

from collections.abc import Callable
from typing import Any

from binwright.consumer.decoding.one_by_one import INTEGER_BITS, Misfit

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


def as_it_is(value: Any) -> Any:
    """Return a value."""
    return value
