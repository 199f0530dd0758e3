"""Fields of JSON that no column has are found, counted by name, or kept as they were written."""

import json
from collections import Counter
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binwright.consumer.decode.json_blocks import BlockReader
from binwright.consumer.decode.json_records import RecordReader
from binwright.consumer.decode.json_values import ALONE, JsonDecoder
from binwright.consumer.decode.new_fields import (
    LONGEST_NAME,
    MOST_NAMES,
    MOST_PROPOSED,
    OTHER_NAMES,
    AddedFields,
    CountedFields,
    KeptFields,
)
from binwright.tables.columns import REST, columns_text, parse_columns

COLUMNS = parse_columns(
    "id BIGINT, s STRING, by STRUCT<name: STRING>, l ARRAY<STRUCT<n: INT, t: ARRAY<STRING>>>"
)
WITH_MAP = (*COLUMNS, *parse_columns("m MAP<STRING, STRUCT<x: INT>>"))
KNOWN = {"id": 1, "s": "x", "by": {"name": "y"}, "l": [{"n": 1, "t": ["z"]}, None, {}]}


def counted(value: bytes, columns: Any = WITH_MAP) -> dict[str, int]:
    counts = Counter[str]()
    JsonDecoder(columns, CountedFields(columns, counts)).decode(pa.array([value], pa.binary()))
    return dict(counts)


def kept(value: bytes) -> Any:
    found = RecordReader(WITH_MAP, KeptFields(WITH_MAP)).read(value)
    assert isinstance(found, dict)
    return found.get(REST.name)


@pytest.mark.parametrize(
    ("value", "counts", "rest"),
    [
        (b"{}", {}, None),
        (orjson.dumps(KNOWN), {}, None),
        (b'{"new": null, "by": {"new": null}}', {}, None),
        (b'{"a": 1, "id": 2}', {"a": 1}, '{"a":1}'),
        (b'{"ID": 1}', {"ID": 1}, '{"ID":1}'),
        (b'{"a": {"b": [1, null]}}', {"a": 1}, '{"a":{"b":[1,null]}}'),
        (b'{"by": {"name": "x", "mail": "y"}}', {"by.mail": 1}, '{"by":{"mail":"y"}}'),
        (
            b'{"l": [{"n": 1}, {"p": 1.10}, null, {"p": 2, "q": 1e40}]}',
            {"l[].p": 2, "l[].q": 1},
            '{"l":[null,{"p":1.10},null,{"p":2,"q":1e40}]}',
        ),
        (b'{"m": {"k": {"x": 1}, "j": {"y": 1}, "i": null}}', {"m{}.y": 1}, '{"m":{"j":{"y":1}}}'),
        (
            b'{"big": 123456789012345678901234567890, "d": 0.10000000000000000000001, "z": -0.0}',
            {"big": 1, "d": 1, "z": 1},
            '{"big":123456789012345678901234567890,"d":0.10000000000000000000001,"z":-0.0}',
        ),
        (
            b'{"over": [18446744073709551615, 18446744073709551616, -9223372036854775809]}',
            {"over": 1},
            '{"over":[18446744073709551615,18446744073709551616,-9223372036854775809]}',
        ),
        (b'{"\\u0061": "\\u00e9\\ud83d\\ude00"}', {"a": 1}, '{"a":"é😀"}'),
        (b'{"a\\nb": 1, "": 2}', {"a\\nb": 1, "": 1}, '{"a\\nb":1,"":2}'),
    ],
)
def test_fields_without_a_column_are_counted_or_kept(
    value: bytes, counts: dict[str, int], rest: str | None
) -> None:
    assert counted(value) == counts
    assert kept(value) == rest


def test_a_field_whose_name_no_column_has_is_not_new() -> None:
    columns = parse_columns("`a b` INT, s STRUCT<`c d`: INT>")
    assert counted(b'{"a b": 1, "a_b": 2, "s": {"c d": 3, "c_d": 4}}', columns) == {
        "a_b": 1,
        "s.c_d": 1,
    }


def test_fields_of_bad_values_are_not_counted() -> None:
    assert counted(b'{"id": "x", "new": 1}') == {}


def test_a_name_may_be_that_of_what_it_lies_in() -> None:
    counts = Counter[str]()
    within = CountedFields(COLUMNS, counts, "_kafka_key")
    JsonDecoder(COLUMNS, within).decode(pa.array([b'{"new": 1}'], pa.binary()))
    assert counts == {"_kafka_key.new": 1}


