"""Topics of JSON with a schema's id land as columns: with a real broker, Spark and registry."""

from pathlib import Path

import pytest
from tests.consumer.decode.json_schema import objects, written
from tests.integration.landing import in_order, produce, rows, until
from tests.integration.registry.server import RegistryServer
from tests.integration.registry.test_landing import settings_of
from tests.integration.topics import create_topic

from binwright.consumer.decode.registry import SchemaRegistry
from binwright.inspect.audit import audit
from binwright.local.stack import services
from binwright.runtime.settings.registry import RegistrySettings
from binwright.tables.columns import columns_text
from binwright.tables.json_schemas import JsonSchema

pytestmark = pytest.mark.integration

AT = {"type": "string", "format": "date-time"}
V1 = objects(id="integer", at=AT)
V2 = objects(
    id="integer",
    at=AT,
    item={"oneOf": [{"type": "null"}, {"type": "string"}]},
    by={"$ref": "#/definitions/by"},
    tags={"type": "array", "items": {"type": "string"}},
    more={"description": "anything"},
) | {"definitions": {"by": objects(name="string")}}
POINT, LINE = objects(x="integer"), objects(a={"$ref": "point.json"}, b={"$ref": "point.json"})


async def test_schemas_come_with_those_that_they_use(registry: RegistryServer) -> None:
    def used(name: str) -> list[dict[str, object]]:
        return [{"name": name, "subject": f"json-{name}", "version": 1}]

    registry.register("json-point.json", POINT, kind="JSON")
    registry.register("json-line.json", LINE, used("point.json"), kind="JSON")
    path = objects(line={"$ref": "line.json"})
    number = registry.register("json-path-value", path, used("line.json"), kind="JSON")
    async with SchemaRegistry(RegistrySettings(url=registry.url)) as client:
        schema = await client.schema(number)
        version = await client.version("json-path-value", 1)
    assert isinstance(schema, JsonSchema), schema
    assert columns_text(schema.columns) == "line struct<a:struct<x:bigint>,b:struct<x:bigint>>"
    assert version is not None
    assert version.number == number


@pytest.mark.nightly
async def test_records_of_several_versions_land_in_the_columns_of_all(
    broker: str, spark_url: str, lake: Path, registry: RegistryServer
) -> None:
    topic = "json-versions"
    settings = settings_of(broker, spark_url, lake, registry.url, [topic], "json")
    await create_topic(settings.kafka, topic, 1)
    one = registry.register(f"{topic}-value", V1, kind="JSON")
    await produce(broker, topic, [written({"id": 1, "at": "1970-01-01T00:00:05Z"}, one)])
    async with services(settings, lake.parent / "logs"):
        await until(lambda: len(rows(lake, topic)) == 1)
        assert "item" not in rows(lake, topic)[0]

        two = registry.register(f"{topic}-value", V2, kind="JSON")
        other = objects(id="string", extra="integer")
        three = registry.register("json-elsewhere-value", other, kind="JSON")
        full = {"id": 2, "item": "tea", "by": {"name": "x"}, "tags": ["a", None], "more": [1.50]}
        await produce(
            broker,
            topic,
            [
                written(full, two),
                written({"id": 3, "at": "1970-01-01T00:00:07Z"}, one),
                b'{"id": 4}',
                None,
                written({"id": 5}, 999_999),
                written({"id": "x", "extra": 1}, three),
                written({"id": "x"}, two),
                written(b'{"id": 6', one),
                written({"id": 7, "item": None, "left": "out"}, two),
            ],
        )
        await until(lambda: len(rows(lake, topic)) + len(rows(lake, f"{topic}__bad")) == 10)
        result = await audit([topic], settings.kafka, settings.lake)

    good, bad = in_order(rows(lake, topic)), in_order(rows(lake, f"{topic}__bad"))
    assert [(row["_kafka"]["offset"], row["id"], row["item"]) for row in good] == [
        (0, 1, None), (1, 2, "tea"), (2, 3, None), (4, None, None), (9, 7, None),
    ]  # fmt: skip
    assert [row["at"] and row["at"].timestamp() for row in good] == [5, None, 7, None, None]
    assert (good[1]["by"], good[1]["tags"], good[1]["more"]) == (
        {"name": "x"}, ["a", None], "[1.5]",
    )  # fmt: skip
    assert [(row["_kafka"]["offset"], row["kind"]) for row in bad] == [
        (3, "malformed"), (5, "schema_unknown"), (6, "incompatible"), (7, "incompatible"),
        (8, "malformed"),
    ]  # fmt: skip
    assert bad[0]["value"] == b'{"id": 4}'
    assert bad[2]["reason"] == (
        f"schema {three}: is none of {topic}-value, and has fields that no version of it has"
    )
    assert bad[3]["reason"] == "id needs bigint, has the string 'x'"
    assert bad[3]["value"] == written({"id": "x"}, two)
    assert result.clean
