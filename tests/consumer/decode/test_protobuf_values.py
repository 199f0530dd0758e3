"""Values are decoded by the schemas, and the messages of these, that their headers name."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from tests.consumer.decode.avro import parsed as avro_schema
from tests.consumer.decode.avro import record
from tests.consumer.decode.protobuf import body, parsed, proto, written

from binwright.consumer.decode.arrow_types import BAD, row_type
from binwright.consumer.decode.avro_values import AvroReading
from binwright.consumer.decode.one_by_one import Bad
from binwright.consumer.decode.protobuf_values import (
    ProtobufDecoder,
    ProtobufReading,
    TableSchema,
    message_indexes,
)
from binwright.tables.columns import columns_text, parse_columns
from binwright.tables.schemas import SchemaRefused

ONE = parsed(proto("int32 id"))
TWO = parsed(proto("int64 id", "string item"))
TEXT = parsed(proto("string id"))
EVENTS = parsed(
    """syntax = "proto3"; package shop;
    message Money { int64 cents = 1; }
    message Paid { int32 id = 1; Money money = 2; message Line { int32 id = 1; string item = 2; } }
    """
)
COLUMNS = parse_columns("id bigint, item string")
HEAD = b"\0\0\0\0\x07"


def test_each_value_is_read_by_its_own_schema() -> None:
    schemas: dict[int, TableSchema | Bad] = {
        7: TableSchema(ONE, ""),
        8: TableSchema(TWO, ""),
        9: Bad("schema_unknown", "no 9"),
        10: TableSchema(TEXT, ""),
    }
    values = [
        written(ONE, {"id": 1}, 7),
        written(TWO, {"id": 2, "item": "tea"}, 8),
        None,
        b"",
        b'{"id":1}',
        written(ONE, {"id": 1}, 9),
        written(TEXT, {"id": "x"}, 10),
        written(TWO, {"id": 2, "item": "tea"}, 8)[:-1],
        HEAD,
        HEAD + b"\0",
    ]
    rows, bad = ProtobufDecoder(COLUMNS, schemas).decode(pa.array(values, pa.binary()))
    assert (rows.type, bad.type) == (row_type(COLUMNS), BAD)
    assert rows.to_pylist() == [
        {"id": 1, "item": None}, {"id": 2, "item": "tea"}, {"id": None, "item": None},
        None, None, None, None, None, None, {"id": 0, "item": None},
    ]  # fmt: skip
    assert [why and (why["kind"], why["reason"][:70]) for why in bad.to_pylist()] == [
        None, None, None,
        ("malformed", "needs 0 and a schema's id in front, has the string ''"),
        ("malformed", "needs 0 and a schema's id in front, has the string '7b 22 69 64 22'"),
        ("schema_unknown", "no 9"),
        ("incompatible", "schema 10: id needs bigint, has string"),
        ("malformed", "is no value of its schema: Error parsing message with type 'shop.Order"),
        ("malformed", "needs the indexes of a message behind its header: ends within them"),
        None,
    ]  # fmt: skip
    assert [why and why["value"] for why in bad.to_pylist()][3:9] == values[3:9]


@pytest.mark.parametrize(
    ("indexes", "expected"),
    [
        ("00", (0,)),  # the short form
        ("02 00", (0,)),  # one index, 0
        ("02 02", (1,)),
        ("04 02 00", (1, 0)),  # two: the first message within the second of the file
        ("06 00 04 c8 01", (0, 2, 100)),  # 100 takes two bytes
        ("82 00 02", (1,)),  # a number may be longer than it must be
        ("02 fe ff ff ff 0f", ((1 << 31) - 1,)),
        ("02 01", (-1,)),  # zigzag has negative numbers, of which none is a place
    ],
)
def test_indexes_by_the_specification_are_read(indexes: str, expected: tuple[int, ...]) -> None:
    value = HEAD + bytes.fromhex(indexes)
    assert message_indexes(value + b"rest") == (expected, len(value))


@pytest.mark.parametrize(
    ("indexes", "reason"),
    [
        ("", "ends within them"),
        ("04 02", "ends within them"),
        ("80", "ends within them"),
        ("02 ff ff ff ff ff 0f", "has a long one"),
        ("01", "names -1 indexes"),
        ("42", "names 33 indexes"),
        ("fe ff ff ff 0f", "names 2147483647 indexes"),
    ],
)
def test_indexes_that_are_none_are_refused(indexes: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        message_indexes(HEAD + bytes.fromhex(indexes))


def reasons(decoder: ProtobufDecoder, *values: bytes) -> list[str | None]:
    bad = decoder.decode(pa.array(values, pa.binary()))[1].to_pylist()
    return [why and f"{why['kind']}: {why['reason']}" for why in bad]


PAID = written(EVENTS, {"id": 1}, message="shop.Paid", indexes=b"\x02\x02")
LINE = written(EVENTS, {"id": 2, "item": "x"}, message="shop.Paid.Line", indexes=b"\x04\x02\x00")
MONEY = written(EVENTS, {"cents": 5})


HINT = "`message` of the table's entry can name it"


def test_a_table_has_the_first_message_unless_it_names_one() -> None:
    first = ProtobufReading("").of(EVENTS)
    assert columns_text(first.columns) == "cents bigint"
    decoder = ProtobufReading("").decoder(first.columns, {7: first})
    assert reasons(decoder, MONEY, PAID) == [
        None,
        f"incompatible: schema 7: the value is a shop.Paid, not a shop.Money; {HINT}",
    ]

    named = ProtobufReading("shop.Paid").of(EVENTS)
    assert columns_text(named.columns) == "id int, money struct<cents:bigint>"
    decoder = ProtobufReading("shop.Paid").decoder(named.columns, {7: named})
    assert reasons(decoder, PAID, LINE, MONEY) == [
        None,
        "incompatible: schema 7: the value is a shop.Paid.Line, not a shop.Paid",
        "incompatible: schema 7: the value is a shop.Money, not a shop.Paid",
    ]


def test_a_table_with_columns_takes_each_message_that_its_values_name() -> None:
    reading = ProtobufReading(None)
    decoder = reading.decoder(COLUMNS, {7: reading.of(EVENTS)})
    rows, _ = decoder.decode(pa.array([PAID, LINE, MONEY], pa.binary()))
    assert rows.to_pylist() == [
        {"id": 1, "item": None}, {"id": 2, "item": "x"}, {"id": None, "item": None},
    ]  # fmt: skip


def test_indexes_of_no_message_are_malformed() -> None:
    """A producer that forgot the indexes has the message's own bytes there."""
    decoder = ProtobufDecoder(COLUMNS, {7: TableSchema(ONE, "")})
    forgotten = HEAD + body(ONE, {"id": 1})
    assert reasons(decoder, forgotten, HEAD + b"\x02\x04", HEAD + b"\x02\x01") == [
        "malformed: needs the indexes of a message behind its header: ends within them",
        "malformed: schema 7: has no message at [2]",
        "malformed: schema 7: has no message at [-1]",
    ]


