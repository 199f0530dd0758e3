"""Decoders have the columns of their subject, and the schemas that their values name."""

import asyncio
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from tests.consumer.decode import json_schema, protobuf
from tests.consumer.decode.avro import doubling, parsed, record, written
from tests.consumer.decode.fake_registry import SUBJECT, FakeRegistry

from binwright.consumer.decode import registry_decoders
from binwright.consumer.decode.avro_schemas import MOST_PARTS
from binwright.consumer.decode.avro_values import AvroDecoder, AvroReading
from binwright.consumer.decode.json_by_schema import JsonReading
from binwright.consumer.decode.one_by_one import Bad
from binwright.consumer.decode.protobuf_values import ProtobufReading
from binwright.consumer.decode.registry_decoders import AT_ONCE, RegistryDecoders
from binwright.protocol.errors import RegistryUnavailable, SchemaAtFault
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.columns import columns_text, parse_columns
from binwright.tables.schemas import SchemaRefused

ONE = record(("id", "int"))
TWO = record(("id", "int"), ("item", "string"))
OTHER = record(("id", "string"), ("more", "long"))


def rows(*numbers: int) -> list[list[Records]]:
    values = [written(ONE, {"id": n}, number) for n, number in enumerate(numbers)]
    return [[Records.of(Record(n, 0, None, value) for n, value in enumerate(values))]]


@pytest.fixture
def registry() -> FakeRegistry:
    return FakeRegistry()


async def columns(decoders: RegistryDecoders, *numbers: int) -> str:
    decoder = await decoders.decoder(SUBJECT, AvroReading(), (), rows(*numbers))
    return columns_text(decoder.columns)


async def refusals(decoders: RegistryDecoders, *numbers: int) -> dict[int, str]:
    decoder = await decoders.decoder(SUBJECT, AvroReading(), (), rows(*numbers))
    assert isinstance(decoder, AvroDecoder)
    found = decoder._schemas
    return {n: f"{bad.kind}: {bad.reason}" for n, bad in found.items() if isinstance(bad, Bad)}


async def test_a_table_has_the_columns_of_all_versions(registry: FakeRegistry) -> None:
    registry.register(7, ONE)
    registry.register(8, TWO)
    decoders = RegistryDecoders(registry)
    assert await columns(decoders, 7) == "id int, item string"
    assert await columns(decoders, 8) == "id int, item string"


async def test_what_is_known_is_not_asked_again_and_a_new_schema_brings_its_version(
    registry: FakeRegistry,
) -> None:
    registry.register(7, ONE)
    decoders = RegistryDecoders(registry)
    for _ in range(3):
        assert await columns(decoders, 7, 7) == "id int"
    assert registry.asked == {7: 1, SUBJECT: 1, (SUBJECT, 1): 1}
    registry.register(8, TWO)
    for _ in range(3):
        assert await columns(decoders, 7, 8) == "id int, item string"
    assert registry.asked == {7: 1, 8: 1, SUBJECT: 2, (SUBJECT, 1): 1, (SUBJECT, 2): 1}


async def test_of_two_types_the_older_stays_and_values_that_do_not_fit_it_are_bad(
    registry: FakeRegistry,
) -> None:
    registry.register(7, ONE)
    registry.register(8, OTHER)
    longer = record(("id", "long"))
    registry.register(9, longer)
    decoders = RegistryDecoders(registry)
    assert await columns(decoders, 8) == "id int, more bigint"
    values = [
        written(OTHER, {"id": "x", "more": 1}, 8),
        written(longer, {"id": 5}, 9),
        written(longer, {"id": 1 << 40}, 9),
    ]
    records = [Records.of(Record(n, 0, None, value) for n, value in enumerate(values))]
    decoder = await decoders.decoder(SUBJECT, AvroReading(), (), [records])
    found, bad = decoder.decode(pa.array(values, pa.binary()))
    assert found.to_pylist() == [None, {"id": 5, "more": None}, None]
    assert [why and why["reason"] for why in bad.to_pylist()] == [
        "schema 8: id needs int, has string", None, "id needs int, has 1099511627776",
    ]  # fmt: skip


