"""Columns are inferred only where every value that was seen lands."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.protocol.columns import columns_text, in_values, parse_columns
from binwright.protocol.inferred_columns import DEEPEST, MOST_FIELDS, LeftOut, infer_columns

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


def test_each_kind_of_json_has_its_type() -> None:
    document = {
        "id": 1,
        "price": 0.5,
        "item": "tea",
        "paid": True,
        "tags": ["a", None],
        "by": {"name": "Ann", "ages": [1, 2]},
        "lines": [{"n": 1}, {"text": "x"}],
    }
    assert inferred(document) == (
        "id bigint, price double, item string, paid boolean, tags array<string>, "
        "by struct<name:string,ages:array<bigint>>, lines array<struct<n:bigint,text:string>>"
    )
    assert not left_out(document)


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