def test_what_is_counted_is_bounded_in_number_and_length() -> None:
    names = {f"n{i}": i for i in range(10 * MOST_NAMES)}
    counts = counted(orjson.dumps({"by": {"x" * 1_000_000: 1}, **names}))
    assert len(counts) == MOST_NAMES + 1
    assert counts[OTHER_NAMES] == 9 * MOST_NAMES + 1
    assert max(map(len, counted(orjson.dumps({"by": {"x" * 1_000_000: 1}})))) == LONGEST_NAME
    assert max(map(len, counted(orjson.dumps({"\u2028" * 1_000: 1})))) <= LONGEST_NAME


def test_what_is_kept_and_nested_too_deep_is_bad() -> None:
    value = b'{"a": ' + b"[" * 400 + b"]" * 400 + b"}"
    rows, bad = JsonDecoder(COLUMNS, KeptFields(COLUMNS)).decode(pa.array([value], pa.binary()))
    assert rows.to_pylist() == [None]
    assert bad[0].as_py()["reason"].startswith("_rest needs a value nested less deep")


@pytest.mark.parametrize(
    "value",
    [
        orjson.dumps(KNOWN),
        json.dumps(KNOWN | {"id": None}).encode(),
        json.dumps(KNOWN | {"s": 'a ": b":null :c'}, indent=2).encode(),
        json.dumps(KNOWN | {"s": ":c"}).encode(),
        b'{"s" :"x", "id"\n: 7}',
        b'{"new": null, "id":  null}',
    ],
)
def test_a_block_without_new_fields_is_known_to_have_none(value: bytes) -> None:
    """Else each value is parsed once more."""
    assert BlockReader(COLUMNS).read(pa.array([value] * 3, pa.binary()))[1] is False
    other = value.replace(b"{", b'{"new":1,', 1)
    assert BlockReader(COLUMNS).read(pa.array([value, other], pa.binary()))[1] is True