def test_a_schema_of_another_format_or_without_the_message_is_refused() -> None:
    with pytest.raises(SchemaRefused, match=r"has no message shop\.Nobody"):
        ProtobufReading("shop.Nobody").of(EVENTS)
    with pytest.raises(SchemaRefused, match="is not of Protobuf, as the table is"):
        ProtobufReading("").of(avro_schema(record(("id", "int"))))
    with pytest.raises(SchemaRefused, match="is not of Avro, as the table is"):
        AvroReading().of(EVENTS)


CONFLUENT = """syntax = "proto3"; package shop;
import "point.proto"; import "google/protobuf/timestamp.proto";
message Money { int64 cents = 1; }
message Paid {
  int32 id = 1; Money money = 2; map<string, int32> by = 3; geo.Point place = 4;
  google.protobuf.Timestamp at = 5;
  message Line { int32 id = 1; string item = 2; }
}"""


@pytest.mark.parametrize(
    ("value", "row"),
    [
        ("00 00 00 00 02 00 08 05", {"cents": 5}),
        ("00 00 00 00 03 02 02 0807 12020805 1a050a016b1001 22020803 2a060880f2d6ca06",
         {"id": 7, "money": {"cents": 5}, "by": [("k", 1)], "place": {"x": 3},
          "at": datetime(2026, 1, 1, tzinfo=UTC)}),
        ("00 00 00 00 04 04 02 02 08 01 12 01 78", {"id": 1, "item": "x"}),
    ],
)  # fmt: skip
def test_what_confluent_s_own_serializer_wrote_is_read(value: str, row: dict[str, Any]) -> None:
    """Bytes of `ProtobufSerializer` of confluent-kafka 2.16.1, of the second message and a nested.

    The nested one has the index 1: the entry of the map in front of it is counted.
    """
    point = 'syntax = "proto3"; package geo; message Point { int32 x = 1; }'
    schema = parsed(CONFLUENT, point_proto=point)
    content = bytes.fromhex(value)
    indexes, _ = message_indexes(content)
    name = schema.message_at(indexes).full_name
    decoder = ProtobufDecoder(schema.columns(name), {content[4]: TableSchema(schema, name)})
    assert decoder.decode(pa.array([content], pa.binary()))[0].to_pylist() == [row]