async def test_of_two_types_the_wider_is_the_column_s_if_the_settings_want_that(
    registry: FakeRegistry,
) -> None:
    exact = {"type": "bytes", "logicalType": "decimal", "precision": 22, "scale": 2}
    kinds: list[tuple[Any, str]] = [("int", "float"), ("long", "double"), (exact, "float")]
    schemas = [record(("id", one), ("f", other)) for one, other in kinds]
    for number, schema in enumerate(schemas, 7):
        registry.register(number, schema)
    values = [
        written(schemas[0], {"id": -5, "f": 0.5}, 7),
        written(schemas[1], {"id": 1 << 40, "f": 0.1}, 8),
        written(schemas[2], {"id": (12345).to_bytes(2, "big"), "f": 0.25}, 9),
    ]
    given = [[Records.of(Record(n, 0, None, value) for n, value in enumerate(values))]]
    decoders = RegistryDecoders(registry)
    decoder = await decoders.decoder(SUBJECT, AvroReading(), (), given, widen=True)
    assert columns_text(decoder.columns) == "id decimal(22,2), f double"
    rows, bad = decoder.decode(pa.array(values, pa.binary()))
    assert bad.null_count == 3
    assert [(str(row["id"]), row["f"]) for row in rows.to_pylist()] == [
        ("-5.00", 0.5),
        (f"{1 << 40}.00", 0.1),
        ("123.45", 0.25),
    ]
    assert await columns(decoders, 7, 8) == "id int, f float"  # of a table that does not widen
    assert decoders.newest_version(SUBJECT, AvroReading(), widen=True) == 3


async def test_ids_are_those_of_the_subject_s_context(registry: FakeRegistry) -> None:
    """The default context has another schema of this id, by which the value has a row, too."""
    subject = ":.staging:orders-value"
    registry.register(7, TWO, subject)
    registry.register(7, record(("item", "string"), ("id", "int")), "orders-value")
    value = written(TWO, {"id": 1, "item": "w"}, 7)
    given = [[Records.of([Record(0, 0, None, value)])]]
    decoders = RegistryDecoders(registry)
    for named in ((), parse_columns("id INT, item STRING")):
        decoder = await decoders.decoder("orders-value", AvroReading(), named, given)
        other, _ = decoder.decode(pa.array([value], pa.binary()))
        decoder = await decoders.decoder(subject, AvroReading(), named, given)
        rows, _ = decoder.decode(pa.array([value], pa.binary()))
        assert rows.to_pylist() == [{"id": 1, "item": "w"}] != other.to_pylist()


async def test_deleted_versions_count_behind_those_that_are_there(registry: FakeRegistry) -> None:
    """Their records may still be in the topic; a wrong one that was tidied up does no harm."""
    for number, schema in ((7, OTHER), (8, ONE), (9, TWO)):
        registry.register(number, schema)
    registry.deleted[SUBJECT] = {1}
    decoders = RegistryDecoders(registry)
    assert await columns(decoders, 7, 8) == "id int, item string, more bigint"
    assert not await refusals(decoders, 7, 8, 9)


async def test_a_schema_of_another_subject_is_good_if_it_has_no_other_fields(
    registry: FakeRegistry,
) -> None:
    registry.register(7, TWO)
    registry.register(8, ONE, "clicks-value")
    registry.register(9, record(("id", "int"), ("extra", "int")), "clicks-value")
    decoders = RegistryDecoders(registry)
    assert await columns(decoders, 7, 8, 9) == "id int, item string"
    assert await refusals(decoders, 7, 8, 9) == {
        9: f"incompatible: schema 9: is none of {SUBJECT}, and has fields that no version of it has"
    }


async def test_named_columns_ask_for_no_subject_and_leave_fields_out(
    registry: FakeRegistry,
) -> None:
    registry.register(8, TWO)
    wanted = parse_columns("item string")
    decoder = await RegistryDecoders(registry).decoder(SUBJECT, AvroReading(), wanted, rows(8))
    assert decoder.columns == wanted
    assert registry.asked == {8: 1}


async def test_a_schema_that_has_no_columns_is_bad_and_the_others_go_on(
    registry: FakeRegistry,
) -> None:
    registry.register(6, SchemaRefused("is of JSON, not of Avro"))
    registry.register(7, doubling(20))
    registry.register(8, ONE)
    decoders = RegistryDecoders(registry)
    assert await columns(decoders, 6, 7, 8) == "id int"
    assert await refusals(decoders, 6, 7, 8) == {
        6: "incompatible: schema 6: is of JSON, not of Avro",
        7: f"incompatible: schema 7: has more than {MOST_PARTS} fields; `columns` can name some",
    }


