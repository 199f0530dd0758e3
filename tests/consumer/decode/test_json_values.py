"""Values become rows in their order; the bad ones beside them."""

import random
from typing import Any

import pyarrow as pa
import pytest

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.json_records import RecordReader
from binwright.consumer.decode.json_values import ALONE, BLOCK_ROWS, FEW, JsonDecoder
from binwright.tables.columns import parse_columns

COLUMNS = parse_columns("a int, at timestamp, tags array<string>")
IN_RECORDS = parse_columns("a int, b binary")  # are not read in blocks


def decoded(values: list[bytes | None], columns: Any = COLUMNS) -> tuple[list[Any], list[Any]]:
    rows, bad = JsonDecoder(columns).decode(pa.array(values, pa.binary()))
    rows.validate(full=True)
    bad.validate(full=True)
    assert (rows.type, bad.type) == (row_type(columns), BAD)
    assert len(rows) == len(bad) == len(values)
    assert all(
        (row is None) != (why is None)
        for row, why in zip(rows, bad.to_pylist(), strict=True)
        if row.is_valid
    )
    return rows.to_pylist(), bad.to_pylist()


def numbered(first: int, count: int) -> list[bytes | None]:
    return [b'{"a":%d,"tags":["x"]}' % n for n in range(first, first + count)]


@pytest.mark.parametrize("columns", [COLUMNS, IN_RECORDS])
def test_no_values_are_no_rows(columns: Any) -> None:
    assert decoded([], columns) == ([], [])


@pytest.mark.parametrize("columns", [COLUMNS, IN_RECORDS])
def test_each_value_is_a_row_or_bad(columns: Any) -> None:
    values = [b'{"a":1}', b"", None, b'{"a":"x"}', b"{}", b'{"a":2}']
    rows, bad = decoded(values, columns)
    assert [row and row["a"] for row in rows] == [1, None, None, None, None, 2]
    assert [row is None for row in rows] == [False, True, False, True, False, False]
    assert [why and (why["value"], why["kind"]) for why in bad] == [
        None, (b"", "malformed"), None, (b'{"a":"x"}', "incompatible"), None, None,
    ]  # fmt: skip
    assert bad[3]["reason"] == "a needs int, has the string 'x'"


@pytest.mark.parametrize("count", [1, FEW, FEW + 1, BLOCK_ROWS - 1, BLOCK_ROWS + 1])
def test_rows_keep_their_order_over_blocks(count: int) -> None:
    rows, bad = decoded(numbered(0, count))
    assert [row["a"] for row in rows] == list(range(count))
    assert bad == [None] * count


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff",
        b'{"a":"x"}',
        b'{"a":1',
        b'{"a":1}{"a":2}',
        b'{"a":1]}',
        b'{"a":99999999999}',  # Arrow does not name its row
        b"{}x}",  # it names the next one
    ],
)
def test_one_bad_value_among_many_is_one_bad_row(garbage: bytes) -> None:
    values = numbered(0, 40_000)
    values[31_234] = garbage
    rows, bad = decoded(values)
    assert [n for n, row in enumerate(rows) if row is None] == [31_234]
    assert [n for n, why in enumerate(bad) if why is not None] == [31_234]
    assert [row["a"] for row in rows if row] == [n for n in range(40_000) if n != 31_234]


def test_bad_values_anywhere_leave_the_others_as_they_are() -> None:
    choose = random.Random(1)
    kinds = [b"no json", b'{"a":1.5}', b'{"a":1}}', None, b'{"at":"2026-11-23T10:11:12+01"}']
    values: list[bytes | None] = [
        choose.choice(kinds) if choose.random() < 0.01 else value for value in numbered(0, 30_000)
    ]
    rows, bad = decoded(values)
    for value, row, why in zip(values, rows, bad, strict=True):
        is_bad = value in kinds[:3]
        assert (row is None, why is not None) == (is_bad, is_bad)
        if not is_bad and value and value.startswith(b'{"a"'):
            assert b'{"a":%d,"tags":["x"]}' % row["a"] == value


def test_few_values_are_read_one_by_one_because_others_are_bad(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where Arrow names the bad value, those around it stay in blocks."""
    alone: list[bytes | None] = []
    read = RecordReader.read

    def count(reader: RecordReader, value: bytes | None) -> Any:
        alone.append(value)
        return read(reader, value)

    monkeypatch.setattr(RecordReader, "read", count)
    choose = random.Random(2)
    values: list[bytes | None] = [
        b'{"a":"x"}' if choose.random() < 0.0005 else value for value in numbered(0, 20_000)
    ]
    bad = values.count(b'{"a":"x"}')
    assert bad >= 5
    decoded(values)
    assert alone.count(b'{"a":"x"}') == bad
    assert len(alone) <= (1 + ALONE) * bad


def test_large_values_are_read_in_smaller_blocks() -> None:
    values: list[bytes | None] = [b'{"a":%d,"q":"%s"}' % (n, b"x" * 60_000) for n in range(600)]
    rows, _ = decoded(values)
    assert [row["a"] for row in rows] == list(range(600))


def test_a_slice_is_decoded_like_a_copy() -> None:
    values = pa.array(numbered(0, 100), pa.binary()).slice(10, 50)
    rows, _ = JsonDecoder(COLUMNS).decode(values)
    assert [row.as_py()["a"] for row in rows] == list(range(10, 60))


@pytest.mark.parametrize("count", [1, 1_000])
def test_fields_of_odd_names_are_read_into_cleaned_columns(count: int) -> None:
    """In blocks and one by one."""
    text = (
        "`Date Time` BIGINT, `tick``s` BIGINT, by STRUCT<`Amount (EUR)`: DOUBLE>, "
        "l ARRAY<STRUCT<`a b`: INT, `a,b`: INT>>"
    )
    value = b'{"Date Time":1,"tick`s":2,"by":{"Amount (EUR)":1.5},"l":[{"a b":1,"a,b":2}]}'
    columns = parse_columns(text)
    rows, bad = JsonDecoder(columns).decode(pa.array([value] * count, pa.binary()))
    assert bad.null_count == count
    assert rows[count - 1].as_py() == {
        "Date_Time": 1, "tick`s": 2, "by": {"Amount__EUR_": 1.5}, "l": [{"a_b": 1, "a_b_2": 2}]
    }  # fmt: skip
    assert rows.type == row_type(columns)
