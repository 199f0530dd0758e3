"""A filter is a list of comparisons of columns, checked before anything is read."""

from datetime import UTC, date, datetime
from decimal import Decimal as Number
from typing import Any

import pytest

from binwright.tables.columns import parse_columns
from binwright.tables.comparisons import Comparison, parse_comparison

COLUMNS = parse_columns(
    "n INT, b TINYINT, d DOUBLE, f FLOAT, p DECIMAL(10,2), s STRING, ok BOOLEAN, day DATE, "
    "at TIMESTAMP, raw BINARY, tags ARRAY<STRING>, by STRUCT<name: STRING, `a b`: INT>, v VARIANT"
)


@pytest.mark.parametrize(
    ("text", "path", "operator", "literals"),
    [
        ("s = 'x'", ("s",), "=", ("x",)),
        ("s!='it''s'", ("s",), "!=", ("it's",)),
        (" by.name  >= '' ", ("by", "name"), ">=", ("",)),
        ("by.`a_b` < -1.5e3", ("by", "a_b"), "<", (Number(-1500),)),
        ("n <= +7", ("n",), "<=", (Number(7),)),
        ("n > 7", ("n",), ">", (Number(7),)),
        ("ok = TRUE", ("ok",), "=", (True,)),
        ("s in ('a,b', ')')", ("s",), "in", ("a,b", ")")),
        ("n NOT  IN (1)", ("n",), "not in", (Number(1),)),
        ("n is null", ("n",), "is null", ()),
        ("n IS NOT NULL ", ("n",), "is not null", ()),
        ("island = 1", ("island",), "=", (Number(1),)),
    ],
)
def test_a_comparison_is_a_column_an_operator_and_values(
    text: str, path: tuple[str, ...], operator: str, literals: tuple[Any, ...]
) -> None:
    assert parse_comparison(text) == Comparison(path, operator, literals)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "s",
        "s ~ 'x'",
        "'x' = s",
        "s = x",
        "s = 'x' or s = 'y'",
        "s = 'x",
        "n = 1.",
        "n = 1x",
        "n in 1",
        "n in ()",
        "n in (1,)",
        "n in (1 2)",
        "n in (1, x)",
        "n is null = 1",
        "lower(s) = 'x'",
    ],
)
def test_what_is_no_comparison_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no comparison|behind `|has no list"):
        parse_comparison(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("n = 2147483647", (2147483647,)),
        ("b in (1e2, 2.0)", (100, 2)),
        ("d < 0.5", (0.5,)),
        ("f < 3", (3.0,)),
        ("p = 1.005", (Number("1.005"),)),
        ("S = 'x'", ("x",)),
        ("by.NAME = 'x'", ("x",)),
        ("ok != false", (False,)),
        ("day >= '2026-11-29'", (date(2026, 11, 29),)),
        ("at < '2026-11-29T01:00:00+01:00'", (datetime(2026, 11, 29, tzinfo=UTC),)),
        ("at < '2026-11-29'", (datetime(2026, 11, 29, tzinfo=UTC),)),
        ("tags is null", ()),
    ],
)
def test_values_are_those_of_the_columns_type(text: str, values: tuple[Any, ...]) -> None:
    assert parse_comparison(text).values(COLUMNS)[1] == values


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = 1", "no column or field x"),
        ("by.x = 1", "no column or field by.x"),
        ("n = 2147483648", "n is int"),
        ("n = 1.5", "n is int"),
        ("n = '1'", "n is int, and '1' is no number"),
        ("b = true", "and true is no number"),
        ("d = true", "is no number"),
        ("s = 1", "is no text"),
        ("ok = 1", "is not true or false"),
        ("ok < true", "has no order"),
        ("day = 'today'", "day is date"),
        ("at = '12'", "at is timestamp"),
        ("p = 1e38", "more than 38 digits"),
        ("p = 1e-39", "more than 38 digits"),
        ("raw = 'x'", "`is null` alone"),
        ("v = 'x'", "`is null` alone"),
        ("tags = 'x'", "`is null` alone"),
        ("by = 'x'", "`is null` alone"),
    ],
)
def test_what_a_column_cannot_be_compared_with_is_refused(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_comparison(text).values(COLUMNS)
