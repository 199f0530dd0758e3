"""Keys of Avro land as a column of their own: by real processes, with a registry."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from tests.consumer.decoding.avro import record, written
from tests.integration.command_line import binwright
from tests.integration.landing import LANDED_S, in_order, rows, until
from tests.integration.registry.server import RegistryServer
from tests.integration.topics import create_topic

from binwright.audit.audit import audit
from binwright.local.stack import services
from binwright.runtime.settings import load_settings, settings_environment

pytestmark = pytest.mark.integration

TOPIC, TEXT = "avro-keys", "text-keys"
K1 = record(("id", "int"), name="Key")
K2 = record(("id", "long"), ("shop", ["null", "string"]), name="Key")
VALUE = record(("n", "int"))

Pair = tuple[bytes | None, bytes | None]


async def produce(broker: str, topic: str, pairs: Sequence[Pair]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        for key, value in pairs:
            await producer.send_and_wait(topic, value, key=key, partition=0)


async def reported(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what the group reports of the table."""
    _, status, _ = await binwright("status", "--json", environment=environment)
    (found,) = (each for each in json.loads(status)["tables"] if each["topic"] == TOPIC)
    assert isinstance(found, dict)
    return found


async def test_keys_land_by_their_own_schemas_and_tombstones_are_counted(
    broker: str, spark_url: str, lake: Path, registry: RegistryServer
) -> None:
    logs = lake.parent / "consumers"
    logs.mkdir()
    settings = load_settings(
        group=f"{TOPIC}-group",
        topics=[TOPIC, TEXT],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark_url, "freshness_s": 1.0},
        registry={"url": registry.url},
        tables=[
            {
                "topics": [TOPIC],
                "format": "avro",
                "key": {"format": "avro"},
                "tombstones": "skip",
                "widen": True,
                "statistics": ["_kafka_key.id"],
            },
            {
                "topics": [TEXT],
                "format": "string",
                "key": {"format": "string"},
                "tombstones": "bad",
                "partition_by": "_kafka_date",
            },
        ],
        controller={"process_logs": str(logs)},
    )
    for topic in settings.topics:
        await create_topic(settings.kafka, topic, 1)
    key = registry.register(f"{TOPIC}-key", K1)
    number = registry.register(f"{TOPIC}-value", VALUE)

    def value(n: int) -> bytes:
        return written(VALUE, {"n": n}, number)

    first = [
        (written(K1, {"id": 1}, key), value(0)),
        (None, value(1)),
        (b"no Avro", value(2)),
        (written(K1, {"id": 1}, key), None),
    ]
    async with services(settings, lake.parent / "logs"):
        await produce(broker, TOPIC, first)
        await produce(broker, TEXT, [(b"k", b"a"), (b"\xff", b"b"), (b"k", None), (None, b"c")])
        await until(lambda: len(rows(lake, TOPIC)) == 2)
        await until(lambda: len(rows(lake, f"{TEXT}__bad")) == 2)
        before = in_order(rows(lake, TOPIC))

        newer = registry.register(f"{TOPIC}-key", K2)
        wide = {"id": 1 << 40, "shop": "x"}
        await produce(
            broker,
            TOPIC,
            [
                (written(K2, wide, newer), value(4)),
                (written(K1, {"id": 5}, key), None),
                (written(K1, {"id": 6}, key), value(6)),
                (written(K1, {"id": 7}, key), b"no Avro"),
            ],
        )
        environment = os.environ | settings_environment(settings)
        async with asyncio.timeout(LANDED_S):
            # deltalake does not read a table that was widened
            topics = [TOPIC, TEXT]
            while not (result := await audit(topics, settings.kafka, settings.lake)).clean:  # noqa: ASYNC110 - other processes work
                await asyncio.sleep(0.5)
            while (table := await reported(environment))["rows"] != 6:  # noqa: ASYNC110
                await asyncio.sleep(0.5)
        code, found, _ = await binwright(
            "table", "verify", TOPIC, "--json", environment=environment
        )

    assert [(row["_kafka_key"], row["n"]) for row in before] == [({"id": 1}, 0), (None, 1)]
    bad = in_order(rows(lake, f"{TOPIC}__bad"))
    assert [(row["_kafka"]["offset"], row["kind"]) for row in bad] == [
        (2, "key_malformed"),
        (7, "malformed"),
    ]
    assert result.clean
    parts = {table.topic: table.partitions[0] for table in result.tables}
    assert (parts[TOPIC].rows, parts[TOPIC].bad, parts[TOPIC].skipped) == (6, 2, 2)
    assert (parts[TEXT].rows, parts[TEXT].bad, parts[TEXT].skipped) == (4, 2, 0)
    assert (table["bad"], table["skipped"]) == (2, 2)
    assert (code, json.loads(found)["differences"]) == (0, [])
    text = in_order(rows(lake, TEXT))
    assert [(row["_kafka_key"], row["value"]) for row in text] == [("k", "a"), (None, "c")]
    assert {row["_kafka_date"] for row in text} == {text[0]["_kafka"]["timestamp"].date()}
    assert {row["kind"] for row in rows(lake, f"{TEXT}__bad")} == {"key_malformed", "tombstone"}
