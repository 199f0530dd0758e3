"""Values that name their schema by a GUID or in a header are read as those with an id in front."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from tests.consumer.decode import avro, json_schema, protobuf
from tests.consumer.decode.fake_registry import SUBJECT, FakeRegistry
from tests.consumer.decode.schema_headers import in_front, in_header

from binwright.consumer.decode.avro_values import AvroReading
from binwright.consumer.decode.json_by_schema import JsonReading
from binwright.consumer.decode.portions import DecodingMemory
from binwright.consumer.decode.protobuf_values import ProtobufReading
from binwright.consumer.decode.registry_decoders import RegistryDecoders, SchemaReading
from binwright.consumer.decode.registry_schemas import ApicurioId, OwnIds
from binwright.consumer.decode.schema_names import (
    FIRST_LOCAL_ID,
    Apicurio,
    NamesDecoder,
    header_of,
    schema_names,
)
from binwright.consumer.stage.parquet import decoded, decoded_schema, to_arrow
from binwright.protocol.errors import RegistryUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Headers, Record, Records
from binwright.tables.ports import ValueDecoder

GUID, OTHER, UNKNOWN = (UUID(int=(n << 124) + 0x7F00FF) for n in (1, 2, 3))
P = TopicPartition("orders", 0)
AVRO = avro.record(("id", "int"), ("item", ["null", "string"]))
VALUE_SCHEMA = header_of("value")
PROTOBUF = protobuf.parsed(
    protobuf.proto("int32 id", rest="message Event { bool paid = 1; int32 id = 2; }")
)
JSON = json_schema.parsed(json_schema.objects(id="integer"))
FORMATS: dict[str, tuple[SchemaReading[Any], Any, bytes, int]] = {
    "avro": (AvroReading(), AVRO, avro.written(AVRO, {"id": 1, "item": None}), 0),
    "protobuf": (ProtobufReading(""), PROTOBUF, protobuf.written(PROTOBUF, {"id": 1}), 1),
    "json": (JsonReading(), JSON, json_schema.written({"id": 1}), 0),
}
"""How a table reads, a schema, a value with the id 7 in front, how many bytes are indexes."""

Value = bytes | None | tuple[bytes | None, Headers]


def records(values: Sequence[Value]) -> Records:
    given = [each if isinstance(each, tuple) else (each, ()) for each in values]
    return Records.of(
        Record(n, 0, None, value, headers=(*headers,)) for n, (value, headers) in enumerate(given)
    )


def as_arrays(part: Records) -> Records:
    """Return the records as those of large batches: Arrow arrays that are parts of longer ones."""
    table: Any = to_arrow({P: [part, part]}).combine_chunks().slice(len(part))
    column: dict[str, Any] = {name: table[name].chunk(0) for name in table.column_names}
    offsets = column["offset"].to_numpy()
    return Records(
        offsets=offsets,
        timestamps_ms=offsets,
        timestamp_types=offsets,
        keys=column["key"],
        values=column["value"],
        headers=column["headers"],
        bytes=part.bytes,
    )


def registry_of(kind: str) -> FakeRegistry:
    """Return a registry that has a schema of this format by 7 and GUID, one of another by OTHER."""
    registry = FakeRegistry()
    registry.register(7, FORMATS[kind][1], guid=GUID)
    other = FORMATS["json" if kind == "avro" else "avro"][1]
    registry.register(8, other, "other-value", guid=OTHER)
    return registry


def decode_all(table: pa.Table, decoder: ValueDecoder) -> pa.Table:
    """Return the rows of all portions."""
    batches = decoded(table, decoder, DecodingMemory())
    return pa.Table.from_batches(batches, decoded_schema(decoder.columns))


async def landed(
    reading: SchemaReading[Any],
    registry: FakeRegistry,
    values: Sequence[Value],
    apicurio: Apicurio | None = None,
) -> list[Any]:
    """Return what each value becomes: its id, or the kind and the reason; it is kept as it came."""
    part = records(values)
    found = []
    for rows in ([part], [as_arrays(part)]):
        decoders = RegistryDecoders(registry, apicurio)
        decoder = await decoders.decoder(SUBJECT, reading, (), [rows])
        table = decode_all(to_arrow({P: rows}), decoder).to_pylist()
        for row, value in zip(table, part.values, strict=True):
            assert (row["row"] is None) is (row["bad"] is not None)
            assert row["bad"] is None or row["bad"]["value"] == value
        assert [row["headers"] for row in table] == to_arrow({P: rows})["headers"].to_pylist()
        found.append(
            [
                row["row"]["id"] if bad is None else f"{bad['kind']}: {bad['reason']}"
                for row in table
                for bad in [row["bad"]]
            ]
        )
    assert found[0] == found[1]
    return found[0]


every_format = pytest.mark.parametrize("kind", FORMATS)


@pytest.mark.looptime
@every_format
async def test_each_form_of_naming_a_schema_is_read(kind: str) -> None:
    reading, _, value, indexes = FORMATS[kind]
    body, [_, (key, name)] = in_header(GUID, value, indexes)
    assert name is not None
    by_id = b"\0\0\0\0\7" + name[17:]
    found = await landed(
        reading,
        registry_of(kind),
        [
            value,
            in_header(GUID, value, indexes),
            in_front(GUID, value),
            (body, [(key, by_id)]),
            (value, [(key, None)]),  # such a header is none
            in_header(UNKNOWN, value, indexes),
            in_front(UNKNOWN, value),
        ],
    )
    unknown = f"schema_unknown: the registry has no schema {UNKNOWN}"
    assert found == [1, 1, 1, 1, 1, unknown, unknown]


@every_format
@pytest.mark.parametrize("only", ["header", "front"])
async def test_a_file_may_have_one_form_alone(kind: str, only: str) -> None:
    reading, _, value, indexes = FORMATS[kind]
    one = in_header(GUID, value, indexes) if only == "header" else in_front(GUID, value)
    registry = registry_of(kind)
    assert await landed(reading, registry, [one, one]) == [1, 1]
    assert registry.asked[GUID] == 2  # once by each `RegistryDecoders`
    assert not registry.asked[7]


@every_format
async def test_a_header_of_a_wrong_length_is_bad(kind: str) -> None:
    reading, _, value, indexes = FORMATS[kind]
    body, [_, (key, name)] = in_header(GUID, value, indexes)
    assert name is not None
    names = [b"", name[:16], b"\2" + name[1:], name + b"\7"]
    found = await landed(reading, registry_of(kind), [*((body, [(key, n)]) for n in names), value])
    needs = f"malformed: header {header_of('value')} needs 1 and a schema's GUID of 16 bytes, has "
    assert found == [
        f"{needs}nothing",
        f"{needs}{name[:16].hex(' ')}",
        f"{needs}02 {name[1:].hex(' ')}",
        f"malformed: header {header_of('value')} has 1 more bytes than a schema's name",
        1,
    ]


@every_format
async def test_with_a_header_the_front_of_a_value_names_nothing(kind: str) -> None:
    """As Confluent's reader has it: what stands in front is a part of the value."""
    reading, _, value, indexes = FORMATS[kind]
    _, headers = in_header(GUID, value, indexes)
    both = [(value, headers), (in_front(GUID, value), headers)]
    found = await landed(reading, registry_of(kind), both)
    assert [each.split(":")[0] for each in found] == ["malformed", "malformed"]


