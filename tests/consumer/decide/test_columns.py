"""Columns of files that were staged under different settings."""

import pytest
from hypothesis import example, given
from tests.tables.column_strategies import FIELD_TYPES, fields_of

from binwright.consumer.decide.columns import united
from binwright.tables.columns import Columns, columns_text, in_table, parse_columns


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a int", "a int", "a int"),
        ("a int, b string", "c date, a int", "a int, b string, c date"),
        ("a int, b string", "A int", "a int, b string"),
        ("s struct<x:int>", "s struct<y:int>", "s struct<x:int,y:int>"),
        ("s array<struct<x:int>>", "s array<struct<x:int,y:int>>", "s array<struct<x:int,y:int>>"),
        (
            "m map<string,struct<x:int>>",
            "m map<string,struct<y:int>>",
            "m map<string,struct<x:int,y:int>>",
        ),
    ],
)
def test_columns_and_fields_of_both_are_there(one: str, other: str, both: str) -> None:
    assert columns_text(united(parse_columns(one), parse_columns(other))) == both


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a int", "a bigint"),
        ("a array<int>", "a array<string>"),
        ("a struct<x:int>", "a array<int>"),
    ],
)
def test_another_type_is_refused(one: str, other: str) -> None:
    with pytest.raises(ValueError, match=r" is .* and "):
        united(parse_columns(one), parse_columns(other))


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a int, b int", "a bigint, c int", "a bigint, b int, c int"),
        ("a double", "a float", "a double"),
        ("s struct<x:int>", "s struct<x:bigint,y:int>", "s struct<x:bigint,y:int>"),
        ("a array<int>", "a array<double>", "a array<double>"),
        ("m map<string,float>", "m map<string,double>", "m map<string,double>"),
    ],
)
def test_the_wider_type_may_win(one: str, other: str, both: str) -> None:
    found = united(parse_columns(one), parse_columns(other), widen=True)
    assert columns_text(found) == both


def test_the_first_type_wins_where_none_is_wider() -> None:
    one, other = parse_columns("a int, b int"), parse_columns("a string, b bigint")
    with pytest.raises(ValueError, match="a is int and string"):
        united(one, other, widen=True)
    assert columns_text(united(one, other, first_wins=True, widen=True)) == "a int, b bigint"


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ("a int, b int", "a bigint, c int", "a int, b int, c int"),
        ("a struct<x:int>", "a struct<x:string,y:int>", "a struct<x:int,y:int>"),
        ("a array<int>", "a int", "a array<int>"),
        ("m map<string,int>", "m map<string,double>", "m map<string,int>"),
    ],
)
def test_the_first_type_may_win(one: str, other: str, both: str) -> None:
    found = united(parse_columns(one), parse_columns(other), first_wins=True)
    assert columns_text(found) == both


@example(parse_columns("`straße` INT"), parse_columns("STRASSE INT"))
@given(fields_of(FIELD_TYPES), fields_of(FIELD_TYPES))
def test_what_is_united_is_read_back_from_its_text(one: Columns, other: Columns) -> None:
    """A file says in its footer which columns it has: what is not read back is damage."""
    both = united(in_table(one), in_table(other), first_wins=True)
    assert parse_columns(columns_text(both)) == both


def test_names_that_spark_takes_for_the_same_are_one_column() -> None:
    both = united(parse_columns("id INT, straße INT"), parse_columns("STRASSE INT, x INT"))
    assert columns_text(both) == "id int, `straße` int, x int"
