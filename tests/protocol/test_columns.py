"""Columns are read from the text of settings, and written as a text that is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.protocol.columns import (
    DEEPEST,
    KAFKA,
    MOST_DIGITS,
    SIMPLE,
    VARIANT,
    Array,
    Column,
    Columns,
    ColumnType,
    Decimal,
    Map,
    Simple,
    Struct,
    columns_text,
    has_order,
    is_variant,
    parse_columns,
    parse_path,
    path_text,
    quoted,
    type_at,
)

NAMES = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters=" ,;{}()\n\t="), min_size=1
    ),
).filter(lambda name: name.casefold() != KAFKA)


def columns_of(types: st.SearchStrategy[ColumnType]) -> st.SearchStrategy[Columns]:
    columns = st.builds(Column, NAMES, types)
    return st.lists(
        columns, min_size=1, max_size=4, unique_by=lambda column: column.name.casefold()
    ).map(tuple)


TYPES: st.SearchStrategy[ColumnType] = st.recursive(
    st.sampled_from(sorted(SIMPLE)).map(Simple)
    | st.integers(1, MOST_DIGITS).flatmap(
        lambda digits: st.builds(Decimal, st.just(digits), st.integers(0, digits))
    ),
    lambda types: (
        st.builds(Array, types) | st.builds(Map, types) | st.builds(Struct, columns_of(types))
    ),
    max_leaves=5,
)


@given(columns_of(TYPES | st.just(Simple(VARIANT))))
def test_what_is_written_is_read_back(columns: Columns) -> None:
    assert parse_columns(columns_text(columns)) == columns


def test_a_text_names_columns_with_types_in_each_other() -> None:
    text = "id BIGINT, `a key` string, tags: array<string>, m map<STRING,Array<int>>"
    with pytest.raises(ValueError, match="the name `a key` has one of the characters"):
        parse_columns(text)
    assert parse_columns(text.replace("a key", "a-key")) == (
        Column("id", Simple("bigint")),
        Column("a-key", Simple("string")),
        Column("tags", Array(Simple("string"))),
        Column("m", Map(Array(Simple("int")))),
    )


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


def test_the_text_of_each_type_is_that_of_spark() -> None:
    text = "a map<string,array<decimal(5,2)>>, b struct<`x-y`:date,z:struct<t:timestamp>>"
    assert columns_text(parse_columns(text.upper())) == text.upper().replace(
        "MAP<STRING,ARRAY<DECIMAL", "map<string,array<decimal"
    ).replace("STRUCT", "struct").replace("DATE", "date").replace("TIMESTAMP", "timestamp")


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
        ("`a=b` int", "has one of the characters"),
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


def test_a_path_names_a_column_or_a_field_within_one() -> None:
    columns = parse_columns("id BIGINT, by STRUCT<`first-name`: STRING, at: STRUCT<`x.y`: DATE>>")
    for text, path, kind in [
        ("id", ("id",), "bigint"),
        ("BY.`First-name`", ("BY", "First-name"), "string"),
        ("by.at.`x.y`", ("by", "at", "x.y"), "date"),
        ("by", ("by",), "struct<`first-name`:string,at:struct<`x.y`:date>>"),
    ]:
        assert parse_path(text) == path
        assert parse_path(path_text(path)) == path
        assert str(type_at(columns, path)) == kind
    for missing in (("no",), ("id", "x"), ("by", "at", "x")):
        assert type_at(columns, missing) is None


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
