"""`binwright table pause` and `resume`, on a real broker and Spark, with real processes."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.command_line import binwright
from tests.integration.landing import LANDED_S, produce, rows, until
from tests.integration.topics import create_topic

from binwright.inspect.audit import audit
from binwright.local.stack import services
from binwright.runtime.settings.group import Settings, load_settings

pytestmark = pytest.mark.integration

GROUP, PAUSED, BESIDE = "pausing", "pausing-paused", "pausing-beside"


def settings_of(broker: str, spark: str, lake: Path) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[PAUSED, BESIDE],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        monitor={"topic": f"{GROUP}.metrics"},  # others read the default one
        controller={"process_logs": str(lake.parent / "consumers")},
    )


async def asked(broker: str, *arguments: str) -> tuple[int, str]:
    """Run the command line; return its exit code, and what it wrote."""
    servers = ("--bootstrap-servers", broker)
    code, out, errors = await binwright(*arguments, "--group", GROUP, *servers)
    return code, " ".join((out + errors).split())


async def table(broker: str) -> dict[str, Any]:
    code, out = await asked(broker, "status", "--json")
    assert code == 0, out
    (group,) = json.loads(out)
    (found,) = (each for each in group["tables"] if each["topic"] == PAUSED)
    return dict(found)


@pytest.mark.nightly
async def test_a_pause_outlives_its_writer_and_loses_nothing(
    broker: str, spark_url: str, lake: Path
) -> None:
    settings = settings_of(broker, spark_url, lake)
    for topic in (PAUSED, BESIDE):
        await create_topic(settings.kafka, topic, 1)
    async with services(settings, lake.parent / "logs") as stack:
        await produce(broker, PAUSED, [b"before"])
        await until(lambda: len(rows(lake, PAUSED)) == 1)

        code, out = await asked(broker, "table", "pause", PAUSED, "--reason", "a repair")
        assert code == 0, out
        assert f"the table {PAUSED} is paused: its rows wait" in out
        assert "for 7 days" in out
        code, out = await asked(broker, "table", "pause", PAUSED, "--reason", "again")
        assert (code, "is paused" in out) == (2, True), out
        code, out = await asked(broker, "table", "resume", "unknown")
        assert (code, f"it has: {BESIDE}, {PAUSED}" in out) == (2, True), out

        for topic in (PAUSED, BESIDE):
            await produce(broker, topic, [b"meanwhile"] * 20)
        await until(lambda: len(rows(lake, BESIDE)) == 20)
        assert "a repair" in (await table(broker))["fault"]
        (pid,) = stack.consumer_pids()
        psutil.Process(pid).send_signal(signal.SIGKILL)
        await until(lambda: stack.consumer_pids() not in ([], [pid]))
        await produce(broker, BESIDE, [b"after"])
        await until(lambda: len(rows(lake, BESIDE)) == 21)
        async with asyncio.timeout(LANDED_S):
            while (await table(broker))["state"] != "paused":  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(1)
        assert len(rows(lake, PAUSED)) == 1

        code, out = await asked(broker, "table", "resume", PAUSED)
        assert code == 0, out
        await until(lambda: len(rows(lake, PAUSED)) == 21)
        result = await audit([PAUSED, BESIDE], settings.kafka, settings.lake)
    assert result.clean