@every_format
async def test_a_guid_of_another_format_is_bad(kind: str) -> None:
    reading, _, value, indexes = FORMATS[kind]
    found = await landed(
        reading,
        registry_of(kind),
        [in_header(OTHER, value, indexes), in_front(OTHER, value), value],
    )
    why = {
        "avro": "is not of Avro, as the table is",
        "protobuf": "is not of Protobuf, as the table is",
        "json": "is no JSON Schema, and the table is of JSON",
    }[kind]
    assert found == [f"incompatible: schema {OTHER}: {why}"] * 2 + [1]


@every_format
async def test_a_tombstone_with_a_header_is_a_row(kind: str) -> None:
    reading, _, value, indexes = FORMATS[kind]
    _, headers = in_header(UNKNOWN, value, indexes)
    registry = registry_of(kind)
    wrong: Headers = [(VALUE_SCHEMA, b"?")]
    assert await landed(reading, registry, [(None, headers), (None, wrong), value]) == [
        None
    ] * 2 + [1]
    assert not registry.asked[UNKNOWN]


@every_format
async def test_of_two_headers_the_last_counts(kind: str) -> None:
    reading, _, value, indexes = FORMATS[kind]
    body, [_, (key, name)] = in_header(GUID, value, indexes)
    first: Headers = [(key, b"?"), ("x", b""), (key, name)]
    last: Headers = [(key, name), (key, b"?")]
    none: Headers = [(key, b"?"), (key, None)]
    found = await landed(
        reading, registry_of(kind), [(body, first), (body, last), (value, none), value]
    )
    assert [found[0], *found[2:]] == [1, 1, 1]
    assert found[1].startswith(f"malformed: header {header_of('value')} needs 1 and")


