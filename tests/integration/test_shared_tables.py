"""Two topics land in one table, on a real broker and Spark, by real processes that are killed."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from deltalake import DeltaTable
from tests.integration.command_line import binwright
from tests.integration.landing import produce, rows, until
from tests.integration.topics import create_topic

from binwright.inspect.audit import AuditResult, audit
from binwright.local.stack import Stack, services
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

TYPED = {"format": "json", "columns": "id BIGINT"}
EU, US = "shared-eu", "shared-us"
DAY_MS = 86_400_000
LATER = 6  # records of each topic that are to be kept


def settings_of(  # noqa: PLR0917 - each is a setting
    broker: str, spark: str, lake: Path, group: str, topics: list[str], tables: list[dict[str, Any]]
) -> Settings:
    return load_settings(
        group=group,
        topics=topics,
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        tables=tables,
        monitor={"topic": f"{group}.metrics"},
        controller={"process_logs": str(lake.parent / "consumers"), "min_slots": 2},
    )


def values(first: int, end: int) -> list[bytes]:
    """Return records of which each tenth is no row."""
    return [b'{"id": %d}' % n if n % 10 else b"none" for n in range(first, end)]


async def audited(settings: Settings) -> AuditResult:
    def names(topic: str) -> list[str]:
        return [target.name for target in settings.targets(topic)]

    return await audit(settings.topics, settings.kafka, settings.lake, tables_of=names)


def landed(lake: Path, table: str) -> Counter[tuple[str, int, int]]:
    """Return how often each topic, partition and offset is in a table or its bad records."""
    found = [*rows(lake, table), *rows(lake, f"{table}__bad")]
    places = (row.get("_kafka", row) for row in found)
    return Counter((at["topic"], at["partition"], at["offset"]) for at in places)


async def writer_of(settings: Settings, table: str) -> int:
    """Return the slot that writes a table."""
    code, out, errors = await binwright(
        "status", "--json", environment=os.environ | settings_environment(settings)
    )
    assert code == 0, errors
    (group,) = (each for each in json.loads(out) if each["group"] == settings.group)
    (found,) = (each for each in group["tables"] if each["name"] == table)
    slot: int = found["writer"]
    return slot


async def kill_writer(stack: Stack, settings: Settings, table: str) -> None:
    """Kill the consumer that writes a table, and wait for another process."""
    slot = str(await writer_of(settings, table))
    (killed,) = (
        pid
        for pid in stack.consumer_pids()
        if (line := psutil.Process(pid).cmdline())[line.index("--slot") + 1] == slot
    )
    psutil.Process(killed).kill()
    await until(lambda: len({*stack.consumer_pids()} - {killed}) >= 2)


@pytest.mark.nightly
async def test_two_topics_get_each_record_once_into_one_table_through_kills_of_its_writer(
    broker: str, spark_url: str, lake: Path
) -> None:
    entry = {**TYPED, "topics": [EU, US], "name": "shared"}
    settings = settings_of(broker, spark_url, lake, "shared-killed", [EU, US], [entry])
    environment = os.environ | settings_environment(settings)
    for topic in (EU, US):
        await create_topic(settings.kafka, topic, 2)
    total = 0
    async with services(settings, lake.parent / "logs") as stack:
        for n in range(3):
            for topic in (EU, US):
                await produce(broker, topic, values(60 * n, 60 * n + 60))
            total += 120
            await until(lambda total=total: sum(landed(lake, "shared").values()) >= total)  # type: ignore[misc]
            if n < 2:
                for topic in (EU, US):
                    await produce(broker, topic, values(0, 30))
                total += 60
                await kill_writer(stack, settings, "shared")
        await until(lambda: sum(landed(lake, "shared").values()) >= total)
        result = await audited(settings)
        listed = await binwright("table", "list", "--json", environment=environment)
        arguments = ("audit", "--table", "shared", "--compare", "both")
        verified = await binwright(*arguments, environment=environment)
        described = await binwright("table", "describe", "shared", environment=environment)
        explained = await binwright("explain", EU, environment=environment)
    assert result.clean, result.faults()
    assert {(t.topic, t.name) for t in result.tables} == {(EU, "shared"), (US, "shared")}
    counts = landed(lake, "shared")
    assert (len(counts), set(counts.values())) == (total, {1})
    assert {topic for topic, _, _ in counts} == {EU, US}
    (table,) = json.loads(listed[1])
    assert (table["name"], table["topics"], table["state"]) == ("shared", [EU, US], "landing")
    assert verified[0] == 0, verified
    assert (described[0], f"topics: {EU}, {US}" in " ".join(described[1].split())) == (0, True)
    assert (explained[0], "it is not late" in explained[1]) == (0, True), explained


async def test_a_shared_table_is_compacted_and_keeps_the_days_that_it_is_to_keep(
    broker: str, spark_url: str, lake: Path, tmp_path: Path
) -> None:
    topics = ["kept-eu", "kept-us"]
    entry = {**TYPED, "topics": topics, "name": "kept", "keep_days": 1.0}
    plain = settings_of(broker, spark_url, lake, "shared-kept", topics, [entry])
    care = plain.lake.model_copy(update={"vacuum_interval_s": 5.0, "compact_files": 3})
    settings = plain.model_copy(update={"lake": care})
    for topic in topics:
        await create_topic(settings.kafka, topic, 1)
        await produce(broker, topic, values(0, 10), timestamp_ms=wall_ms() - 3 * DAY_MS)
    async with services(settings, lake.parent / "logs"):
        await until(lambda: _operations(lake, "kept")["WRITE"] > 0)
        for n in range(10, 10 + LATER):  # a file each, so that there is something to compact
            for topic in topics:
                await produce(broker, topic, [b'{"id": %d}' % n])
            await until(lambda n=n: _newest(lake, "kept") == (n, n))  # type: ignore[misc]
        await until(lambda: len(landed(lake, "kept")) == 2 * LATER)
        await until(lambda: _operations(lake, "kept")["OPTIMIZE"] > 0)
        result = await audited(settings)
        wider = tmp_path / "wider.sql"
        wider.write_text("id BIGINT, more STRING")
        checked = await binwright(
            *("schema", "check", "kept", "--schema", str(wider), "--json"),
            environment=os.environ | settings_environment(settings),
        )
    assert result.clean, result.faults()
    parts = {t.topic: t.partitions[0] for t in result.tables}
    assert {topic: (p.rows, p.expired, p.lost) for topic, p in parts.items()} == dict.fromkeys(
        topics, (LATER, 10, 0)
    )
    assert checked[0] == 0, checked
    assert [(change["column"], change["kind"]) for change in json.loads(checked[1])] == [
        ("more", "added")
    ]


def _operations(lake: Path, table: str) -> Counter[str]:
    """Return how often each operation changed a table."""
    if not any((lake / table / "_delta_log").glob("*.json")):
        return Counter()
    return Counter(str(each["operation"]) for each in DeltaTable(str(lake / table)).history())


def _newest(lake: Path, table: str) -> tuple[int, ...]:
    """Return the highest id of each topic."""
    highest: dict[str, int] = {}
    for row in rows(lake, table):
        topic = row["_kafka"]["topic"]
        highest[topic] = max(highest.get(topic, 0), row["id"] or 0)
    return tuple(highest.values())


async def test_a_raw_table_of_one_topic_gets_a_second_one_later(
    broker: str, spark_url: str, lake: Path
) -> None:
    first, second = "added-first", "added-second"
    before = settings_of(broker, spark_url, lake, "shared-added", [first], [])
    await create_topic(before.kafka, first, 1)
    await create_topic(before.kafka, second, 2)
    async with services(before, lake.parent / "logs"):
        await produce(broker, first, values(0, 20))
        await until(lambda: sum(landed(lake, first).values()) == 20)
    await produce(broker, second, values(0, 30))
    entry = {"format": "raw", "topics": [first, second], "name": first}
    after = settings_of(broker, spark_url, lake, "shared-added", [first, second], [entry])
    async with services(after, lake.parent / "logs"):
        await produce(broker, first, values(20, 40))
        await until(lambda: sum(landed(lake, first).values()) == 70)
        result = await audited(after)
    assert result.clean, result.faults()
    assert set(landed(lake, first).values()) == {1}
