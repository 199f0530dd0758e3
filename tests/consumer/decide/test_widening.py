"""Types that hold all values of others."""

import pytest

from binwright.consumer.decide.widening import type_there, widens, wider
from binwright.tables.columns import parse_type


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ("tinyint", "smallint"),
        ("smallint", "bigint"),
        ("int", "bigint"),
        ("int", "double"),
        ("float", "double"),
        ("int", "decimal(10,0)"),
        ("int", "decimal(12,2)"),
        ("bigint", "decimal(20,0)"),
        ("decimal(10,2)", "decimal(12,2)"),
        ("decimal(10,2)", "decimal(12,4)"),
    ],
)
def test_a_wider_type_is_the_one_of_both(there: str, wanted: str) -> None:
    one, other = parse_type(there), parse_type(wanted)
    assert (widens(one, other), widens(other, one)) == (True, False)
    assert wider(one, other) == wider(other, one) == other


@pytest.mark.parametrize(
    ("there", "wanted"),
    [
        ("int", "int"),
        ("bigint", "double"),
        ("int", "float"),
        ("int", "string"),
        ("date", "timestamp"),
        ("int", "decimal(11,2)"),
        ("bigint", "decimal(19,0)"),
        ("double", "decimal(38,10)"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("decimal(10,2)", "decimal(11,4)"),
        ("decimal(10,2)", "decimal(12,1)"),
        ("decimal(10,2)", "double"),
        ("array<int>", "array<bigint>"),
    ],
)
def test_other_types_are_not_wider(there: str, wanted: str) -> None:
    assert not widens(parse_type(there), parse_type(wanted))
    assert wider(parse_type(there), parse_type(wanted)) is None


def test_a_type_that_we_do_not_write_is_none() -> None:
    assert type_there("timestamp_ntz") is None
    assert type_there(None) is None
    assert str(type_there("decimal(9,2)")) == "decimal(9,2)"