# --- schemas at fault -----------------------------------------------------------------------------


async def waiting(
    decoders: RegistryDecoders, *numbers: int, columns: str = "", reading: Any = None
) -> str:
    """Return for which schema, and why, records of these wait; "": they do not."""
    try:
        await decoders.decoder(
            SUBJECT,
            reading or AvroReading(),
            parse_columns(columns) if columns else (),
            rows(*numbers),
            waits=True,
        )
    except SchemaAtFault as exc:
        return str(exc)
    return ""


NO_COLUMN = record(("a", {"type": "map", "values": "null"}))
GONE = SchemaRefused("uses version 1 of points, which is not there")
NAMED = "id INT"


@pytest.mark.parametrize(
    ("schema", "columns", "why"),
    [
        (GONE, "", str(GONE)),
        (GONE, NAMED, str(GONE)),
        (record(("id", "string")), NAMED, "id needs int, has string"),
        (protobuf.parsed(protobuf.proto("int32 id")), NAMED, "is not of Avro, as the table is"),
        (json_schema.parsed(json_schema.objects(id="integer")), "", "is not of Avro, as the"),
    ],
)
async def test_records_wait_for_a_schema_of_their_subject_that_cannot_be_used(
    registry: FakeRegistry, schema: Any, columns: str, why: str
) -> None:
    registry.register(6, ONE)
    registry.register(7, schema)
    decoders = RegistryDecoders(registry)
    found = await waiting(decoders, 6, 7, columns=columns)
    assert found.startswith(f"schema 7 of {SUBJECT}: {why}")
    assert not await waiting(decoders, 6, columns=columns), "a version that nobody names"


async def test_records_wait_for_schemas_of_protobuf_and_json_alike(registry: FakeRegistry) -> None:
    registry.register(7, protobuf.parsed(protobuf.proto("string id")))
    registry.register(8, json_schema.parsed(json_schema.objects(id={"type": "object"})))
    decoders = RegistryDecoders(registry)
    for number, reading, wanted in (
        (7, ProtobufReading("shop.Order"), NAMED),
        (7, ProtobufReading("shop.Event"), ""),
        (8, JsonReading(), "id STRUCT<a: INT>"),
    ):
        found = await waiting(decoders, number, columns=wanted, reading=reading)
        assert found.startswith(f"schema {number} of {SUBJECT}: ")
    of_any = ProtobufReading(None)  # each value names its message, so each is judged by itself
    assert not await waiting(decoders, 7, columns=NAMED, reading=of_any)


async def test_waiting_ends_once_the_schema_is_mended(registry: FakeRegistry) -> None:
    registry.register(7, GONE)
    decoders = RegistryDecoders(registry)
    for _ in range(2):
        assert await waiting(decoders, 7)
    registry.schemas[7] = parsed(TWO)
    assert not await waiting(decoders, 7)
    assert await columns(decoders, 7) == "id int, item string"


async def test_waiting_ends_once_a_version_gives_the_table_its_columns(
    registry: FakeRegistry,
) -> None:
    registry.register(6, record(("id", "string")))
    registry.register(7, ONE)
    decoders = RegistryDecoders(registry)
    assert await waiting(decoders, 7) == f"schema 7 of {SUBJECT}: id needs string, has int"
    registry.deleted[SUBJECT] = {1}
    assert not await waiting(decoders, 7)


@pytest.mark.looptime
async def test_a_schema_of_another_subject_stops_nothing(registry: FakeRegistry) -> None:
    """Bytes of one record may look like any id: they are that record's fault."""
    registry.register(6, ONE)
    registry.register(7, GONE, "other-value")
    registry.register(8, record(("id", "string"), ("more", "int")), "other-value")
    decoders = RegistryDecoders(registry)
    for wanted in ("", NAMED):
        assert not await waiting(decoders, 6, 7, 8, 999, columns=wanted)
    asked = registry.asked["subjects", 7]
    assert not await waiting(decoders, 6, 7, 8)
    assert registry.asked["subjects", 7] == asked == 1
    registry.subjects[SUBJECT].append(7)
    await asyncio.sleep(registry_decoders.FORGOTTEN_S + 1)
    assert await waiting(decoders, 6, 7), "it has become a version of its own"


