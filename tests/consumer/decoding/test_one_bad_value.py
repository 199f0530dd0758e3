"""One damaged value among many is one bad record, and a value of NULLs beside it is a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from tests.consumer.decoding import avro, json_schema, protobuf

from binwright.consumer.decoding.avro_values import AvroReading
from binwright.consumer.decoding.csv_values import CsvDecoder
from binwright.consumer.decoding.json_by_schema import JsonReading
from binwright.consumer.decoding.json_values import JsonDecoder
from binwright.consumer.decoding.protobuf_values import ProtobufReading
from binwright.consumer.decoding.text_values import TextDecoder
from binwright.consumer.decoding.variant_values import VariantDecoder
from binwright.protocol.columns import parse_columns
from binwright.protocol.ports.lake import ValueDecoder

COUNT, BAD_AT, NULL_AT = 30_000, 17_001, 17_002
COLUMNS = parse_columns("id BIGINT, item STRING")
NULLS = {"id": None, "item": None}
AVRO = avro.record(("id", ["null", "long"]), ("item", ["null", "string"]))
OBJECTS = json_schema.objects(id="integer", item="string")
PROTO = protobuf.parsed(protobuf.proto("optional int64 id", "optional string item"))


@dataclass(frozen=True, slots=True)
class Format:
    """A decoder, its values by number, one that is damaged, and one of NULLs with its row."""

    decoder: Callable[[], ValueDecoder]
    value: Callable[[int], bytes]
    damaged: bytes
    nulls: bytes
    row: Mapping[str, Any]


def by_schema(reading: Any, schema: Any) -> ValueDecoder:
    decoder: ValueDecoder = reading.decoder(COLUMNS, {7: reading.of(schema)})
    return decoder


def text(number: int) -> bytes:
    return b'{"id": %d, "item": "tea"}' % number


FORMATS = {
    "json": Format(
        lambda: JsonDecoder(COLUMNS), text, b'{"id": 1, \x00"item": "tea"}', b"{}", NULLS
    ),
    "csv": Format(
        lambda: CsvDecoder(COLUMNS, ","), lambda n: b"%d,tea" % n, b"1\xff,tea", b",", NULLS
    ),
    "string": Format(
        lambda: TextDecoder(parse_columns("value STRING")), text, b"\xff", b"", {"value": ""}
    ),
    "variant": Format(
        lambda: VariantDecoder(parse_columns("value VARIANT")),
        text,
        b'{"id": 1\x00}',
        b"null",
        {"value": "null"},
    ),
    "avro": Format(
        lambda: by_schema(AvroReading(), avro.parsed(AVRO)),
        lambda n: avro.written(AVRO, {"id": n, "item": "tea"}),
        avro.written(AVRO, {"id": 1, "item": "tea"}) + b"\x00",
        avro.written(AVRO, NULLS),
        NULLS,
    ),
    "protobuf": Format(
        lambda: by_schema(ProtobufReading(""), PROTO),
        lambda n: protobuf.written(PROTO, {"id": n, "item": "tea"}),
        protobuf.written(PROTO, {"id": 1, "item": "tea"}) + b"\xff",
        protobuf.written(PROTO, {}),
        NULLS,
    ),
    "json by schema": Format(
        lambda: by_schema(JsonReading(), json_schema.parsed(OBJECTS)),
        lambda n: json_schema.written({"id": n, "item": "tea"}),
        json_schema.written(b'{"id": 1,, "item": "tea"}'),
        json_schema.written({}),
        NULLS,
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_garbage_byte_costs_one_record_and_a_value_of_nulls_is_a_row(name: str) -> None:
    of = FORMATS[name]
    values = [of.value(number) for number in range(COUNT)]
    values[BAD_AT], values[NULL_AT] = of.damaged, of.nulls
    rows, bad = of.decoder().decode(pa.array(values, pa.binary()))

    assert [number for number, each in enumerate(bad.is_valid().to_pylist()) if each] == [BAD_AT]
    assert [n for n, each in enumerate(rows.is_valid().to_pylist()) if not each] == [BAD_AT]
    assert bad[BAD_AT].as_py()["value"] == of.damaged
    assert bad[BAD_AT].as_py()["kind"] in {"malformed", "incompatible"}
    assert rows[NULL_AT].as_py() == of.row
