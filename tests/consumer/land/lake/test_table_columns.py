"""How a table's columns differ from those that are wanted."""

import pytest
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from binwright.consumer.land.lake.table_columns import (
    BAD,
    RAW,
    Layout,
    check_layout,
    differences,
    layout_of,
    missing_columns,
)
from binwright.protocol.errors import TableRefused
from binwright.tables.columns import KAFKA, parse_columns

PAIR = StructType().add("a", IntegerType()).add("b", StringType())
DEEP = StructType().add("id", LongType()).add("one", PAIR).add("list", ArrayType(PAIR))
DEEP = DEEP.add("map", MapType(StringType(), ArrayType(PAIR))).add("x.y", LongType())


def found(text: str) -> list[str]:
    return [str(each) for each in differences(parse_columns(text), DEEP)]


def test_a_table_may_have_more_columns_and_fields_in_another_order_and_case() -> None:
    assert not found("ONE struct<b:string>, Id bigint, list array<struct<A:int>>")
    assert not found("`x.y` bigint, map map<string,array<struct<b:string,a:int>>>")


def test_what_a_table_lacks_is_named_as_sql_takes_it() -> None:
    assert found(
        "new struct<a:int>, one struct<c:int,`d.e`:date>, list array<struct<c:int>>, "
        "map map<string,array<struct<c:int>>>, `u-v` int"
    ) == [
        "new struct<a:int> (there: none)",
        "one.c int (there: none)",
        "one.`d.e` date (there: none)",
        "list.element.c int (there: none)",
        "map.value.element.c int (there: none)",
        "`u-v` int (there: none)",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("id int", "id int (there: bigint)"),
        ("id string", "id string (there: bigint)"),
        ("one struct<a:bigint>", "one.a bigint (there: int)"),
        ("one string", "one string (there: struct<a:int,b:string>)"),
        ("one map<string,int>", "one map<string,int> (there: struct<a:int,b:string>)"),
        ("list array<struct<b:binary>>", "list.element.b binary (there: string)"),
        ("map map<string,string>", "map.value string (there: array<struct<a:int,b:string>>)"),
        ("id decimal(20,0)", "id decimal(20,0) (there: bigint)"),
    ],
)
def test_every_other_type_is_a_difference(text: str, shown: str) -> None:
    assert found(text) == [shown]


def test_a_map_by_numbers_is_none_by_text() -> None:
    there = StructType().add("m", MapType(LongType(), LongType()))
    (result,) = differences(parse_columns("m map<string,bigint>"), there)
    assert result.actual == "map<bigint,bigint>"


def test_a_type_that_differs_is_refused_whatever_else_is_missing() -> None:
    with pytest.raises(
        TableRefused, match=r"/lake/t .*id string \(there: bigint\)\. Values"
    ) as why:
        missing_columns("/lake/t", parse_columns("new int, id string"), DEEP)
    assert "new" not in str(why.value)


def test_tables_of_raw_records_and_of_columns_are_no_substitute_for_each_other() -> None:
    columns = StructType().add(KAFKA, StringType())
    with pytest.raises(TableRefused, match=r"no entry of `tables` names its topic"):
        check_layout("/lake/t", RAW, columns)
    with pytest.raises(TableRefused, match=r"no column _kafka, so it is one of raw records"):
        check_layout("/lake/t", layout_of(parse_columns("id int")), DEEP)


@pytest.mark.parametrize("layout", [BAD, layout_of(parse_columns("id bigint"))])
def test_the_place_in_kafka_must_be_whole(layout: Layout) -> None:
    there = StructType().add(KAFKA, StructType().add("partition", LongType()))
    with pytest.raises(TableRefused, match=r"_kafka\.partition int \(there: bigint\)"):
        check_layout("/lake/t", layout, there)


def test_a_column_that_a_value_may_lack_may_not_be_not_null() -> None:
    place = StructField(KAFKA, StringType(), nullable=False)
    there = StructType([place, StructField("id", LongType(), nullable=False)])
    with pytest.raises(TableRefused, match="id may not be NOT NULL") as why:
        check_layout("/lake/t", layout_of(parse_columns("id bigint")), there)
    assert "_kafka may not" not in str(why.value)


def test_a_column_becomes_wider_where_the_settings_allow_it_and_never_narrower() -> None:
    there = StructType().add("id", IntegerType()).add("one", PAIR).add("wide", LongType())
    wanted = parse_columns("id bigint, one struct<a:double>, wide int, new int")
    found = missing_columns("/lake/t", wanted, there, widen=True)
    assert [str(each) for each in found] == [
        "id bigint (there: int)",
        "one.a double (there: int)",
        "new int (there: none)",
    ]
    with pytest.raises(TableRefused, match=r"wide int \(there: bigint"):
        missing_columns("/lake/t", wanted, there)
    with pytest.raises(TableRefused, match="set `widen`, or name the table's types"):
        missing_columns("/lake/t", parse_columns("id bigint"), there)
    with pytest.raises(TableRefused, match=r"id string \(there: int.*converted: name the table's"):
        missing_columns("/lake/t", parse_columns("id string"), there, widen=True)
