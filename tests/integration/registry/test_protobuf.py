"""Topics of Protobuf land as columns: with a real broker, Spark and registry, by real processes."""

import base64
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from tests.consumer.decode.protobuf import parsed, proto, written
from tests.integration.landing import in_order, produce, rows, until
from tests.integration.registry.server import RegistryServer
from tests.integration.registry.test_landing import settings_of
from tests.integration.topics import create_topic

from binwright.consumer.decode.protobuf_compiler import compiled
from binwright.consumer.decode.protobuf_schemas import ProtobufSchema
from binwright.consumer.decode.registry import SchemaRegistry
from binwright.inspect.audit import audit
from binwright.local.stack import services
from binwright.runtime.settings.registry import RegistrySettings
from binwright.tables.columns import columns_text

pytestmark = pytest.mark.integration

TIMES = 'import "google/protobuf/timestamp.proto";'
V1 = proto("int64 id", "google.protobuf.Timestamp at", head=TIMES)
V2 = proto(
    "int64 id", "google.protobuf.Timestamp at", "optional string item", "repeated Line lines",
    head=TIMES, rest="message Line { uint64 amount = 1; } message Other { int64 id = 1; }",
)  # fmt: skip
POINT = 'syntax = "proto3"; package geo; message Point { int32 x = 1; }'
LINE = """syntax = "proto3"; package geo; import "geo/point.proto";
message Line { Point a = 1; Point b = 2; }"""
PATH = 'syntax = "proto3"; import "geo/line.proto"; message Path { geo.Line line = 1; }'
PATH_COLUMNS = "line struct<a:struct<x:int>,b:struct<x:int>>"


def columns(schema: object) -> str:
    assert isinstance(schema, ProtobufSchema), schema
    return columns_text(schema.columns(""))


async def test_schemas_come_with_the_files_that_they_import(registry: RegistryServer) -> None:
    def used(name: str) -> list[dict[str, object]]:
        return [{"name": name, "subject": name.replace("/", "."), "version": 1}]

    registry.register("geo.point.proto", POINT, kind="PROTOBUF")
    registry.register("geo.line.proto", LINE, used("geo/point.proto"), kind="PROTOBUF")
    number = registry.register("path-value", PATH, used("geo/line.proto"), kind="PROTOBUF")
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        assert columns(await client.schema(number)) == PATH_COLUMNS
        assert await client.versions("path-value") == (1,)
        version = await client.version("path-value", 1)
    assert version is not None
    assert (version.number, columns(version.schema)) == (number, PATH_COLUMNS)


async def test_a_schema_that_was_registered_as_a_descriptor_is_read(
    registry: RegistryServer,
) -> None:
    """Serializers of Python and others register Base64 in place of a text."""
    found = compiled(V1, {})
    (own,) = (f for f in FileDescriptorSet.FromString(found.files).file if f.name == found.root)
    text = base64.b64encode(own.SerializeToString()).decode()
    number = registry.register("descriptor-value", text, kind="PROTOBUF")
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        assert columns(await client.schema(number)) == "id bigint, at timestamp"


async def test_a_message_within_itself_is_json_as_text(registry: RegistryServer) -> None:
    number = registry.register("recursive-value", proto("Order next"), kind="PROTOBUF")
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        assert columns(await client.schema(number)) == "next string"


@pytest.mark.nightly
async def test_records_of_several_versions_land_each_by_its_own(
    broker: str, spark_url: str, lake: Path, registry: RegistryServer
) -> None:
    topic = "protobuf-versions"
    settings = settings_of(broker, spark_url, lake, registry.url, [topic], "protobuf")
    await create_topic(settings.kafka, topic, 1)
    first, second = parsed(V1), parsed(V2)
    one = registry.register(f"{topic}-value", V1, kind="PROTOBUF")
    await produce(broker, topic, [written(first, {"id": 1, "at": "1970-01-01T00:00:05Z"}, one)])
    async with services(settings, lake.parent / "logs"):
        await until(lambda: len(rows(lake, topic)) == 1)
        assert "item" not in rows(lake, topic)[0]

        two = registry.register(f"{topic}-value", V2, kind="PROTOBUF")
        other = proto("string id", "int32 extra")
        three = registry.register("protobuf-elsewhere-value", other, kind="PROTOBUF")
        await produce(
            broker,
            topic,
            [
                written(second, {"id": 2, "item": "tea", "lines": [{"amount": 1 << 63}]}, two),
                written(first, {"id": 3, "at": "1970-01-01T00:00:07Z"}, one),
                b"\x00 no Protobuf",
                None,
                written(first, {"id": 4}, 999_999),
                written(parsed(other), {"id": "x", "extra": 1}, three),
                written(first, {"id": 5, "at": "1970-01-01T00:00:09Z"}, one)[:-1],
                written(second, {"id": 6}, two, "shop.Other", b"\x02\x04"),
                written(second, {}, two),
            ],
        )
        await until(lambda: len(rows(lake, topic)) + len(rows(lake, f"{topic}__bad")) == 10)
        result = await audit([topic], settings.kafka, settings.lake)

    good, bad = in_order(rows(lake, topic)), in_order(rows(lake, f"{topic}__bad"))
    assert [(row["_kafka"]["offset"], row["id"], row["item"]) for row in good] == [
        (0, 1, None), (1, 2, "tea"), (2, 3, None), (4, None, None), (9, 0, None),
    ]  # fmt: skip
    assert [row["at"] and row["at"].timestamp() for row in good] == [5, None, 7, None, None]
    assert [row["lines"] for row in good] == [None, [{"amount": 1 << 63}], None, None, []]
    assert [(row["_kafka"]["offset"], row["kind"]) for row in bad] == [
        (3, "schema_unknown"), (5, "schema_unknown"), (6, "incompatible"), (7, "malformed"),
        (8, "incompatible"),
    ]  # fmt: skip
    assert bad[0]["value"] == b"\x00 no Protobuf"
    assert bad[2]["reason"] == (
        f"schema {three}: is none of {topic}-value, and has fields that no version of it has"
    )
    assert "the value is a shop.Other, not a shop.Order" in bad[4]["reason"]
    assert result.clean
