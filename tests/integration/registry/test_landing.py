"""Topics of Avro land as columns: with a real broker, Spark and registry, by real processes."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.consumer.decode.avro import record, written
from tests.integration.landing import in_order, produce, rows, texts, until
from tests.integration.registry.server import RegistryServer, run_registry
from tests.integration.topics import create_topic

from binwright.inspect.audit import audit
from binwright.local.stack import services
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

V1 = record(("id", "long"), ("at", {"type": "long", "logicalType": "timestamp-millis"}))
V2 = record(*((f["name"], f["type"]) for f in V1["fields"]), ("item", ["null", "string"]))
V3 = record(("id", "string"), ("extra", "int"))  # another type of id


def settings_of(  # noqa: PLR0917 - where everything is
    broker: str,
    spark: str,
    lake: Path,
    url: str,
    topics: Sequence[str],
    kind: str = "avro",
    **entry: object,
) -> Settings:
    logs = lake.parent / "consumers"
    logs.mkdir(exist_ok=True)
    return load_settings(
        group=f"{topics[0]}-group",
        topics=topics,
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        registry={"url": url},
        tables=[
            {"topics": topics[:1], "format": kind, **entry},
            *({"topics": [topic], "format": "string"} for topic in topics[1:]),
        ],
        controller={"process_logs": str(logs)},
    )


async def test_records_of_several_schemas_land_each_by_its_own(
    broker: str, spark_url: str, lake: Path, registry: RegistryServer
) -> None:
    topic = "avro-versions"
    settings = settings_of(broker, spark_url, lake, registry.url, [topic], on_schema_fault="bad")
    await create_topic(settings.kafka, topic, 1)
    one = registry.register(f"{topic}-value", V1)
    await produce(broker, topic, [written(V1, {"id": 1, "at": 5_000}, one)])
    async with services(settings, lake.parent / "logs"):
        await until(lambda: len(rows(lake, topic)) == 1)

        two, three = (registry.register(f"{topic}-value", schema) for schema in (V2, V3))
        await produce(
            broker,
            topic,
            [
                written(V2, {"id": 2, "at": 6_000, "item": "tea"}, two),
                written(V1, {"id": 3, "at": 7_000}, one),
                b"\x00 no Avro",
                None,
                written(V1, {"id": 4, "at": 8_000}, 999_999),
                written(V3, {"id": "x", "extra": 1}, three),
                written(V1, {"id": 5, "at": 9_000}, one)[:-1],
                written(V2, {"id": 6, "at": 9_000, "item": None}, two),
            ],
        )
        await until(lambda: len(rows(lake, topic)) + len(rows(lake, f"{topic}__bad")) == 9)
        result = await audit([topic], settings.kafka, settings.lake)

    good, bad = in_order(rows(lake, topic)), in_order(rows(lake, f"{topic}__bad"))
    assert [(row["_kafka"]["offset"], row["id"], row["item"]) for row in good] == [
        (0, 1, None), (1, 2, "tea"), (2, 3, None), (4, None, None), (8, 6, None),
    ]  # fmt: skip
    assert [row["at"] and row["at"].timestamp() for row in good] == [5, 6, 7, None, 9]
    assert [(row["_kafka"]["offset"], row["kind"]) for row in bad] == [
        (3, "schema_unknown"), (5, "schema_unknown"), (6, "incompatible"), (7, "malformed"),
    ]  # fmt: skip
    assert bad[0]["value"] == b"\x00 no Avro"
    assert bad[2]["reason"] == f"schema {three}: id needs bigint, has string"
    assert result.clean
    assert "extra" in good[0]  # the table has the columns of all versions


async def test_a_topic_waits_for_a_schema_at_fault_and_lands_whole_once_it_is_mended(
    broker: str, spark_url: str, lake: Path, registry: RegistryServer
) -> None:
    topic, other = "avro-at-fault", "text-beside-a-fault"
    settings = settings_of(broker, spark_url, lake, registry.url, [topic, other])
    for name in (topic, other):
        await create_topic(settings.kafka, name, 1)
    wrong = registry.register(f"{topic}-value", record(("id", "string")))
    one = registry.register(f"{topic}-value", V1)
    await produce(broker, topic, [written(V1, {"id": 1, "at": 5_000}, one), b"\x00 no Avro"])
    async with services(settings, lake.parent / "logs"):
        await produce(broker, other, [b"text"])
        logs = lake.parent / "consumers"
        why = f"topic {topic} wait: schema {one} of {topic}-value: id needs string, has long"
        await until(lambda: why in "".join(texts(logs)))
        await until(lambda: len(rows(lake, other)) == 1)
        assert rows(lake, topic) == []

        registry.delete(f"{topic}-value", 1)
        await until(lambda: len(rows(lake, topic)) == 1)
    assert rows(lake, topic)[0]["id"] == 1
    assert [each["kind"] for each in rows(lake, f"{topic}__bad")] == ["schema_unknown"]
    assert wrong != one


async def test_while_the_registry_is_away_its_topic_waits_and_others_land(
    broker: str, spark_url: str, lake: Path, tmp_path: Path
) -> None:
    topic, other = "avro-away", "text-beside"
    kafka = KafkaSettings(bootstrap_servers=broker)
    for name in (topic, other):
        await create_topic(kafka, name, 1)
    async with run_registry(tmp_path / "own") as server:
        settings = settings_of(broker, spark_url, lake, server.url, [topic, other])
        number = server.register(f"{topic}-value", V1)
        await server.kill()
        async with services(settings, lake.parent / "logs"):
            await produce(broker, topic, [written(V1, {"id": 1, "at": 5_000}, number)])
            await produce(broker, other, [b"text", b"\xff"])
            logs = lake.parent / "consumers"
            await until(lambda: "does not give schema" in "".join(texts(logs)))
            await until(lambda: len(rows(lake, other)) == 1)
            await until(lambda: len(rows(lake, f"{other}__bad")) == 1)
            assert rows(lake, other)[0]["value"] == "text"
            assert rows(lake, topic) == []

            await server.start()
            assert server.register(f"{topic}-value", V1) == number
            await until(lambda: len(rows(lake, topic)) == 1)
        assert rows(lake, f"{topic}__bad") == []
