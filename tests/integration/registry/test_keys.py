"""Keys and values of Avro land as columns: with a real broker, Spark and registry, by processes."""

import json
import os
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from tests.consumer.decode.avro import record, written
from tests.integration.command_line import binwright
from tests.integration.landing import in_order, rows, until
from tests.integration.registry.server import RegistryServer
from tests.integration.topics import create_topic

from binwright.local.stack import services
from binwright.runtime.settings.group import load_settings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

TOPIC = "avro-keys"
KEY_1 = record(("shop", "string"), name="Key")
KEY_2 = record(("shop", "string"), ("number", ["null", "int"]), name="Key")
VALUE = record(("id", "long"))
HEADERS = [(f"header-{number}", b"%d" % number) for number in range(1_000)]
OTHER_KEY = 888_888
"""The id of a schema that the registry does not have."""


@pytest.mark.nightly
async def test_keys_are_decoded_each_by_its_own_schema_and_every_offset_has_one_row(
    broker: str, spark_url: str, lake: Path, registry: RegistryServer
) -> None:
    logs = lake.parent / "consumers"
    logs.mkdir()
    settings = load_settings(
        group="keys-group",
        topics=[TOPIC],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark_url, "freshness_s": 1.0},
        registry={"url": registry.url},
        tables=[{"topics": [TOPIC], "format": "avro", "key": {"format": "avro"}}],
        controller={"process_logs": str(logs)},
    )
    await create_topic(settings.kafka, TOPIC, 1)
    one = registry.register(f"{TOPIC}-key", KEY_1)
    number = registry.register(f"{TOPIC}-value", VALUE)
    first = written(KEY_1, {"shop": "a"}, one)

    async with (
        services(settings, lake.parent / "logs"),
        AIOKafkaProducer(bootstrap_servers=broker) as producer,
    ):

        async def send(key: bytes | None, value: bytes | None, *headers: tuple[str, bytes]) -> None:
            await producer.send_and_wait(TOPIC, value, key=key, partition=0, headers=[*headers])

        await send(first, written(VALUE, {"id": 1}, number))
        await until(lambda: len(rows(lake, TOPIC)) == 1)
        two = registry.register(f"{TOPIC}-key", KEY_2)
        await send(
            written(KEY_2, {"shop": "b", "number": 7}, two), written(VALUE, {"id": 2}, number)
        )
        await send(first, None)  # a tombstone
        await send(None, written(VALUE, {"id": 3}, number))
        await send(first[:-1], written(VALUE, {"id": 4}, number))
        await send(written(KEY_1, {"shop": "c"}, OTHER_KEY), written(VALUE, {"id": 5}, number))
        await send(first[:-1], b"no Avro")  # what is wrong with the value counts
        await send(first, written(VALUE, {"id": 6}, number), *HEADERS)
        await send(b"", written(VALUE, {"id": 7}, number))
        await send(first, b"")
        await until(lambda: len(rows(lake, TOPIC)) + len(rows(lake, f"{TOPIC}__bad")) == 10)

        by_settings = await binwright(
            "audit", "--json", environment=os.environ | settings_environment(settings)
        )
        by_options = await binwright(
            *("audit", "--json", "--topics", TOPIC, "--bootstrap-servers", broker),
            *("--lake", str(lake), "--spark", spark_url),
        )

    landed, bad = in_order(rows(lake, TOPIC)), in_order(rows(lake, f"{TOPIC}__bad"))
    assert [(row["_kafka"]["offset"], row["_kafka_key"], row["id"]) for row in landed] == [
        (0, {"shop": "a", "number": None}, 1),
        (1, {"shop": "b", "number": 7}, 2),
        (2, {"shop": "a", "number": None}, None),
        (3, None, 3),
        (7, {"shop": "a", "number": None}, 6),
    ]
    assert landed[2]["_kafka"]["key"] == first
    assert [(each["key"], each["value"]) for each in landed[4]["_kafka"]["headers"]] == HEADERS
    assert [(row["_kafka"]["offset"], row["kind"]) for row in bad] == [
        (4, "key_malformed"), (5, "key_schema_unknown"), (6, "malformed"), (8, "key_malformed"),
        (9, "malformed"),
    ]  # fmt: skip
    assert bad[0]["_kafka"]["key"] == first[:-1]
    for code, out, errors in (by_settings, by_options):
        assert code == 0, errors
        result = json.loads(out)
        assert (result["clean"], result["rows"], result["bad"]) == (True, 10, 5)
