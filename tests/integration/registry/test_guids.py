"""Topics whose schemas are named in records' headers land as columns.

With a real broker, Spark and registry, by real processes. That registry serves no GUIDs, and the
serializers of Confluent's Python client need packages that are not installed here: so a server of
the tests in front of it answers for GUIDs as Confluent documents, and values are put together as
Confluent's sources do.
"""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.consumer.decode import avro, json_schema, protobuf
from tests.consumer.decode.schema_headers import in_front, in_header
from tests.integration.landing import in_order, produce, rows, until
from tests.integration.registry.guids import serving_guids
from tests.integration.registry.server import RegistryServer
from tests.integration.registry.test_landing import settings_of
from tests.integration.topics import create_topic

from binwright.consumer.decode.avro_schemas import AvroSchema
from binwright.consumer.decode.registry import SchemaRegistry
from binwright.consumer.decode.schema_names import header_of
from binwright.inspect.audit import audit
from binwright.local.stack import services
from binwright.protocol.errors import RegistryUnavailable
from binwright.runtime.settings.registry import RegistrySettings

pytestmark = pytest.mark.integration

ONE = avro.record(("id", "int"))
UNKNOWN = UUID(int=5)
PROTO = protobuf.proto("int32 id")
OBJECTS = json_schema.objects(id="integer")


def value_of(kind: str, number: int, schema: int) -> bytes:
    """Return a value with its schema's id in front."""
    value = {"id": number}
    match kind:
        case "avro":
            return avro.written(ONE, value, schema)
        case "protobuf":
            return protobuf.written(protobuf.parsed(PROTO), value, schema)
    return json_schema.written(value, schema)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kind", "schema", "indexes"), [("avro", ONE, 0), ("protobuf", PROTO, 1), ("json", OBJECTS, 0)]
)
async def test_records_land_whatever_names_their_schema(  # noqa: PLR0917 - fixtures
    broker: str,
    spark_url: str,
    lake: Path,
    registry: RegistryServer,
    kind: str,
    schema: Any,
    indexes: int,
) -> None:
    topic = f"headers-{kind}"
    async with serving_guids(registry) as server:
        settings = settings_of(broker, spark_url, lake, server.url, [topic], kind)
        await create_topic(settings.kafka, topic, 1)
        number, guid = server.register(f"{topic}-value", schema, kind.upper())
        values = [value_of(kind, n, number) for n in range(6)]
        good = in_header(guid, values[1], indexes)
        unknown = in_header(UNKNOWN, values[4], indexes)
        wrong = (good[0], [(header_of("value"), b"\1?")])
        async with services(settings, lake.parent / "logs"):
            await produce(
                broker,
                topic,
                [
                    values[0], good, in_front(guid, values[2]), values[3],
                    unknown, wrong, (None, good[1]), in_header(guid, values[5], indexes),
                ],
            )  # fmt: skip
            await until(lambda: len(rows(lake, topic)) + len(rows(lake, f"{topic}__bad")) == 8)
            result = await audit([topic], settings.kafka, settings.lake)

    landed, bad = in_order(rows(lake, topic)), in_order(rows(lake, f"{topic}__bad"))
    assert [(row["_kafka"]["offset"], row["id"]) for row in landed] == [
        (0, 0), (1, 1), (2, 2), (3, 3), (6, None), (7, 5),
    ]  # fmt: skip
    headers = [{"key": key, "value": value} for key, value in good[1]]
    assert [row["_kafka"]["headers"] for row in landed] == [[], headers, [], [], headers, headers]
    assert [(row["_kafka"]["offset"], row["kind"], row["value"]) for row in bad] == [
        (4, "schema_unknown", unknown[0]), (5, "malformed", wrong[0]),
    ]  # fmt: skip
    assert bad[0]["reason"] == f"the registry has no schema {UNKNOWN}"
    assert bad[1]["_kafka"]["headers"] == [{"key": header_of("value"), "value": b"\1?"}]
    assert result.clean


async def test_schemas_come_by_guid(registry: RegistryServer) -> None:
    """From a server of the tests, which answers as Confluent documents."""
    async with serving_guids(registry) as server:
        _, guid = server.register("by-guid-value", ONE)
        async with SchemaRegistry(RegistrySettings(url=server.url)) as client:
            found = await client.schema(guid)
            assert isinstance(found, AvroSchema)
            assert list(found.top.fields) == ["id"]
            assert await client.schema(UNKNOWN) is None
    async with SchemaRegistry(RegistrySettings(url=server.url)) as client:
        with pytest.raises(RegistryUnavailable, match=f"does not give schema {guid}: .*refused"):
            await client.schema(guid)


async def test_a_registry_without_guids_has_none_and_what_is_no_registry_is_reported(
    registry: RegistryServer,
) -> None:
    """Else one value with a byte 1 in front would stop its topic for good."""
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        assert await client.schema(UNKNOWN) is None
    elsewhere = registry.url.replace("/apis/ccompat/v7", "/apis/nothing")
    async with SchemaRegistry(RegistrySettings(url=elsewhere)) as client:
        with pytest.raises(RegistryUnavailable, match=f"does not give schema {UNKNOWN}: 404"):
            await client.schema(UNKNOWN)
