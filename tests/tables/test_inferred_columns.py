"""Columns are inferred only where every value that was seen lands."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.tables.columns import columns_text, in_values, parse_columns
from binwright.tables.inferred_columns import (
    DEEPEST,
    MOST_FIELDS,
    OF_CONNECT,
    LeftOut,
    infer_columns,
)

NAMES = st.sampled_from(["a", "A", "b", "_KAFKA", "a b", "", "\x00", "e.f", "`", '"', "\\", "é"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "tea"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.lists(st.dictionaries(NAMES | st.text(max_size=3), VALUES, max_size=4), max_size=4)


def inferred(*documents: dict[str, Any]) -> str:
    return columns_text(infer_columns(documents).columns)


def left_out(*documents: dict[str, Any]) -> dict[str, str]:
    return {each.path: each.why for each in infer_columns(documents).left_out}


def nested(depth: int, name: str = "a") -> dict[str, Any]:
    return {name: 1 if depth == 0 else nested(depth - 1)}


def test_fields_of_all_objects_count_in_the_order_in_which_they_appear() -> None:
    assert inferred({"b": 1}, {"a": None}, {"a": "x", "b": 2}) == "b bigint, a string"


def test_whole_numbers_among_others_are_double() -> None:
    assert inferred({"a": 1}, {"a": 1.5}) == "a double"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([1, "x", "y"], "string in 2, bigint in 1"),
        ([True, 1], "boolean in 1, bigint in 1"),
        ([2**63], "an integer beyond 64 bits in 1"),
        ([1, 2**63], "bigint in 1, an integer beyond 64 bits in 1"),
        ([None], "only null"),
        ([[], None], "only empty arrays"),
        ([{}, {}], "only empty objects"),
        ([[1], {"b": 1}], "array in 1, struct in 1"),
    ],
)
def test_what_has_no_one_type_is_left_out(values: list[Any], why: str) -> None:
    documents = [{"a": value, "id": 1} for value in values]
    assert inferred(*documents) == "id bigint"
    assert left_out(*documents) == {"a": why}


def test_what_is_left_out_within_others_is_named_by_its_path() -> None:
    document = {"by": {"id": 1, "lines": [{"n": 1}, {"n": "x"}], "mixed": [1, "x"]}}
    assert inferred(document) == "by struct<id:bigint>"
    assert left_out(document) == {
        "by.lines[].n": "bigint in 1, string in 1",
        "by.mixed[]": "bigint in 1, string in 1",
    }


@pytest.mark.parametrize("name", ["", "a\x00", "x" * 129])
def test_a_name_that_no_column_can_have_is_left_out(name: str) -> None:
    assert left_out({name: 1}) == {name: "a column cannot have this name"}


ROW = {"id": 1, "name": "x"}


def test_what_is_before_a_change_has_the_type_of_what_is_after_it() -> None:
    inserted = {"before": None, "after": ROW | {"n": 1}, "op": "c"}
    row = "struct<id:bigint,name:string,n:bigint>"
    assert inferred(inserted) == f"before {row}, after {row}, op string"
    deleted = {"before": ROW | {"n": 1.5}, "after": None, "op": "d"}
    row = "struct<id:bigint,name:string,n:double>"
    assert inferred(inserted, deleted) == f"before {row}, after {row}, op string"
    assert left_out({"before": None, "after": ROW}) == {"before": "only null"}


def connect(kind: str, of: str = "", **parts: Any) -> dict[str, Any]:
    return {"type": kind, "optional": True, "field": of, **parts}


ENVELOPE = connect(
    "struct",
    fields=[
        connect("struct", "before", fields=[connect("int64", "id"), connect("bytes", "b")]),
        connect("struct", "after", fields=[connect("int64", "id"), connect("bytes", "b")]),
        connect("string", "op"),
        connect("array", "tags", items=connect("string")),
        connect("map", "m", keys=connect("string"), values=connect("int32")),
        connect("bytes", "price", name="org.apache.kafka.connect.data.Decimal"),
    ],
)


def test_of_an_envelope_of_kafka_connect_the_payload_has_columns() -> None:
    row: dict[str, Any] = {"id": 1, "b": None}
    nulls: dict[str, Any] = {"tags": [], "m": None, "price": None}
    documents: list[dict[str, Any]] = [
        {"schema": ENVELOPE, "payload": {"before": None, "after": row, "op": "c", **nulls}},
        {"schema": None, "payload": None},
    ]
    assert inferred(*documents) == (
        "payload struct<before:struct<id:bigint,b:binary>,after:struct<id:bigint,b:binary>,"
        "op:string,tags:array<string>,m:map<string,int>>"
    )
    assert left_out(*documents) == {"schema": OF_CONNECT, "payload.price": "only null"}


def test_of_an_envelope_without_values_the_schema_counts() -> None:
    fields = [connect("double", "a"), connect("array", "l", items=connect("struct", fields=[]))]
    empty = {"schema": connect("struct", fields=fields), "payload": None}
    assert left_out(empty) == {"schema": OF_CONNECT, "payload": "only null"}
    one = {"schema": connect("struct", fields=fields[:1]), "payload": None}
    assert inferred(one) == "payload struct<a:double>"
    assert inferred({"schema": None, "payload": {"a": 1}}) == "payload struct<a:bigint>"


def test_what_only_looks_like_an_envelope_is_none() -> None:
    for other in ({"schema": "x", "payload": 1}, {"schema": {"type": 1}, "payload": 1}):
        assert OF_CONNECT not in left_out(other).values()
    assert inferred({"schema": {"type": "x"}, "payload": 1, "id": 1}) == (
        "schema struct<type:string>, payload bigint, id bigint"
    )


def test_of_names_that_differ_by_case_alone_the_first_one_stays() -> None:
    assert inferred({"id": 1, "ID": "x", "in": {"n": 1}}, {"in": {"N": 1}}) == (
        "id bigint, in struct<n:bigint>"
    )
    assert left_out({"id": 1, "ID": "x"}) == {"ID": "the name of id, but for upper and lower case"}


def test_the_name_of_the_place_in_kafka_is_free_within_others_alone() -> None:
    assert inferred({"_Kafka": 1, "a": {"_kafka": 1}}) == "a struct<_kafka:bigint>"
    assert "the record's place in Kafka" in left_out({"_Kafka": 1})["_Kafka"]


def test_many_names_are_keys_and_no_fields() -> None:
    most = {f"k{number}": number for number in range(MOST_FIELDS)}
    assert len(infer_columns([most]).columns) == MOST_FIELDS
    more = most | {"one more": 1}
    assert infer_columns([more]).columns == ()
    assert left_out({"a": more}) == {"a": "201 different names: keys of a map, perhaps"}


def test_deep_values_are_left_out() -> None:
    assert not left_out(nested(DEEPEST))
    (found,) = infer_columns([nested(DEEPEST + 1)]).left_out
    assert found == LeftOut(".".join("a" * (DEEPEST + 1)), f"more than {DEEPEST} deep")


@given(DOCUMENTS)
def test_the_columns_can_be_written_and_read(documents: list[dict[str, Any]]) -> None:
    parsed = [orjson.loads(orjson.dumps(document)) for document in documents]
    if columns := infer_columns(parsed).columns:
        assert in_values(parse_columns(columns_text(columns))) == columns
