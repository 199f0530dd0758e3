"""Columns of a table that others wrote: how they are named, and what is wrong with them."""

import pytest

from binwright.inspect.decide.record_columns import RecordColumns, parse_record_columns
from binwright.protocol.errors import UserError

TYPES = {
    ("value",): "binary",
    ("topic",): "string",
    ("Partition",): "int",
    ("meta",): "struct<offset:bigint,at:timestamp>",
    ("meta", "offset"): "bigint",
    ("meta", "at"): "timestamp",
    ("kafka_offset",): "bigint",
}


def fault(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_record_columns(text).check(TYPES)
    return str(caught.value)


def test_columns_are_named_in_any_order_and_may_be_nested() -> None:
    columns = parse_record_columns("offset=meta.offset, partition=partition,topic=topic")
    assert columns == RecordColumns(("partition",), ("meta", "offset"), ("topic",))
    columns.check(TYPES)


def test_a_table_of_one_topic_needs_no_column_for_it() -> None:
    columns = parse_record_columns("partition=`a b`,offset=o")
    assert columns == RecordColumns(("a b",), ("o",))
    columns.check({("a b",): "smallint", ("O",): "int"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("partition=p", "names no offset"),
        ("topic=t", "names no offset and no partition"),
        ("partition=p,offset=o,offset=q", "'offset=q'"),
        ("partition=p,offset=o,key=k", "'key=k'"),
        ("partition=p,offset", "'offset'"),
        ("partition=p,offset=a..b", "offset: 'a..b'"),
    ],
)
def test_what_is_malformed_is_named(text: str, words: str) -> None:
    with pytest.raises(UserError, match="--columns: ") as caught:
        parse_record_columns(text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("offset", "near"),
    [
        ("offset", "perhaps meta.offset or kafka_offset"),
        ("kafka_offsets", "perhaps kafka_offset"),
        ("meta.offsets", "perhaps meta.offset"),
        ("zzz", "the table has value, topic, Partition, meta, kafka_offset"),
    ],
)
def test_of_a_column_that_is_not_there_those_nearest_are_named(offset: str, near: str) -> None:
    assert f"there is no column {offset} ({near}" in fault(f"partition=partition,offset={offset}")


def test_every_column_of_a_wrong_type_is_named_with_it() -> None:
    text = fault("topic=value,partition=topic,offset=meta.at")
    assert "value is binary, the topic must be a string" in text
    assert "topic is string, the partition must be an integer" in text
    assert "meta.at is timestamp, the offset must be an integer" in text
