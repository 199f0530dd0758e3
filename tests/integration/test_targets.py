"""A topic lands in two tables, on a real broker and Spark, by real processes that are killed."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession
from tests.integration.command_line import binwright
from tests.integration.landing import LANDED_S, in_order, produce, rows, until
from tests.integration.topics import create_topic

from binwright.inspect.audit import AuditResult, audit
from binwright.local.stack import Stack, services
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

TYPED = {"format": "json", "columns": "id BIGINT, item STRING"}
KILLS = 4


@pytest.fixture
def spark(spark_url: str) -> Iterator[SparkSession]:
    session = SparkSession(DefaultChannelBuilder(spark_url))
    yield session
    session.client.release_session()
    session.client.close()


def settings_of(
    broker: str, spark: str, lake: Path, topic: str, tables: list[dict[str, Any]]
) -> Settings:
    return load_settings(
        group=topic,
        topics=[topic],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        tables=[{"topics": [topic], **table} for table in tables],
        monitor={"topic": f"{topic}.metrics"},
        controller={"process_logs": str(lake.parent / "consumers")},
    )


def values(first: int, end: int) -> list[bytes]:
    """Return records of which each tenth is no row."""
    return [b'{"id": %d, "item": "tea"}' % n if n % 10 else b"none" for n in range(first, end)]


async def audited(settings: Settings) -> AuditResult:
    def names(topic: str) -> list[str]:
        return [target.name for target in settings.targets(topic)]

    return await audit(settings.topics, settings.kafka, settings.lake, tables_of=names)


async def kill(stack: Stack) -> None:
    """Kill every consumer, and wait for others."""
    killed = stack.consumer_pids()
    for pid in killed:
        psutil.Process(pid).send_signal(signal.SIGKILL)
    await until(lambda: bool(stack.consumer_pids()) and not {*stack.consumer_pids()} & {*killed})


@pytest.mark.nightly
async def test_a_raw_and_a_typed_table_get_each_record_once_through_kills(
    broker: str, spark_url: str, lake: Path
) -> None:
    topic = "targets-killed"
    raw, typed = f"{topic}_raw", f"{topic}_typed"
    settings = settings_of(
        *(broker, spark_url, lake, topic),
        [{"format": "raw", "name": "{topic}_raw"}, {**TYPED, "name": "{topic}_typed"}],
    )
    await create_topic(settings.kafka, topic, 1)
    async with services(settings, lake.parent / "logs") as stack:
        await produce(broker, topic, values(0, 50))
        await until(lambda: len(rows(lake, raw)) == 50)
        for n in range(1, KILLS + 1):
            await produce(broker, topic, values(50 * n, 50 * n + 50))
            await kill(stack)
        total = 50 * KILLS + 50
        await until(lambda: len(rows(lake, raw)) == total)
        await until(lambda: len(rows(lake, typed)) + len(rows(lake, f"{typed}__bad")) == total)
        result = await audited(settings)
        code, out, errors = await binwright(
            "audit", "--json", environment=os.environ | settings_environment(settings)
        )
    assert result.clean, result.faults()
    assert [(t.topic, t.name, t.partitions[0].rows) for t in result.tables] == [
        (topic, raw, total),
        (topic, typed, total),
    ]
    assert code == 0, errors
    assert [t["name"] for t in json.loads(out)["tables"]] == [raw, typed]
    assert [row["offset"] for row in sorted(rows(lake, raw), key=lambda r: r["offset"])] == [
        *range(total)
    ]
    assert [row["id"] for row in in_order(rows(lake, typed))] == [n for n in range(total) if n % 10]
    assert not (lake / topic).exists(), "no table has the topic's own name"


async def test_a_table_that_refuses_rows_holds_no_other(
    broker: str, spark_url: str, spark: SparkSession, lake: Path
) -> None:
    topic = "targets-refused"
    typed = f"{topic}_typed"
    settings = settings_of(
        *(broker, spark_url, lake, topic), [{"format": "raw"}, {**TYPED, "name": "{topic}_typed"}]
    )
    environment = os.environ | settings_environment(settings)

    async def listed() -> dict[str, dict[str, Any]]:
        code, out, errors = await binwright("table", "list", "--json", environment=environment)
        assert code == 0, errors
        return {table["name"]: table for table in json.loads(out)}

    await create_topic(settings.kafka, topic, 1)
    async with services(settings, lake.parent / "logs") as stack:
        await produce(broker, topic, values(0, 20))
        await until(lambda: len(rows(lake, typed)) == 18)
        table = f"delta.`{lake}/{typed}`"
        spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK (id < 20)").collect()
        await produce(broker, topic, values(20, 40))
        await until(lambda: len(rows(lake, topic)) == 40)
        await kill(stack)
        await produce(broker, topic, values(40, 60))
        await until(lambda: len(rows(lake, topic)) == 60)
        assert len(rows(lake, typed)) == 18

        async with asyncio.timeout(LANDED_S):
            # The writer that took over is refused when it commits.
            while (found := await listed())[typed]["state"] != "refused":  # noqa: ASYNC110 - asked
                await asyncio.sleep(1)
        assert {name: each["topic"] for name, each in found.items()} == {
            topic: topic,
            typed: topic,
        }
        assert (found[topic]["state"], found[topic]["format"]) == ("landing", "raw")
        assert (found[typed]["state"], found[typed]["format"]) == ("refused", "json")
        assert "CHECK constraint small" in found[typed]["reason"]
        for command, wanted in (
            (("table", "describe", typed), f"topic: {topic}"),
            (("explain", typed), "it takes no rows: "),
            (("explain", topic), "it is not late"),
        ):
            code, out, errors = await binwright(*command, environment=environment)
            assert (code, wanted in " ".join(out.split())) == (0, True), out + errors

        spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT small").collect()
        await until(lambda: len(rows(lake, typed)) == 54)
        for name in (topic, typed):
            arguments = ("audit", "--table", name, "--compare", "values")
            code, out, errors = await binwright(*arguments, environment=environment)
            assert code == 0, out + errors
        result = await audited(settings)
    assert result.clean, result.faults()


async def test_a_group_of_one_table_goes_on_when_another_one_is_added(
    broker: str, spark_url: str, lake: Path
) -> None:
    topic = "targets-added"
    before = settings_of(broker, spark_url, lake, topic, [])
    await create_topic(before.kafka, topic, 1)
    async with services(before, lake.parent / "logs"):
        await produce(broker, topic, values(0, 20))
        await until(lambda: len(rows(lake, topic)) == 20)
    await produce(broker, topic, values(20, 40))
    after = settings_of(
        *(broker, spark_url, lake, topic), [{"format": "raw"}, {**TYPED, "name": "{topic}_typed"}]
    )
    async with services(after, lake.parent / "logs"):
        await until(lambda: len(rows(lake, f"{topic}_typed")) == 18)
        await until(lambda: len(rows(lake, topic)) == 40)
        result = await audit([topic], after.kafka, after.lake)
    assert result.clean
    assert in_order(rows(lake, f"{topic}_typed"))[0]["id"] == 21