async def test_a_header_of_protobuf_has_the_indexes_of_the_message() -> None:
    event = protobuf.written(PROTOBUF, {"paid": True, "id": 3}, 7, "shop.Event", b"\x02\x02")
    body, [_, (key, name)] = in_header(GUID, event, 2)
    assert name is not None
    found = await landed(
        ProtobufReading("shop.Event"),
        registry_of("protobuf"),
        [
            (body, [(key, name)]),
            (b"", [(key, name)]),
            (body, [(key, name[:17])]),
            (body, [(key, name[:17] + b"\x02\x04")]),
            in_front(GUID, event),
        ],
    )
    lacks = "needs the indexes of a message behind the schema: ends within them"
    assert found == [
        3, 0, f"malformed: header {VALUE_SCHEMA} {lacks}",
        f"malformed: schema {GUID}: has no message at [2]", 3,
    ]  # fmt: skip


async def test_the_id_that_stands_for_a_guid_is_none_that_a_value_names() -> None:
    reading, _, value, _ = FORMATS["avro"]
    garbage = b"\0" + FIRST_LOCAL_ID.to_bytes(4, "big") + value[5:]
    registry = registry_of("avro")
    registry.register(FIRST_LOCAL_ID, JSON, "other-value")
    found = await landed(reading, registry, [in_front(GUID, value), garbage])
    assert found == [
        1, f"incompatible: schema {FIRST_LOCAL_ID}: is not of Avro, as the table is",
    ]  # fmt: skip


async def test_a_registry_that_is_away_is_not_the_fault_of_a_guid() -> None:
    reading, _, value, _ = FORMATS["avro"]
    registry = registry_of("avro")
    registry.away = True
    with pytest.raises(RegistryUnavailable, match="away"):
        await landed(reading, registry, [in_header(GUID, value)])
    registry.away = False
    assert await landed(reading, registry, [in_header(GUID, value)]) == [1]


async def test_files_without_guids_are_decoded_without_a_detour() -> None:
    reading, _, value, _ = FORMATS["avro"]
    for rows in (part := records([value, (value, [("trace", b"1")])])), as_arrays(part):
        decoder = await RegistryDecoders(registry_of("avro")).decoder(
            SUBJECT, reading, (), [[rows]]
        )
        assert not isinstance(decoder, NamesDecoder)