SCALARS = st.none() | st.integers(0, 9) | st.text('a":\\n ', max_size=5) | st.floats(0, 1)
PARTS = st.fixed_dictionaries({}, optional={"name": st.text(max_size=3), "mail": SCALARS})
ITEMS = st.fixed_dictionaries({}, optional={"n": st.integers(0, 9), "q": SCALARS})
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | st.integers(0, 9),
        "s": st.none() | st.text('a":\\n ', max_size=5),
        "by": st.none() | PARTS,
        "l": st.none() | st.lists(st.none() | ITEMS, max_size=3),
        "new": SCALARS | PARTS | st.lists(SCALARS, max_size=2),
    },
)
LAYOUTS = st.sampled_from([{}, {"separators": (",", ":")}, {"indent": 1}, {"ensure_ascii": False}])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(DOCUMENTS, LAYOUTS), max_size=5))
def test_blocks_find_the_fields_that_the_strict_reader_finds(
    some: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    values = [json.dumps(document, **layout).encode() for document, layout in some]
    array: pa.BinaryArray = pa.array([*values, *[b"{}"] * 2 * ALONE], pa.binary())
    strict, in_blocks = Counter[str](), Counter[str]()
    reader = RecordReader(COLUMNS, CountedFields(COLUMNS, strict))
    for value in values:
        assert isinstance(reader.read(value), dict)
    JsonDecoder(COLUMNS, CountedFields(COLUMNS, in_blocks)).decode(array)
    assert in_blocks == strict

    decoder, exact = JsonDecoder(COLUMNS, KeptFields(COLUMNS)), KeptFields(COLUMNS)
    rows, bad = decoder.decode(array)
    rows.validate(full=True)
    assert bad.null_count == len(bad)
    one_by_one = [RecordReader(COLUMNS, exact).read(value) for value in values]
    expected = pa.array([*one_by_one, *[{}] * 2 * ALONE], rows.type)
    assert rows.to_pylist() == expected.to_pylist()


# --- columns that a table got for new fields -----------------------------------------------------

ADDED = parse_columns("b BOOLEAN, n BIGINT, d DOUBLE, t STRING")


def filling(counts: Counter[str] | None = None, added: Any = ADDED) -> JsonDecoder:
    fields = AddedFields(COLUMNS, added, Counter() if counts is None else counts)
    return JsonDecoder(COLUMNS, fields, added=added)


@pytest.mark.parametrize(
    ("field", "taken", "rest"),
    [
        ('"b": true', {"b": True}, None),
        ('"b": 1', {}, '{"b":1}'),
        ('"n": -9223372036854775808', {"n": -(2**63)}, None),
        ('"n": 9223372036854775808', {}, '{"n":9223372036854775808}'),
        ('"n": "1"', {}, '{"n":"1"}'),
        ('"n": 1.50', {}, '{"n":1.50}'),
        ('"n": true', {}, '{"n":true}'),
        ('"d": 0.5', {"d": 0.5}, None),
        ('"d": 9007199254740991', {"d": float(2**53 - 1)}, None),
        ('"d": 9007199254740993', {}, '{"d":9007199254740993}'),
        ('"d": 123456789012345678901234', {}, '{"d":123456789012345678901234}'),
        ('"d": 1e300', {}, '{"d":1e300}'),
        ('"d": "NaN"', {}, '{"d":"NaN"}'),
        ('"t": "x"', {"t": "x"}, None),
        ('"t": 1', {}, '{"t":1}'),
        ('"t": {"x": [1]}', {}, '{"t":{"x":[1]}}'),
        ('"t": null', {}, None),
        ('"T": "x"', {}, '{"T":"x"}'),
        ('"n": 1, "o": 2', {"n": 1}, '{"o":2}'),
        ('"n": "1", "by": {"mail": "x"}', {}, '{"by":{"mail":"x"},"n":"1"}'),
    ],
)
def test_a_column_takes_what_fits_it_exactly_and_the_rest_keeps_what_does_not(
    field: str, taken: dict[str, Any], rest: str | None
) -> None:
    value = b'{"id": 7, %s}' % field.encode()
    others = [b'{"id": 1}'] * 2 * ALONE  # so that a block is tried
    for values in ([value], [value, *others]):
        rows, bad = filling().decode(pa.array(values, pa.binary()))
        row = rows[0].as_py()
        by = row.pop("by")
        assert bad.null_count == len(values)
        assert by is None or by == {"name": None}
        assert row == {
            "id": 7, "s": None, "l": None, "b": None, "n": None, "d": None, "t": None,
            **taken, REST.name: rest,
        }  # fmt: skip


def test_columns_are_proposed_for_fields_that_none_has() -> None:
    counts = Counter[str]()
    decoder = filling(counts)
    values = [
        b'{"new": 1, "n": "misfit", "o": {}, "l": [{"p": 1}], "nothing": null, "_rest": 1}',
        b'{"new": 1.5, "wide": 1e300, "a b": 1, "ok": true}',
        b'{"id": "bad", "unseen": 1}',
    ]
    decoder.decode(pa.array(values, pa.binary()))
    assert columns_text(decoder.proposed) == "new double, ok boolean"
    assert counts == {
        "new": 2, "n": 1, "o": 1, "l[].p": 1, "_rest": 1, "wide": 1, "a b": 1, "ok": 1
    }  # fmt: skip


def test_what_one_file_proposes_is_bounded() -> None:
    decoder = filling()
    names = {f"n{i}": i for i in range(10 * MOST_PROPOSED)}
    decoder.decode(pa.array([orjson.dumps(names)], pa.binary()))
    assert len(decoder.proposed) == MOST_PROPOSED


ODD = (
    SCALARS
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False, allow_infinity=False)
)
GROWN = st.fixed_dictionaries(
    {},
    optional={
        "id": st.none() | st.integers(0, 9),
        "by": st.none() | PARTS,
        **dict.fromkeys("bndtT", ODD | st.lists(SCALARS, max_size=2) | PARTS),
    },
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(GROWN, LAYOUTS), max_size=5))
def test_a_record_is_whole_in_its_columns_and_the_rest(
    some: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    """No value is in both, none is changed, and blocks read what the strict reader reads."""
    values = [json.dumps(document, **layout).encode() for document, layout in some]
    array: pa.BinaryArray = pa.array([*values, *[b"{}"] * 2 * ALONE], pa.binary())
    rows, bad = filling().decode(array)
    rows.validate(full=True)
    assert bad.null_count == len(bad)
    reader = RecordReader(COLUMNS, AddedFields(COLUMNS, ADDED, Counter()))
    strict = [reader.read(value) for value in values]
    assert rows.to_pylist()[: len(values)] == pa.array(strict, rows.type).to_pylist()
    made: list[Any] = rows.to_pylist()
    for value, row in zip(values, made, strict=False):
        document, rest = json.loads(value), json.loads(row[REST.name] or "{}")
        for column in ADDED:
            name = column.name
            assert row[name] is None or name not in rest
            found = rest.get(name) if row[name] is None else row[name]
            assert found == document.get(name)
            assert isinstance(found, bool) is isinstance(document.get(name), bool)
        assert rest.get("T") == document.get("T")
