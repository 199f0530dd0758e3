"""Records become rows without loss or change."""

from datetime import UTC, datetime

import pytest

from binwright.consumer.staging.rows import COLUMNS, LATEST_MS, SCHEMA, to_arrow
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 11)


def test_a_record_becomes_a_row_with_all_its_fields() -> None:
    headers = (("a", b"1"), ("a", None), ("b", b""))
    record = Record(7, 1_700_000_000_123, b"k", b"v", 1, headers)

    assert to_arrow({Q: [record]}).to_pylist() == [
        {
            "topic": "orders",
            "partition": 11,
            "offset": 7,
            "timestamp": datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=UTC),
            "timestamp_type": 1,
            "key": b"k",
            "value": b"v",
            "headers": [
                {"key": "a", "value": b"1"},
                {"key": "a", "value": None},
                {"key": "b", "value": b""},
            ],
        }
    ]


def test_missing_fields_are_null_and_missing_headers_an_empty_list() -> None:
    row = to_arrow({P: [Record(0, 0, None, None)]}).to_pylist()[0]

    assert (row["key"], row["value"], row["headers"]) == (None, None, [])


def test_headers_stay_with_their_record() -> None:
    given = [(), (("a", b"1"),), (), (("b", b"2"), ("c", b"3")), ()]
    table = to_arrow({P: [Record(i, 0, None, b"", headers=h) for i, h in enumerate(given)]})

    assert [
        tuple((header["key"], header["value"]) for header in row["headers"])
        for row in table.to_pylist()
    ] == given


def test_rows_are_ordered_by_partition_as_given_and_by_offset() -> None:
    table = to_arrow(
        {Q: [Record(5, 0, None, b"")], P: [Record(1, 0, None, b""), Record(9, 0, None, b"")]}
    )
    positions = zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)

    assert list(positions) == [(11, 5), (0, 1), (0, 9)]


@pytest.mark.parametrize("ms", [-1, LATEST_MS + 1, 1_700_000_000_000_000_000, 2**63 - 1])
def test_a_timestamp_out_of_range_is_null(ms: int) -> None:
    """One producer that gives nanoseconds for milliseconds must not stop a table."""
    assert to_arrow({P: [Record(0, ms, None, b"")]})["timestamp"].to_pylist() == [None]


def test_the_last_valid_timestamp_is_kept() -> None:
    assert to_arrow({P: [Record(0, LATEST_MS, None, b"")]})["timestamp"].to_pylist() == [
        datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
    ]


@pytest.mark.parametrize("rows", [{}, {P: []}])
def test_no_records_are_an_empty_table(rows: dict[TopicPartition, list[Record]]) -> None:
    table = to_arrow(rows)

    assert table.num_rows == 0
    assert table.schema == SCHEMA


def test_the_columns_are_the_same_in_arrow_and_in_spark() -> None:
    assert list(COLUMNS) == SCHEMA.names