def test_the_names_of_values_are_counted_whatever_holds_them() -> None:
    value = FORMATS["avro"][2]
    values: list[Value] = [
        value, None, b"", b"\0\0\0\1", b"\1\0\0\0\7", value, b"\0\xff\xff\xff\xff\2",
        in_front(GUID, value), in_front(GUID, value)[:16], in_front(OTHER, b""),
        in_header(GUID, value), (value, [(VALUE_SCHEMA, b"\1")]),
    ]  # fmt: skip
    part = records(values)
    wanted = {7: 2, (1 << 32) - 1: 1, GUID: 2, OTHER: 1}
    for rows in (part, as_arrays(part)):
        assert schema_names([[rows], []]).counts == wanted
    assert pa.array(part.values, pa.binary()).null_count == 1


# --- ids of Apicurio's ----------------------------------------------------------------------------


def apicurio_registry(kind: str) -> FakeRegistry:
    """Return a registry whose schema has the global id 70 and the content id 7, as it often is."""
    registry = registry_of(kind)
    registry.schemas[ApicurioId("globalId", 70)] = registry.schemas[7]
    registry.schemas[ApicurioId("contentId", 7)] = registry.schemas[7]
    return registry


def own(number: int) -> bytes:
    return number.to_bytes(8, "big")


@pytest.mark.looptime
@pytest.mark.parametrize("kind", ["avro", "json"])
async def test_ids_of_apicurio_are_read_from_headers(kind: str) -> None:
    reading, _, value, _ = FORMATS[kind]
    body = value[5:]
    found = await landed(
        reading,
        apicurio_registry(kind),
        [
            (body, [("apicurio.value.globalId", own(70)), ("apicurio.value.contentId", own(9))]),
            (body, [("trace", b"1"), ("apicurio.value.contentId", own(7))]),
            value,
            (body, [("apicurio.value.globalId", own(7))]),
            (body, [("apicurio.value.globalId", b"\0\0\0\7")]),
            (body, [("apicurio.key.globalId", own(70))]),
            (value, [("apicurio.value.globalId", None)]),
            (body, [(VALUE_SCHEMA, value[:5]), ("apicurio.value.globalId", own(9))]),
            (None, [("apicurio.value.globalId", own(70))]),
        ],
        Apicurio(),
    )
    assert found[:3] == [1, 1, 1]
    assert found[3] == "schema_unknown: the registry has no schema globalId 7"
    assert found[4] == (
        "malformed: header apicurio.value.globalId needs an id of eight bytes, has 00 00 00 07"
    )
    assert str(found[5]).startswith("malformed: needs 0 and a schema's id in front")
    assert found[6:] == [1, 1, None]


@pytest.mark.looptime
@pytest.mark.parametrize("kind", ["avro", "json"])
@pytest.mark.parametrize("in_front", ["globalId", "contentId"])
async def test_ids_of_eight_bytes_are_read_in_front(kind: str, in_front: OwnIds) -> None:
    reading, _, value, _ = FORMATS[kind]
    body, number = value[5:], {"globalId": 70, "contentId": 7}[in_front]
    found = await landed(
        reading,
        apicurio_registry(kind),
        [
            b"\0" + own(number) + body,
            (body, [("apicurio.value.globalId", own(70))]),
            b"\0" + own(999) + body,
            b"\0\0\0\0\7",
            b"\1" + own(number) + body,
            b"",
            None,
            b"\0" + own(number) + body,
        ],
        Apicurio(in_front),
    )
    assert found[:3] == [1, 1, f"schema_unknown: the registry has no schema {in_front} 999"]
    for each in found[3:6]:
        assert str(each).startswith("malformed: needs 0 and an id of eight bytes in front, has ")
    assert found[6:] == [None, 1]


async def test_headers_of_apicurio_mean_nothing_to_another_registry() -> None:
    """Programs pass headers on, and write values anew by another serializer."""
    reading, _, value, _ = FORMATS["avro"]
    header = [("apicurio.value.globalId", own(9))]
    assert await landed(reading, registry_of("avro"), [(value, header)]) == [1]