async def test_of_a_topic_without_a_subject_any_schema_may_be_its_own(
    registry: FakeRegistry,
) -> None:
    registry.register(7, GONE, "shop.Order")  # named by its record, as some serializers do
    assert await waiting(RegistryDecoders(registry), 7, columns=NAMED)


async def test_without_a_value_of_a_schema_there_is_nothing_to_ask(registry: FakeRegistry) -> None:
    assert await columns(RegistryDecoders(registry)) == ""
    assert not registry.asked


async def test_a_subject_that_is_not_there_is_reported(registry: FakeRegistry) -> None:
    registry.register(7, ONE, "other-value")
    with pytest.raises(
        RegistryUnavailable, match=f"no subject {SUBJECT}; name the right one as `subject`"
    ):
        await columns(RegistryDecoders(registry), 7)


async def test_a_registry_that_is_away_is_not_the_records_fault(registry: FakeRegistry) -> None:
    registry.register(7, ONE)
    registry.away = True
    decoders = RegistryDecoders(registry)
    with pytest.raises(RegistryUnavailable, match="away"):
        await columns(decoders, 7)
    registry.away = False
    assert await columns(decoders, 7) == "id int"
    assert await refusals(decoders, 7) == {}


@pytest.mark.looptime
async def test_an_unknown_schema_is_asked_for_again_before_its_values_are_bad(
    registry: FakeRegistry,
) -> None:
    registry.register(7, ONE)
    decoders = RegistryDecoders(registry)
    assert await refusals(decoders, 7, 9) == {9: "schema_unknown: the registry has no schema 9"}
    assert registry.asked[9] == 1 + registry_decoders.ASKED_AGAIN

    registry.register(9, ONE)
    assert list(await refusals(decoders, 9)) == [9]  # for a minute it is not asked again
    await asyncio.sleep(registry_decoders.FORGOTTEN_S + 1)
    assert await refusals(decoders, 9) == {}


@pytest.mark.looptime
async def test_a_schema_that_comes_late_is_good(registry: FakeRegistry) -> None:
    registry.register(7, ONE)
    decoders = RegistryDecoders(registry)

    async def late() -> None:
        await asyncio.sleep(1.5 * registry_decoders.PAUSE_S)
        registry.register(8, ONE)

    found, _ = await asyncio.gather(refusals(decoders, 7, 8), late())
    assert found == {}


async def test_many_schemas_are_all_asked_for(registry: FakeRegistry) -> None:
    numbers = range(1_000, 1_000 + 3 * AT_ONCE)
    for number in numbers:
        registry.register(number, ONE)
    assert await refusals(RegistryDecoders(registry), *numbers) == {}


@pytest.mark.looptime
async def test_ids_of_garbage_do_not_storm_the_registry(registry: FakeRegistry) -> None:
    registry.register(7, ONE)
    garbage = range(1_000, 3_000)
    decoder = await RegistryDecoders(registry).decoder(
        SUBJECT, AvroReading(), (), rows(7, 7, *garbage)
    )
    assert isinstance(decoder, AvroDecoder)
    assert len(decoder._schemas) == 2_001
    numbers = {number for number in registry.asked if isinstance(number, int)}
    assert len(numbers) == 2 * AT_ONCE
    assert 7 in numbers  # the most frequent are asked for
    reasons = Counter(
        each.reason[:24] for each in decoder._schemas.values() if isinstance(each, Bad)
    )
    assert reasons == {"the registry has no sche": 199, "the registry was not ask": 1_801}


async def test_the_newest_version_is_known_of_subjects_that_give_a_table_its_columns(
    registry: FakeRegistry,
) -> None:
    registry.register(7, ONE)
    registry.register(8, TWO)
    decoders = RegistryDecoders(registry)
    await decoders.decoder(SUBJECT, AvroReading(), parse_columns("id int"), rows(7))
    known = decoders.newest_version(SUBJECT, AvroReading())
    assert known is None, "its columns are those of the settings"
    await columns(decoders, 7)
    assert decoders.newest_version(SUBJECT, AvroReading()) == 2


# --- protobuf -------------------------------------------------------------------------------------

FIRST = protobuf.parsed(protobuf.proto("int32 id"))
SECOND = protobuf.parsed(
    protobuf.proto("int32 id", "string item", rest="message Event { bool paid = 1; }")
)


