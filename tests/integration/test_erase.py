"""Rows of a person are erased though a consumer dies meanwhile; the audit knows them."""

import asyncio
import json
import signal
import time
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

GROUP, ITEMS = "erasing", "erasing-items"
BAD, NOTED = f"{ITEMS}__bad", f"{ITEMS}__erased"
COUNT = 40
PERSON = "ann.of.the.green.gables"


def settings_of(broker: str, spark: str, lake: Path) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[ITEMS],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        tables=[{"topics": [ITEMS], "format": "csv", "columns": "id INT, name STRING"}],
        monitor={"topic": f"{GROUP}.metrics"},  # others read the default one
        controller={"process_logs": str(lake.parent / "consumers")},
    )


async def asked(broker: str, *arguments: str) -> tuple[int, str]:
    """Run `binwright table erase`; return its exit code, and what it wrote."""
    where = ("--group", GROUP, "--bootstrap-servers", broker, "--reason", "case 12")
    code, out, errors = await binwright("table", "erase", ITEMS, *arguments, *where)
    return code, out if code == 0 else " ".join((out + errors).split())


async def erased(broker: str, *options: str) -> dict[str, Any]:
    code, out = await asked(broker, "--json", *options)
    assert code == 0, out
    return dict(json.loads(out))


def wait_noted(lake: Path) -> None:
    """Wait until places are noted whose rows are there still."""
    until_s = time.monotonic() + LANDED_S
    while not [*(lake / NOTED / "_delta_log").glob("*1.json")]:
        assert time.monotonic() < until_s
        time.sleep(0.002)


def log_text(lake: Path) -> str:
    """Return what the log of the table says of its commits, without statistics of files."""
    logs = sorted((lake / ITEMS / "_delta_log").glob("*.json"))
    lines = (line for log in logs for line in log.read_text().splitlines())
    return "\n".join(line for line in lines if '"commitInfo"' in line)


@pytest.mark.nightly
async def test_rows_are_erased_once_though_a_consumer_dies_in_between(
    broker: str, spark_url: str, lake: Path
) -> None:
    settings = settings_of(broker, spark_url, lake)
    await create_topic(settings.kafka, ITEMS, 1)
    where = ("--where", f"name = '{PERSON}'")
    async with services(settings, lake.parent / "logs") as stack:
        names = (PERSON if number % 4 == 0 else "bob" for number in range(COUNT))
        lines = [f"{number},{name}".encode() for number, name in enumerate(names)]
        await produce(broker, ITEMS, [*lines, f"x,{PERSON}".encode()])
        await until(lambda: len(rows(lake, ITEMS)) == COUNT and len(rows(lake, BAD)) == 1)

        for wrong, fault in (
            ("name = now()", "no now in a condition"),
            ("nick = 'ann'", "name 1 in it is no column of the table, which has: _kafka, id, name"),
        ):
            code, out = await asked(broker, "--where", wrong)
            assert (code, fault in out) == (2, True), out
        would = await erased(broker, *where, "--dry-run")
        assert (would["erased"], would["bad_left"], would["files_until_ms"]) == (COUNT // 4, 1, 0)
        assert len(rows(lake, ITEMS)) == COUNT

        erasing = asyncio.create_task(
            erased(broker, *where, "--bad-where", "kind = 'incompatible'")
        )
        await asyncio.to_thread(wait_noted, lake)
        (pid,) = stack.consumer_pids()
        psutil.Process(pid).send_signal(signal.SIGKILL)
        await produce(broker, ITEMS, [b"100,bob"])
        done = await erasing
        assert (done["state"], done["reason"]) == ("done", "case 12")
        assert (done["erased"], done["bad_erased"]) == (COUNT // 4, 1)
        week_ms = done["files_until_ms"] - done["ended_ms"]
        assert week_ms == settings.lake.vacuum_retention_s * 1000

        await until(lambda: len(rows(lake, ITEMS)) == COUNT - COUNT // 4 + 1)
        assert {row["name"] for row in rows(lake, ITEMS)} == {"bob"}
        assert rows(lake, BAD) == []
        assert PERSON not in log_text(lake), "no commit keeps the condition"
        assert (await erased(broker, *where))["erased"] == 0

        result = await audit([ITEMS], settings.kafka, settings.lake)
        assert result.clean, result.faults()
        (part,) = result.tables[0].partitions
        assert (part.erased, part.rows, part.lost) == (COUNT // 4 + 1, COUNT - COUNT // 4 + 1, 0)
        where_ = ("--group", GROUP, "--bootstrap-servers", broker)
        lake_options = ("--lake", str(lake), "--spark", spark_url, "--json")
        status, out, errors = await binwright("table", "describe", ITEMS, *where_, *lake_options)
        assert status == 0, errors
        assert json.loads(out)["operation"]["files_until_ms"] == done["files_until_ms"]
