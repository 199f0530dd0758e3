"""Rows of a table are compared with the records that they were made of."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from binwright.inspect.decide.differences import ValueDifference, compare, same

AT = datetime(2026, 1, 1, tzinfo=UTC)
EARLIER = datetime(2025, 1, 1, tzinfo=UTC)
BAD = {"value": b"{", "kind": "malformed", "reason": "no JSON"}
NAN = float("nan")


def record(row: dict[str, Any] | None, offset: int = 7, **more: Any) -> dict[str, Any]:
    place = {"partition": 0, "offset": offset, "timestamp": AT, "timestamp_type": 0}
    given = {**place, "key": b"k", "headers": [{"key": "h", "value": b"1"}], "row": row}
    return {**given, "bad": None, **more}


def landed(*rows: dict[str, Any]) -> dict[tuple[int, int], list[dict[str, Any]]]:
    found: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["partition"], row["offset"]), []).append(row)
    return found


def test_a_row_of_the_same_values_is_no_difference() -> None:
    rows = landed(record({"ID": 1, "more": 2}), record({"id": 5}, timestamp=EARLIER))
    found = compare([record({"id": 1}), record({"id": 1}, offset=8)], rows, {})
    assert (found.compared, found.waiting, found.differences) == (1, 1, [])


def test_a_record_that_was_erased_does_not_wait() -> None:
    noted = landed(record(None), record(None, offset=8, timestamp=EARLIER))
    given = [record({"id": 1}), record({"id": 1}, offset=8), record({"id": 1}, offset=9)]
    found = compare(given, {}, {}, noted)
    assert (found.compared, found.erased, found.waiting) == (0, 1, 2)
    found = compare(given, landed(record({"id": 1})), {}, noted)
    assert (found.compared, found.erased, found.waiting) == (1, 0, 2)


def test_each_column_that_differs_is_named() -> None:
    row = record({"id": 1, "price": None}, key=b"x")
    found = compare([record({"id": 2, "price": Decimal("1.5"), "new": "a" * 99})], landed(row), {})
    assert found.differences == [
        ValueDifference(0, 7, "key", "b'k'", "b'x'"),
        ValueDifference(0, 7, "id", "2", "1"),
        ValueDifference(0, 7, "price", "Decimal('1.5')", "None"),
        ValueDifference(0, 7, "new", f"'{'a' * 58}…", "None"),
    ]


def test_a_tombstone_has_no_values() -> None:
    assert not compare([record(None)], landed(record(None)), {}).differences
    assert not compare([record({"id": None})], landed(record(None)), {}).differences


def test_a_bad_record_is_compared_with_its_bytes() -> None:
    bad = {"partition": 0, "offset": 7, "timestamp": AT, "value": b"{"}
    once = compare([record(None, bad=BAD)], {}, landed(bad))
    assert (once.compared, once.bad, once.differences) == (1, 1, [])
    cut = compare([record(None, bad=BAD)], {}, landed(bad | {"value": b""}))
    assert cut.differences == [ValueDifference(0, 7, "value", "b'{'", "b''")]


def test_a_row_of_a_bad_record_is_a_difference() -> None:
    found = compare([record(None, bad=BAD)], landed(record({"id": 1})), {})
    assert found.differences == [ValueDifference(0, 7, "", "'no JSON'", "a row")]


def test_what_landed_as_a_bad_record_may_be_a_row_by_other_settings() -> None:
    bad = {"partition": 0, "offset": 7, "timestamp": AT, "value": b"{}"}
    found = compare([record({"id": None})], {}, landed(bad))
    assert (found.compared, found.mended, found.differences) == (1, 1, [])


@pytest.mark.parametrize(
    ("kafka", "table", "wanted"),
    [
        (1, 1, True),
        (1, 2, False),
        (None, None, True),
        (None, 0, False),
        (NAN, float("nan"), True),
        (NAN, 1.0, False),
        ({"a": 1}, {"A": 1, "b": 2}, True),
        ({"a": 1}, {"b": 1}, False),
        ({"a": None}, {}, True),
        ({"a": 1}, None, False),
        ([1, {"a": 1}], [1, {"a": 1}], True),
        ([1], [1, 2], False),
        ([1], 1, False),
        ([("k", 1)], [("k", 1)], True),
        ([("k", 1)], [("k", 2)], False),
    ],
)
def test_values_are_compared_to_their_depth(kafka: Any, table: Any, *, wanted: bool) -> None:
    assert same(kafka, table) is wanted
