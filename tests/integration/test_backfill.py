"""What is before a table's beginning lands once, though consumers die at each step of it."""

import asyncio
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.command_line import binwright
from tests.integration.landing import produce, rows, until
from tests.integration.topics import create_topic

from binwright.inspect.audit import audit
from binwright.local.stack import Stack, services
from binwright.runtime.settings.group import Settings, load_settings

pytestmark = pytest.mark.integration

GROUP, ITEMS, COPY = "filling", "filling-items", "filling-copy"
BAD = f"{ITEMS}__bad"
OLD, PARTITIONS, BAD_EVERY = 12_000, 2, 1_000
ENTRY = {"topics": [ITEMS], "format": "csv", "columns": "id INT, name STRING"}


def settings_of(broker: str, spark: str, lake: Path, *tables: dict[str, object]) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[ITEMS],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 2.0},
        tables=[ENTRY, *tables],
        consumer={"start": "latest"},
        monitor={"topic": f"{GROUP}.metrics"},  # others read the default one
        controller={"process_logs": str(lake.parent / "consumers")},
    )


async def produce_old(broker: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=broker, linger_ms=20) as producer:
        for number in range(OLD):
            good = f"{number},name-{number}"
            value = f"x{good}" if number % BAD_EVERY == 7 else good
            await producer.send(ITEMS, value.encode(), partition=number % PARTITIONS)


async def backfilled(broker: str, table: str, *options: str) -> dict[str, Any]:
    """Run `binwright table backfill`; return what it prints."""
    where = ("--group", GROUP, "--bootstrap-servers", broker, "--json")
    order = ("--from", "earliest", "--reason", "history", *options)
    code, out, errors = await binwright("table", "backfill", table, *order, *where)
    assert code == 0, out + errors
    return dict(json.loads(out))


def portions(lake: Path) -> int:
    """Return how many commits have rows, or bad records, since a back-fill knows its ranges."""
    logs = (p for name in (ITEMS, BAD) for p in (lake / name / "_delta_log").glob("*.json"))
    texts = (log.read_text() for log in logs)
    return sum("ranges" in text and '"add"' in text for text in texts)


async def kill_after(stack: Stack, lake: Path, commits: int) -> None:
    """End a consumer at once when so many portions, or bad records of some, are in the table."""
    await until(lambda: portions(lake) >= commits)
    for pid in stack.consumer_pids():
        psutil.Process(pid).send_signal(signal.SIGKILL)


def offsets(lake: Path, *names: str) -> Counter[tuple[int, int]]:
    places = (row["_kafka"] for name in names for row in rows(lake, name))
    return Counter((place["partition"], place["offset"]) for place in places)


async def test_what_is_before_a_table_lands_once_though_consumers_die(
    broker: str, spark_url: str, lake: Path
) -> None:
    settings = settings_of(broker, spark_url, lake)
    await create_topic(settings.kafka, ITEMS, PARTITIONS)
    await produce_old(broker)
    async with services(settings, lake.parent / "logs") as stack:
        live = 0

        async def land_one() -> None:
            nonlocal live
            live += 1
            await produce(broker, ITEMS, [f"{OLD + live},live".encode()])

        async def land_on() -> None:
            while True:
                await land_one()
                await asyncio.sleep(1)

        await until(lambda: any((lake / ITEMS / "_delta_log").glob("*2.json")))
        await land_one()
        await until(lambda: len(rows(lake, ITEMS)) == 1)
        would = await backfilled(broker, ITEMS, "--dry-run")
        assert (would["to_go"], would["rows"], len(rows(lake, ITEMS))) == (OLD, 0, 1)

        landing = asyncio.create_task(land_on())
        filling = asyncio.create_task(backfilled(broker, ITEMS))
        for commits in (1, 4):
            await kill_after(stack, lake, commits)
        done = await filling
        landing.cancel()
        assert (done["state"], done["reason"], done["to_go"]) == ("done", "history", 0)
        assert (done["rows"], done["bad"]) == (OLD - OLD // BAD_EVERY, OLD // BAD_EVERY)

        await until(lambda: len(rows(lake, ITEMS)) + len(rows(lake, BAD)) == OLD + live)
        assert set(offsets(lake, ITEMS, BAD).values()) == {1}
        names = {row["id"]: row["name"] for row in rows(lake, ITEMS) if row["id"] < OLD}
        assert all(name == f"name-{id_}" for id_, name in names.items())
        result = await audit([ITEMS], settings.kafka, settings.lake)
        assert result.clean, result.faults()
        assert result.rows == OLD + live

    second = settings_of(
        broker,
        spark_url,
        lake,
        {**ENTRY, "name": COPY, "begin": "earliest", "where": ["id >= 100"]},
    )
    async with services(second, lake.parent / "logs2"):
        wanted = len(rows(lake, ITEMS)) - len([r for r in rows(lake, ITEMS) if r["id"] < 100])
        await until(lambda: len(rows(lake, COPY)) == wanted)
        audited = await audit([ITEMS], second.kafka, second.lake, tables_of=lambda _: (ITEMS, COPY))
        copy = audited.tables[1]
        assert sum(part.surplus for part in copy.partitions) == 0
