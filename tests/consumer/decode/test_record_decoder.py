"""Records are decoded whole: values, keys beside them, and those without a value."""

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from tests.consumer.decode.avro import record, written
from tests.consumer.decode.fake_registry import FakeRegistry

from binwright.consumer.decode.avro_values import AvroReading
from binwright.consumer.decode.json_values import JsonDecoder
from binwright.consumer.decode.record_decoder import RecordDecoder
from binwright.consumer.decode.registry_decoders import RegistryDecoders
from binwright.consumer.decode.text_values import TextDecoder
from binwright.consumer.decode.variant_values import VariantDecoder
from binwright.protocol.ports.kafka import Record, Records
from binwright.tables.columns import columns_text, parse_columns
from binwright.tables.ports import ValueDecoder

VALUES = JsonDecoder(parse_columns("id INT"))
KEYS = JsonDecoder(parse_columns("k INT"))
TEXT = TextDecoder(parse_columns("value STRING"))
VARIANT = VariantDecoder(parse_columns("value VARIANT"))


def decoder(
    keys: ValueDecoder | None = KEYS, form: str = "json", tombstones: Any = "row"
) -> RecordDecoder:
    return RecordDecoder(VALUES, keys, form, tombstones)


def decoded(of: RecordDecoder, *records: tuple[bytes | None, bytes | None]) -> tuple[Any, Any]:
    """Return rows, and the kind and reason of bad records, of these keys and values."""
    keys, values = (pa.array([each[n] for each in records], pa.binary()) for n in (0, 1))
    rows, bad = of.decode(values, None, keys)
    for given, found in zip(values.to_pylist(), bad.to_pylist(), strict=True):
        assert found is None or found["value"] == given
    faults = [found and (found["kind"], found["reason"]) for found in bad.to_pylist()]
    return rows.to_pylist(), faults


def test_a_key_is_a_column_in_front_of_those_of_the_value() -> None:
    of = decoder()
    assert columns_text(of.columns) == "_kafka_key struct<k:int>, id int"
    rows, faults = decoded(of, (b'{"k":1}', b'{"id":2}'), (None, b'{"id":3}'), (b"{}", None))
    assert rows == [
        {"_kafka_key": {"k": 1}, "id": 2},
        {"_kafka_key": None, "id": 3},
        {"_kafka_key": {"k": None}, "id": None},
    ]
    assert faults == [None, None, None]


@pytest.mark.parametrize(
    ("keys", "form", "column"),
    [(TEXT, "string", "_kafka_key string"), (VARIANT, "variant", "_kafka_key variant")],
)
def test_a_key_of_one_column_is_that_column(keys: ValueDecoder, form: str, column: str) -> None:
    of = decoder(keys, form)
    assert columns_text(of.columns) == f"{column}, id int"
    rows, _ = decoded(of, (b"7", b"{}"), (None, b"{}"))
    assert rows == [{"_kafka_key": "7", "id": None}, {"_kafka_key": None, "id": None}]


def test_a_record_is_bad_if_its_key_is_and_for_its_value_if_both_are() -> None:
    rows, faults = decoded(
        decoder(),
        (b'{"k":"x"}', b'{"id":1}'),
        (b"no", b"{}"),
        (b"no", b'{"id":"x"}'),
        (b"no", None),
        (b'{"k":1}', b'{"id":1}'),
    )
    assert rows == [None, None, None, None, {"_kafka_key": {"k": 1}, "id": 1}]
    assert faults[0] == ("key_incompatible", "the key: k needs int, has the string 'x'")
    assert [fault and fault[0] for fault in faults[1:]] == [
        "key_malformed",
        "incompatible",
        "key_malformed",
        None,
    ]


@pytest.mark.parametrize(
    ("tombstones", "rows", "kinds"),
    [
        ("row", [{"id": 1}, {"id": None}, None], [None, None, "malformed"]),
        ("skip", [{"id": 1}, None, None], [None, None, "malformed"]),
        ("bad", [{"id": 1}, None, None], [None, "tombstone", "malformed"]),
    ],
)
def test_a_record_without_a_value_is_what_the_settings_want(
    tombstones: str, rows: list[Any], kinds: list[str | None]
) -> None:
    of = decoder(None, tombstones=tombstones)
    found, faults = decoded(of, (b"k", b'{"id":1}'), (b"k", None), (b"k", b"no"))
    assert (found, [fault and fault[0] for fault in faults]) == (rows, kinds)


def test_a_skipped_record_is_not_bad_for_its_key() -> None:
    rows, faults = decoded(decoder(tombstones="skip"), (b"no", None), (b"{}", b"{}"))
    assert (rows[0], faults) == (None, [None, None])


def test_a_table_without_columns_yet_keeps_tombstones_apart_from_bad_records() -> None:
    nothing = JsonDecoder(())
    of = RecordDecoder(nothing, None, None, "bad")
    rows, faults = decoded(of, (None, None), (None, b"no"), (None, b"{}"))
    assert (rows, [f and f[0] for f in faults]) == (
        [None, None, {}],
        ["tombstone", "malformed", None],
    )


async def test_keys_name_schemas_of_their_own_in_front_or_in_their_own_header() -> None:
    registry = FakeRegistry()
    schema = record(("k", "int"))
    guid = UUID(int=9)
    registry.register(7, schema, "orders-key", guid)
    key = written(schema, {"k": 1}, 7)
    header = ("__key_schema_id", b"\1" + guid.bytes)
    of_value = ("__value_schema_id", b"\0\0\0\0\1")
    records = [
        Record(0, 0, key, b"{}", 0, (of_value,)),
        Record(1, 0, key[5:], b"{}", 0, (of_value, header)),
        Record(2, 0, None, b"{}", 0, (header,)),
    ]
    rows = [[Records.of(records)]]
    keys = await RegistryDecoders(registry).decoder("orders-key", AvroReading(), (), rows, "key")
    headers = pa.array(
        [[{"key": k, "value": v} for k, v in each.headers] for each in records],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    values = pa.array([each.value for each in records], pa.binary())
    given = pa.array([each.key for each in records], pa.binary())
    found, bad = decoder(keys, "avro").decode(values, headers, given)
    assert [row and row["_kafka_key"] for row in found.to_pylist()] == [{"k": 1}, {"k": 1}, None]
    assert bad.null_count == 3
