"""What is staged by any schema is read back from the footer of its file: else it is damage."""

from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.consumer.decode import avro, json_schema, protobuf
from tests.tables.column_strategies import FIELD_NAMES

from binwright.consumer.decide.columns import united
from binwright.consumer.decode.avro_values import AvroReading
from binwright.consumer.decode.json_by_schema import JsonReading
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.new_fields import AddedFields
from binwright.consumer.decode.protobuf_values import ProtobufReading
from binwright.consumer.stage.parquet import decode_footer, encode
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.tables.columns import Columns
from binwright.tables.ports import Footer
from binwright.testing.records import in_columns

NAMES = st.lists(FIELD_NAMES, min_size=1, max_size=4, unique=True)
P = TopicPartition("orders", 0)


def footer_columns(reading: Any, schemas: list[Any], value: bytes) -> tuple[Columns, Any]:
    """Return the columns of all versions, and those that a file of theirs says that it has."""
    columns: Columns = ()
    for schema in schemas:
        columns = united(columns, reading.of(schema).columns, first_wins=True)
    decoder = reading.decoder(columns, {7: reading.of(schemas[0])})
    rows = in_columns({P: [Record(0, 0, None, value)]})
    content = encode(rows, Footer("id", 1, {0: (0, 1)}, topic="orders"), decoder).to_pybytes()
    footer = decode_footer(content)
    assert footer is not None
    return columns, footer.columns


@settings(max_examples=60, deadline=None)
@given(NAMES)
def test_columns_that_a_file_proposes_are_read_back(names: list[str]) -> None:
    decoder = JsonDecoder((), AddedFields((), (), Counter()))
    rows = in_columns({P: [Record(0, 0, None, orjson.dumps(dict.fromkeys(names, 1)))]})
    content = encode(rows, Footer("id", 1, {0: (0, 1)}), decoder).to_pybytes()
    footer = decode_footer(content)
    assert footer is not None
    assert (footer.proposed, footer.bad) == (decoder.proposed, 0)
    assert {column.name for column in footer.proposed} <= {*names}


@settings(max_examples=60, deadline=None)
@given(NAMES, NAMES)
def test_fields_of_avro_of_any_names_are_read_back(one: list[str], two: list[str]) -> None:
    inner = avro.record(*((name, "int") for name in two), name="In")
    fields = [*((name, "long") for name in one if name != "in"), ("in", inner)]
    versions = [avro.record(*fields), avro.record(*((name, "string") for name in two))]
    value = avro.written(
        versions[0], {n: dict.fromkeys(two, 1) if n == "in" else 1 for n, _ in fields}
    )
    columns, there = footer_columns(AvroReading(), [*map(avro.parsed, versions)], value)
    assert there == columns


@settings(max_examples=60, deadline=None)
@given(NAMES, NAMES)
def test_fields_of_json_of_any_names_are_read_back(one: list[str], two: list[str]) -> None:
    inner: Any = json_schema.objects(**dict.fromkeys(two, "integer"))
    first = json_schema.objects(
        **{name: "integer" for name in one if name != "in"}, **{"in": inner}
    )
    second = json_schema.objects(**dict.fromkeys(two, "string"))
    parsed = [*map(json_schema.parsed, (first, second))]
    columns, there = footer_columns(JsonReading(), parsed, json_schema.written({one[0]: 1}))
    assert there == columns


@pytest.mark.parametrize("depth", [15, 16, 17, 31, 32, 33, 40])
def test_lists_of_messages_of_any_depth_are_read_back(depth: int) -> None:
    levels = "".join(f"message L{n} {{ repeated L{n + 1} a = 1; }}" for n in range(depth))
    text = protobuf.proto("L0 a", rest=f"{levels} message L{depth} {{ int32 x = 1; }}")
    schema = protobuf.parsed(text)
    value = protobuf.written(schema, {"a": {"a": [{}]}})
    columns, there = footer_columns(ProtobufReading(""), [schema], value)
    assert there == columns