async def protobuf_columns(decoders: RegistryDecoders, message: str, *numbers: int) -> str:
    decoder = await decoders.decoder(SUBJECT, ProtobufReading(message), (), rows(*numbers))
    return columns_text(decoder.columns)


async def test_a_table_of_protobuf_has_the_columns_of_its_message_in_all_versions(
    registry: FakeRegistry,
) -> None:
    registry.register(7, FIRST)
    decoders = RegistryDecoders(registry)
    assert await protobuf_columns(decoders, "", 7) == "id int"
    registry.register(8, SECOND)
    assert await protobuf_columns(decoders, "", 7, 8) == "id int, item string"
    assert await protobuf_columns(decoders, "shop.Event", 7, 8) == "paid boolean"
    schemas = {number: count for number, count in registry.asked.items() if number in (7, 8)}
    assert schemas == {7: 1, 8: 1}  # by both tables


async def test_a_version_without_the_message_has_no_columns_and_its_values_are_bad(
    registry: FakeRegistry,
) -> None:
    registry.register(7, FIRST)
    registry.register(8, SECOND)
    registry.register(9, ONE)
    reading = ProtobufReading("shop.Event")
    values = [
        protobuf.written(SECOND, {"paid": True}, 8, "shop.Event", b"\x02\x02"),
        protobuf.written(FIRST, {"id": 1}, 7),
        written(ONE, {"id": 1}, 9),
    ]
    records = [[Records.of(Record(n, 0, None, value) for n, value in enumerate(values))]]
    decoder = await RegistryDecoders(registry).decoder(SUBJECT, reading, (), records)
    found, bad = decoder.decode(pa.array(values, pa.binary()))
    assert found.to_pylist() == [{"paid": True}, None, None]
    assert [why and why["reason"] for why in bad.to_pylist()] == [
        None,
        "schema 7: has no message shop.Event",
        "schema 9: is not of Protobuf, as the table is",
    ]


async def test_a_message_of_another_subject_with_more_fields_is_bad(registry: FakeRegistry) -> None:
    registry.register(7, FIRST)
    registry.register(8, SECOND, "clicks-value")
    decoder = await RegistryDecoders(registry).decoder(SUBJECT, ProtobufReading(""), (), rows(7, 8))
    assert columns_text(decoder.columns) == "id int"
    value = protobuf.written(SECOND, {"id": 1}, 8)
    _, bad = decoder.decode(pa.array([value], pa.binary()))
    assert bad.to_pylist()[0]["reason"] == (
        f"schema 8: is none of {SUBJECT}, and has fields that no version of it has"
    )


# --- json -----------------------------------------------------------------------------------------


async def test_a_table_of_json_has_the_columns_of_all_versions(registry: FakeRegistry) -> None:
    registry.register(7, json_schema.parsed(json_schema.objects(id="integer")))
    registry.register(8, json_schema.parsed(json_schema.objects(id="string", any={})))
    values = [
        json_schema.written({"id": 1}, 7),
        json_schema.written({"id": 2, "any": [1]}, 8),
        json_schema.written({"id": "x"}, 8),
    ]
    records = [Records.of(Record(n, 0, None, value) for n, value in enumerate(values))]
    decoder = await RegistryDecoders(registry).decoder(SUBJECT, JsonReading(), (), [records])
    assert columns_text(decoder.columns) == "id bigint, any string"
    found, bad = decoder.decode(pa.array(values, pa.binary()))
    assert found.to_pylist() == [{"id": 1, "any": None}, {"id": 2, "any": "[1]"}, None]
    assert bad.to_pylist()[2]["reason"] == "id needs bigint, has the string 'x'"


async def test_a_schema_of_another_format_than_the_table_s_is_bad(registry: FakeRegistry) -> None:
    registry.register(7, json_schema.parsed(json_schema.objects(id="integer")))
    registry.register(8, ONE, "other-value")
    values = [json_schema.written({"id": 1}, 7), json_schema.written({"id": 1}, 8)]
    records = [Records.of(Record(n, 0, None, value) for n, value in enumerate(values))]
    decoder = await RegistryDecoders(registry).decoder(SUBJECT, JsonReading(), (), [records])
    _, bad = decoder.decode(pa.array(values, pa.binary()))
    assert [why and why["reason"] for why in bad.to_pylist()] == [
        None, "schema 8: is no JSON Schema, and the table is of JSON",
    ]  # fmt: skip
