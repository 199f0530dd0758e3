"""`binwright audit` of values, on a real broker and Spark, of what real processes landed."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.connect.session import SparkSession
from tests.integration.command_line import binwright
from tests.integration.landing import produce, rows, until
from tests.integration.topics import create_topic

from binwright.local.stack import services
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

GROUP, ITEMS, RAW = "verify", "verify-items", "verify-raw"
LINES, EVENTS = "verify-lines", "verify-events"
RECORDS, BAD = 200, 3
COLUMNS = (
    "id BIGINT, price DECIMAL(10,2), ratio DOUBLE, at TIMESTAMP, day DATE, tags ARRAY<STRING>, "
    "by STRUCT<name: STRING, n: INT>, more MAP<STRING, BIGINT>, content BINARY"
)


def value(number: int) -> bytes:
    fields = {
        "id": number,
        "price": 12.3,
        "ratio": number / 7,
        "at": f"2026-11-25T10:00:00.{number:06}Z",
        "day": "2026-11-25",
        "tags": ["a", None, f"t{number}"],
        "by": {"name": "ann", "n": number},
        "more": {"x": number, "y": None},
        "content": "AAEC",
    }
    return json.dumps(fields).encode()


def settings_of(broker: str, spark: str, lake: Path) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[ITEMS, RAW, LINES, EVENTS],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        tables=[
            {"topics": [ITEMS], "format": "json", "columns": COLUMNS},
            {
                "topics": [LINES],
                "format": "csv",
                "columns": "id INT, name STRING",
                "delimiter": ";",
            },
            {"topics": [EVENTS], "format": "variant"},
        ],
        monitor={"topic": f"{GROUP}.metrics"},
        controller={"process_logs": str(lake.parent / "consumers")},
    )


@pytest.mark.nightly
async def test_values_are_those_of_kafka_until_one_is_changed(
    broker: str, spark_url: str, lake: Path
) -> None:
    settings = settings_of(broker, spark_url, lake)
    environment = os.environ | settings_environment(settings)

    async def verify(table: str, *arguments: str) -> tuple[int, str]:
        options = ("--table", table, "--compare", "values", *arguments)
        code, out, errors = await binwright("audit", *options, environment=environment)
        return code, out + errors

    async def verify_json(topic: str, *arguments: str) -> dict[str, Any]:
        code, out = await verify(topic, "--json", *arguments)
        audited = json.loads(out)
        found: dict[str, Any] = audited["values"][topic][topic]
        assert code == bool(found["differences"]), out
        assert audited["clean"] is not bool(code)
        return found

    for topic in settings.topics:
        await create_topic(settings.kafka, topic, 2)
    code, out = await verify(ITEMS)
    assert (code, "there is no table at" in out) == (2, True), out
    async with services(settings, lake.parent / "logs"):
        values = [value(number) for number in range(RECORDS - BAD)] + [b"no JSON"] * BAD
        await produce(broker, ITEMS, [*values, None])
        await produce(broker, RAW, [b"\0\xff", None, b""])
        await produce(broker, LINES, [b"1;tea", b'2;"a;b"', b"x;y", b";"])
        await produce(broker, EVENTS, [b'{"a": [1.50, {"b": null}]}', b"7", b"{", None])
        await until(lambda: len(rows(lake, ITEMS)) == RECORDS - BAD + 1)
        await until(lambda: len(rows(lake, RAW)) == 3)
        await until(lambda: len(rows(lake, LINES)) == 3)
        await until(lambda: len(rows(lake, f"{EVENTS}__bad")) == 1)

    found = await verify_json(ITEMS)
    assert found == {
        "compared": RECORDS + 1,
        "bad": BAD,
        "waiting": 0,
        "erased": 0,
        "mended": 0,
        "differences": [],
    }
    assert await verify_json(ITEMS, "--reader", "deltalake") == found
    for reader in ("spark", "deltalake"):
        assert (await verify_json(RAW, "--reader", reader))["compared"] == 3
    for topic in (LINES, EVENTS):
        found = await verify_json(topic)
        assert (found["compared"], found["bad"], found["differences"]) == (4, 1, []), found
    code, out, errors = await binwright("audit", "--compare", "both", environment=environment)
    assert code == 0, out + errors
    assert f"{ITEMS}: {RECORDS + 1} records compared, {BAD} of them bad ones" in out
    await produce(broker, ITEMS, [value(0)])
    assert (await verify_json(ITEMS))["waiting"] == 1

    session = SparkSession.builder.remote(spark_url).create()
    try:
        for table, change in (
            (ITEMS, "SET price = 12.31, by.n = 8 WHERE id = 7"),
            (f"{ITEMS}__bad", "SET value = X'00' WHERE _kafka.offset = 199"),
            (RAW, "SET value = X'00' WHERE offset = 2"),
        ):
            session.sql(f"UPDATE delta.`{lake}/{table}` {change}").collect()
    finally:
        session.stop()
    differences = (await verify_json(ITEMS))["differences"]
    assert (await verify_json(ITEMS, "--reader", "deltalake"))["differences"] == differences
    changed = {(each["offset"], each["column"], each["kafka"]) for each in differences}
    assert changed == {
        (7, "price", "Decimal('12.30')"),
        (7, "by", "{'name': 'ann', 'n': 7}"),
        (199, "value", "b'no JSON'"),
    }
    code, out = await verify(RAW)
    assert (code, f"{RAW}: 1 values differ" in out) == (1, True), out
