"""One damaged value among many is one bad record, and a value of NULLs beside it is a row."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from tests.consumer.decode import avro, json_schema, protobuf

from binwright.consumer.decode.arrow_types import row_type
from binwright.consumer.decode.avro_values import AvroReading
from binwright.consumer.decode.csv_values import CsvDecoder
from binwright.consumer.decode.json_by_schema import JsonReading
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.one_by_one import decode_each, decode_parts
from binwright.consumer.decode.protobuf_values import ProtobufReading
from binwright.consumer.decode.text_values import TextDecoder
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.tables.columns import SIMPLE, parse_columns
from binwright.tables.ports import ValueDecoder

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


WRAPPED = ("{}", "array<{}>", "map<string,{}>", "struct<f:{}>", "array<struct<f:map<string,{}>>>")
"""A type, and others around it."""
UNFIT: Mapping[str, Any] = {
    "boolean": object(),
    "tinyint": 128,
    "smallint": -(1 << 15) - 1,
    "int": 1 << 31,
    "bigint": 1 << 63,
    "float": object(),
    "double": (1 << 53) + 1,
    "string": "\ud800",
    "binary": "\ud800",
    "date": 1 << 31,
    "timestamp": 1 << 63,
    "decimal(9,2)": 10**20,
}
"""What Arrow refuses, as it refuses it: no reader should return it, and one may."""


def wrapped(kind: str, value: Any) -> Any:
    match kind:
        case "array<struct<f:map<string,{}>>>":
            return [{"f": [("k", value)]}]
        case "array<{}>":
            return [value]
        case "map<string,{}>":
            return [("k", value)]
        case _:
            return {"f": value} if kind.startswith("struct") else value


def test_each_type_has_a_value_that_arrow_refuses() -> None:
    assert UNFIT.keys() >= SIMPLE


@pytest.mark.parametrize("around", WRAPPED)
@pytest.mark.parametrize("name", UNFIT)
def test_a_row_that_arrow_refuses_is_one_bad_record(name: str, around: str) -> None:
    columns = parse_columns(f"a {around.format(name)}, b INT")

    def read(value: bytes | None) -> Any:
        unfit = wrapped(around, UNFIT[name]) if value == b"unfit" else None
        return {"a": unfit, "b": 1}

    values = pa.array([b"good", b"unfit", b"good", None], pa.binary())
    rows, bad = decode_each(values, read, row_type(columns))
    assert [each and each["kind"] for each in bad.to_pylist()] == [None, "malformed", None, None]
    assert bad[1].as_py()["value"] == b"unfit"
    assert [each and each["b"] for each in rows.to_pylist()] == [1, None, 1, 1]


def test_whatever_fails_while_one_value_is_read_is_one_bad_record() -> None:
    def read(value: bytes | None) -> Any:
        if value == b"bug":
            raise ZeroDivisionError("of \ud800")
        return {"b": 1}

    values = pa.array([b"good", b"bug", b"good"], pa.binary())
    rows, bad = decode_each(values, read, row_type(parse_columns("b INT")))
    assert rows.to_pylist() == [{"b": 1}, None, {"b": 1}]
    assert "ZeroDivisionError" in bad[1].as_py()["reason"]


class Failing:
    """A decoder that fails as a whole where one of its values is bad."""

    columns, settings, proposed = parse_columns("b INT"), "", ()

    def memory(self, values: Any, *_: Any) -> int:
        return len(values)

    def decode(self, values: Any, headers: Any = None, keys: Any = None) -> tuple[Any, Any]:
        if b"bug" in values.to_pylist():
            raise OverflowError("too large")
        assert len(values) == len(headers) == len(keys)
        return decode_each(values, lambda value: {"b": len(value or b"")}, row_type(self.columns))


def test_a_decoder_that_fails_as_a_whole_loses_the_record_that_does_it() -> None:
    given = [b"%d" % n for n in range(100)]
    given[37] = given[70] = b"bug"
    values = pa.array(given, pa.binary())
    rows, bad = decode_parts(Failing(), values, values, values)
    assert [n for n, each in enumerate(bad.to_pylist()) if each] == [37, 70]
    assert [n for n, each in enumerate(rows.to_pylist()) if each is None] == [37, 70]
    assert bad[37].as_py()["value"] == b"bug"


@pytest.mark.parametrize("fault", [MemoryError, OSError])
def test_what_is_no_fault_of_a_value_is_raised(fault: type[Exception]) -> None:
    def read(_: bytes | None) -> Any:
        raise fault

    with pytest.raises(fault):
        decode_each(pa.array([b"x"], pa.binary()), read, row_type(parse_columns("b INT")))


NUMBERS = [
    f"{sign}{number}"
    for sign in ("", "-")
    for number in (
        *(f"{digit}e{power}9999999999999999999" for digit in "01" for power in ("9", "-9")),
        *("9" * 400, "1e400", "0." + "9" * 400, "1e2147483648"),
    )
]
KINDS = [*sorted(SIMPLE), "decimal(9,2)", "decimal(38,38)"]


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_beyond_all_bounds_are_rows_or_bad_records(kind: str) -> None:
    columns = parse_columns(f"a {kind}")
    texts = [number.encode() for number in NUMBERS]
    for decoder, values in (
        (CsvDecoder(columns, ","), texts),
        (JsonDecoder(columns), [b'{"a":%s}' % text for text in texts]),
        (JsonDecoder(columns), [b'{"a":"%s"}' % text for text in texts]),
        (
            JsonDecoder(parse_columns(f"a MAP<STRING,{kind}>")),
            [b'{"a":{"k":%s}}' % text for text in texts],
        ),
    ):
        rows, bad = decoder.decode(pa.array(values, pa.binary()))
        rows.validate(full=True)
        assert rows.is_valid().to_pylist() == bad.is_null().to_pylist()


AVRO_INTS = {
    "a INT": "int",
    "a ARRAY<INT>": {"type": "array", "items": "int"},
    "a MAP<STRING,INT>": {"type": "map", "values": "int"},
    "a BIGINT": ["null", "int"],
    "a DOUBLE": "int",
}


@pytest.mark.parametrize("text", AVRO_INTS)
@pytest.mark.parametrize("number", [1 << 31, -(1 << 31) - 1, 1 << 40, (1 << 63) - 1])
def test_an_avro_int_of_more_than_32_bits_is_one_bad_record(text: str, number: int) -> None:
    kind, columns = AVRO_INTS[text], parse_columns(text)
    schema = avro.parsed(avro.record(("a", kind)))
    wide = avro.record(("a", json.loads(json.dumps(kind).replace("int", "long"))))
    value = {"array": [number], "map": {"k": number}}
    wrap = value.get(kind["type"] if isinstance(kind, dict) else "", number)
    decoder = AvroReading().decoder(columns, {7: schema})
    good, unfit = ({"a": each} for each in (next(iter(good_of(kind))), wrap))
    values = [avro.written(wide, each) for each in (good, unfit, good)]
    rows, bad = decoder.decode(pa.array(values, pa.binary()))
    assert bad.is_valid().to_pylist() == [False, True, False]
    assert rows.is_valid().to_pylist() == [True, False, True]


def good_of(kind: Any) -> list[Any]:
    name = kind["type"] if isinstance(kind, dict) else ""
    return [{"array": [1], "map": {"k": 1}}.get(name, 1)]
