"""A topic whose records were all bad, by wrong settings: mended, replayed and audited."""

import asyncio
import json
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.integration.command_line import binwright
from tests.integration.landing import LANDED_S, in_order, produce, rows, until
from tests.integration.topics import create_topic

from binwright.inspect.audit import audit
from binwright.local.stack import services
from binwright.runtime.settings.group import Settings, load_settings

pytestmark = pytest.mark.integration

GROUP, ITEMS, RAW = "replaying", "replaying-items", "replaying-raw"
BAD = f"{ITEMS}__bad"
COUNT = 40
MALFORMED = {"malformed": COUNT}


def settings_of(broker: str, spark: str, lake: Path, delimiter: str) -> Settings:
    table = {"topics": [ITEMS], "format": "csv", "columns": "id INT, item STRING"}
    return load_settings(
        group=GROUP,
        topics=[ITEMS, RAW],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        tables=[{**table, "delimiter": delimiter}],
        monitor={"topic": f"{GROUP}.metrics"},  # others read the default one
        controller={"process_logs": str(lake.parent / "consumers")},
    )


async def asked(broker: str, *arguments: str) -> tuple[int, str]:
    """Run `binwright table replay`; return its exit code, and what it wrote."""
    where = ("--group", GROUP, "--bootstrap-servers", broker)
    code, out, errors = await binwright("table", "replay", *arguments, *where)
    return code, out if code == 0 else " ".join((out + errors).split())


async def replayed(broker: str, *options: str) -> dict[str, Any]:
    code, out = await asked(broker, ITEMS, "--json", "--reason", "a comma it is", *options)
    assert code == 0, out
    return dict(json.loads(out))


def is_unsettled(lake: Path) -> bool:
    """Whether rows were appended whose records may be among the bad ones still."""
    newest = max((lake / ITEMS / "_delta_log").glob("*.json"))
    return "unsettled" in newest.read_text()


def versions(lake: Path, table: str) -> int:
    return len([*(lake / table / "_delta_log").glob("*.json")])


def wait_unsettled(lake: Path) -> None:
    until_s = time.monotonic() + LANDED_S
    while not is_unsettled(lake):
        assert time.monotonic() < until_s
        time.sleep(0.005)


@pytest.mark.nightly
async def test_bad_records_become_rows_once_though_a_consumer_dies_in_between(
    broker: str, spark_url: str, lake: Path
) -> None:
    settings = settings_of(broker, spark_url, lake, ";")
    for topic in (ITEMS, RAW):
        await create_topic(settings.kafka, topic, 1)
    lines = [f"{number},tea".encode() for number in range(COUNT)]
    async with services(settings, lake.parent / "logs"):
        await produce(broker, ITEMS, [*lines, b"x,no number"])
        await produce(broker, RAW, [b"1,tea"])
        await until(lambda: len(rows(lake, BAD)) == COUNT + 1 and len(rows(lake, RAW)) == 1)
        assert rows(lake, ITEMS) == []

    mended = settings_of(broker, spark_url, lake, ",")
    async with services(mended, lake.parent / "logs") as stack:
        await produce(broker, ITEMS, [b"100,live"])
        await until(lambda: len(rows(lake, ITEMS)) == 1)
        code, out = await asked(broker, "unknown")
        assert (code, f"it has: {ITEMS}, {RAW}" in out) == (2, True), out
        code, out = await asked(broker, ITEMS, "--class", "ugly")
        assert (code, "there is no class 'ugly'" in out) == (2, True), out
        code, out = await asked(broker, RAW)
        assert (code, "raw records" in out) == (2, True), out

        known = versions(lake, BAD)
        would = await replayed(broker, "--dry-run")
        assert (would["moved"], would["left"]) == (MALFORMED, {"malformed": 1})
        assert (await replayed(broker, "--class", "too_large"))["moved"] == {}
        assert (await replayed(broker, "--since", "1s"))["moved"] == {}
        assert versions(lake, BAD) == known
        assert len(rows(lake, BAD)) == COUNT + 1

        replay = asyncio.create_task(replayed(broker))
        await asyncio.to_thread(wait_unsettled, lake)
        (pid,) = stack.consumer_pids()
        psutil.Process(pid).send_signal(signal.SIGKILL)
        assert versions(lake, BAD) == known  # they have not left the bad ones
        await produce(broker, ITEMS, [b"101,live"])
        done = await replay
        assert (done["state"], done["moved"]) == ("done", MALFORMED)
        assert (done["left"], done["reason"]) == ({"malformed": 1}, "a comma it is")

        (bad,) = rows(lake, BAD)
        assert (bad["kind"], bad["value"]) == ("incompatible", b"x,no number")
        await until(lambda: len(rows(lake, ITEMS)) == COUNT + 2)
        ids = [row["id"] for row in in_order(rows(lake, ITEMS))]
        assert ids == [*range(COUNT), 100, 101]
        again = await replayed(broker)
        assert (again["moved"], again["left"]) == ({}, {"incompatible": 1})
        assert len(rows(lake, ITEMS)) == COUNT + 2

        result = await audit([ITEMS], mended.kafka, mended.lake)
        assert result.clean, result.faults()
        assert (result.rows, result.bad) == (COUNT + 3, 1)
        where = ("--group", GROUP, "--bootstrap-servers", broker)
        lake_options = ("--lake", str(lake), "--spark", spark_url, "--json")
        status, out, errors = await binwright("table", "describe", ITEMS, *where, *lake_options)
        assert status == 0, errors
        assert json.loads(out)["operation"]["id"] == again["id"]
