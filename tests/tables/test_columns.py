"""Columns are read from the text of settings, and written as a text that is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.column_strategies import FIELD_TYPES, TYPES, columns_of, fields_of

from binwright.tables.columns import (
    DEEPEST,
    OF_RECORD,
    VARIANT,
    Array,
    Column,
    Columns,
    ColumnType,
    Decimal,
    Map,
    Simple,
    Struct,
    column_names,
    columns_text,
    folded,
    has_order,
    in_table,
    in_values,
    is_variant,
    known_columns,
    parse_columns,
    parse_path,
    path_text,
    quoted,
    stored,
)


@given(columns_of(TYPES | st.just(Simple(VARIANT))))
def test_what_is_written_is_read_back(columns: Columns) -> None:
    assert parse_columns(columns_text(columns)) == columns


def test_a_text_names_columns_with_types_in_each_other() -> None:
    text = "id BIGINT, `a key` string, tags: array<string>, m map<STRING,Array<int>>"
    found = parse_columns(text)
    assert found == (
        Column("id", Simple("bigint")),
        Column("a_key", Simple("string")),
        Column("tags", Array(Simple("string"))),
        Column("m", Map(Array(Simple("int")))),
    )
    assert [column.named for column in found] == ["id", "a key", "tags", "m"]


def names_in(columns: Columns) -> list[tuple[str, object]]:
    """Return the names of the fields in values, and of those within them."""
    return [(column.named, parts_of(column.type)) for column in columns]


def parts_of(kind: ColumnType) -> object:
    match kind:
        case Array(inner) | Map(inner):
            return parts_of(inner)
        case Struct(fields):
            return names_in(fields)
        case _:
            return kind


@given(fields_of(FIELD_TYPES))
def test_fields_of_any_names_have_columns_that_are_read_back(fields: Columns) -> None:
    columns = in_table(fields)
    assert parse_columns(columns_text(columns)) == columns
    assert names_in(columns) == names_in(fields)
    assert in_table(columns) == columns
    assert in_values(columns) == fields
    assert names_in(stored(columns)) == names_in(columns)


@pytest.mark.parametrize(
    ("fields", "columns"),
    [
        (["a", "b"], ["a", "b"]),
        (["Date Time", "Amount (EUR)"], ["Date_Time", "Amount__EUR_"]),
        (["a b", "a_b", "a,b"], ["a_b_2", "a_b", "a_b_3"]),
        (["id", "ID", "Id"], ["id", "ID_2", "Id_3"]),
        (["straße", "STRASSE"], ["straße", "STRASSE_2"]),
        (["i", "\u0131", "\u0130"], ["i", "\u0131_2", "\u0130_3"]),
        (["\u017f", "s", "\u00b5", "\u03bc"], ["\u017f", "s_2", "\u00b5", "\u03bc_2"]),
        (["", "\x00", "_"], ["__2", "__3", "_"]),
        (["_kafka", "_KAFKA_DATE"], ["_kafka_2", "_KAFKA_DATE_2"]),
        (["a" * 1_001], ["a" * 1_000]),
    ],
)
def test_a_name_that_no_column_may_have_becomes_one(fields: list[str], columns: list[str]) -> None:
    assert [*column_names(fields, OF_RECORD)] == columns


def test_many_names_become_columns_at_once() -> None:
    names = column_names(["," * n for n in range(1, 999)] + [f"{',' * n}a" for n in range(20_000)])
    assert len({*map(folded, names)}) == len(names)


def test_fields_of_a_struct_may_have_colons_or_not() -> None:
    item = Struct((Column("sku", Simple("string")), Column("n", Simple("int"))))
    assert parse_columns("s struct<sku:string, n int>") == (Column("s", item),)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("byte", Simple("tinyint")),
        ("SHORT", Simple("smallint")),
        ("integer", Simple("int")),
        ("long", Simple("bigint")),
        ("real", Simple("float")),
        ("bool", Simple("boolean")),
        ("decimal", Decimal(10, 0)),
        ("numeric(5)", Decimal(5, 0)),
        ("DECIMAL( 38 , 38 )", Decimal(38, 38)),
    ],
)
def test_types_have_the_names_that_spark_takes(text: str, kind: ColumnType) -> None:
    assert parse_columns(f"a {text}") == (Column("a", kind),)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a_1", "a_1"), ("_", "_"), ("1a", "`1a`"), ("a-b", "`a-b`"), ("é", "`é`"), ("a`b", "`a``b`")],
)
def test_a_name_that_sql_does_not_take_as_it_is_is_quoted(name: str, text: str) -> None:
    """Spark takes letters and digits of ASCII only."""
    assert quoted(name) == text
    assert columns_text((Column(name, Simple("int")),)) == f"{text} int"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "names no column"),
        ("  ", "names no column"),
        ("a struct<>", "a struct names no field"),
        ("a", "needs a type before character 1, and has its end"),
        ("a int,", "needs a name"),
        ("a int b int", "needs ','"),
        ("a int NOT NULL", "needs ',' .* has 'NOT'"),
        ("a int; b int", "needs a name or a type .* has '; b int'"),
        ("a int>", "needs ','"),
        (", a int", "needs a name before .* has ','"),
        ("`` int", "needs a name or a type"),
        ("a varchar", "no type 'varchar': bigint, .*, struct<…> or variant"),
        ("a array", "needs '<'.*its end"),
        ("a array<int", "needs '>'.*its end"),
        ("a array<>", "needs a type"),
        ("a struct<b:int", "needs ','.*its end"),
        ("a map<int,int>", "keys of a map must be string"),
        ("a map<string>", "needs ','"),
        ("a decimal(", "needs a number.*its end"),
        ("a decimal(x)", "needs a number.*'x'"),
        ("a decimal(5,٢)", "needs a number"),
        (f"a decimal({'9' * 5000})", "needs a number"),
        ("a decimal(5,2", "needs '\\)'"),
        ("a decimal(0)", r"no decimal\(0,0\)"),
        ("a decimal(39,0)", r"no decimal\(39,0\)"),
        ("a decimal(5,6)", r"no decimal\(5,6\)"),
        ("a int, A int", "names a twice"),
        ("a struct<b:int,B:int>", "names b twice"),
        ("_Kafka int", "the column _Kafka is the record's place"),
        ("a struct<b: variant>", "VARIANT is the type of a whole column"),
        ("a array<variant>", "VARIANT is the type of a whole column"),
        ("`a=b` int, `A=B` int", "names a=b twice"),
        (f"a {'array<' * (DEEPEST + 1)}int{'>' * (DEEPEST + 1)}", f"more than {DEEPEST} deep"),
        ("a " + "array<" * 100_000, f"more than {DEEPEST} deep"),
    ],
)
def test_a_malformed_text_is_refused_with_the_place(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        parse_columns(text)


def test_types_may_lie_deep_in_each_other_and_beside_each_other() -> None:
    deep = f"{'array<' * DEEPEST}int{'>' * DEEPEST}"
    columns = parse_columns(f"a {deep}, _kafka_ {deep}, s struct<_kafka:int>")
    assert parse_columns(columns_text(columns)) == columns


@given(st.text() | st.text("ab`<>(),: 19\n", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        columns = parse_columns(text)
    except ValueError:
        return
    assert parse_columns(columns_text(columns)) == columns


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", "`a`b", "a`b", "`a`\n"])
def test_a_malformed_path_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no column, nor a field as in"):
        parse_path(text)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_any_path_is_read_as_it_was_written(path: list[str]) -> None:
    assert parse_path(path_text(path)) == tuple(path)


def test_a_column_of_any_json_is_one_as_a_whole() -> None:
    columns = parse_columns("a VARIANT, b STRING")
    assert [is_variant(column) for column in columns] == [True, False]
    assert not has_order(columns[0].type)


def test_what_has_an_order_can_have_statistics() -> None:
    text = "a INT, b DECIMAL(9,2), c STRING, d DATE, e TIMESTAMP, f DOUBLE"
    assert all(has_order(column.type) for column in parse_columns(text))
    text = "a BOOLEAN, b BINARY, c ARRAY<INT>, d MAP<STRING, INT>, e STRUCT<a: INT>"
    assert not any(has_order(column.type) for column in parse_columns(text))


@pytest.mark.parametrize("text", [None, "", b"", 7, "a", "a later<type>", b"\xff bigint"])
def test_of_what_is_no_text_of_columns_none_are_known(text: object) -> None:
    assert known_columns(text) == ()
    known = parse_columns("a INT")
    assert known_columns("a INT") == known_columns(b"a INT") == known
