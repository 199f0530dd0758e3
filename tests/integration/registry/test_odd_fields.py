"""Fields that a table cannot hold as they are cost no other: with broker, Spark and registry."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.consumer.decode import avro, json_schema, protobuf
from tests.integration.landing import in_order, produce, rows, until
from tests.integration.registry.server import RegistryServer
from tests.integration.registry.test_landing import settings_of
from tests.integration.topics import create_topic

from binwright.inspect.audit import audit
from binwright.inspect.schema_notes import schema_notes
from binwright.local.stack import services

pytestmark = pytest.mark.integration

MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
AVRO = avro.record(
    ("id", "long"),
    ("amount", ["null", MONEY]),
    ("value", ["null", "int", "long"]),
    ("state", ["null", "string", "boolean"]),
    ("next", ["null", "Tree"]),
    ("nothing", ["null"]),
    name="Tree",
)
TREE = 'syntax = "proto3"; message Tree { int64 id = 1; repeated Tree children = 2; int32 ID = 3; }'
ODD = json_schema.objects(**{"id": "integer", "Date Time": "string", "Amount (EUR)": "number"})


def avro_values(number: int) -> list[bytes]:
    leaf = dict.fromkeys(("amount", "value", "state", "next", "nothing"))
    one = leaf | {"id": 1, "amount": Decimal("19.99"), "value": 5, "state": True}
    two = leaf | {"id": 2, "next": leaf | {"id": 3}, "value": 1 << 40, "state": "ok"}
    wide = avro.record(*((f["name"], f["type"]) for f in AVRO["fields"]), name="Tree")
    good = [avro.written(wide, one, number), avro.written(wide, two, number)]
    return [*good, good[0][:5] + b"\x02\x03"]  # a branch below zero


def json_values(number: int) -> list[bytes]:
    good = {"id": 1, "Date Time": "now", "Amount (EUR)": 12.5}
    return [json_schema.written(each, number) for each in (good, {"id": 2}, {"id": "x"})]


def protobuf_values(number: int) -> list[bytes]:
    schema = protobuf.parsed(TREE)
    values: list[dict[str, Any]] = [{"id": 1, "children": [{"id": 3}, {}]}, {"id": 2, "ID": 4}]
    good = [protobuf.written(schema, each, number) for each in values]
    return [*good, good[0] + b"\xff"]


CASES: dict[str, Any] = {
    "AVRO": (
        AVRO,
        avro_values,
        {"amount": Decimal("19.99"), "value": 5, "state": "true", "next": None},
        "nothing is left out: it has no value but null",
    ),
    "JSON": (
        ODD,
        json_values,
        {"Date_Time": "now", "Amount__EUR_": 12.5},
        "Date Time is in the column Date_Time",
    ),
    "PROTOBUF": (
        TREE,
        protobuf_values,
        {"children": '[{"id":3},{}]', "ID_2": 0},
        "children is JSON as text: it has the type Tree within itself",
    ),
}


@pytest.mark.nightly
@pytest.mark.parametrize("kind", CASES)
async def test_a_field_that_a_table_cannot_hold_costs_no_other(
    kind: str, broker: str, spark_url: str, lake: Path, registry: RegistryServer
) -> None:
    schema, values, fields, note = CASES[kind]
    topic = f"odd-{kind.lower()}"
    settings = settings_of(broker, spark_url, lake, registry.url, [topic], kind.lower())
    await create_topic(settings.kafka, topic, 1)
    number = registry.register(f"{topic}-value", schema, kind=kind)
    await produce(broker, topic, values(number))
    async with services(settings, lake.parent / "logs"):
        await until(lambda: len(rows(lake, topic)) == 2 and len(rows(lake, f"{topic}__bad")) == 1)
        result = await audit([topic], settings.kafka, settings.lake)

    first, second = in_order(rows(lake, topic))
    assert (first["id"], second["id"]) == (1, 2)
    assert {name: first[name] for name in fields} == fields
    assert result.clean
    assert note in await schema_notes(settings.registry, settings.targets(topic))
