"""`binwright table list` and `describe`, and the metrics, of what real processes landed."""

import asyncio
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.exposition import values
from tests.integration.command_line import binwright
from tests.integration.landing import LANDED_S, produce, rows, until
from tests.integration.ports import reserve_ports
from tests.integration.topics import create_topic

from binwright.local.server import HOST, reserve_port
from binwright.local.stack import services
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.health import HealthSettings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

GROUP, ITEMS, RAW = "tables", "tables-items", "tables-raw"
LINES = "tables-lines"  # a topic that Kafka does not have
COLUMNS = "id BIGINT, item STRING, payload VARIANT"
GOOD = [b'{"id": 1, "payload": {"a": 1}, "by": {"name": "x"}}', b'{"id": 2, "item": "tea"}', None]
BAD = [b"no JSON", b'{"id": "x"}']
STATES = {"landing", "absent"}


def settings_of(broker: str, spark: str, lake: Path, port: int) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[ITEMS, RAW, LINES],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        tables=[
            {"topics": [ITEMS], "format": "json", "columns": COLUMNS, "cluster_by": ["id"]},
            {"topics": [LINES], "format": "csv", "columns": "id INT", "delimiter": ";"},
        ],
        monitor={"topic": f"{GROUP}.metrics"},
        controller={"process_logs": str(lake.parent / "consumers")},
        health={"port": port},
    )


@pytest.fixture
def port() -> Iterator[int]:
    """Give the controller's port, while that of its consumer is kept, too."""
    with reserve_ports(2) as ports:
        yield ports[0]


async def metrics(port: int, table: str) -> dict[str, float]:
    """Return what the consumer of slot 0 measures of a table, by name and kind of records."""
    url = f"http://{HOST}:{port + 1}/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        text = await response.text()
    found = {}
    for (name, labels), value in values(text).items():
        of = dict(labels)
        if (of.get("topic"), of.get("table")) == (table, table):
            found[" ".join((name.removeprefix("binwright_"), of.get("kind", ""))).strip()] = value
    return found


@pytest.mark.nightly
async def test_tables_are_listed_described_and_measured(
    broker: str, spark_url: str, lake: Path, port: int
) -> None:
    settings = settings_of(broker, spark_url, lake, port)
    environment = os.environ | settings_environment(settings)

    async def table(*arguments: str) -> tuple[int, str]:
        code, out, errors = await binwright("table", *arguments, environment=environment)
        return code, out if code == 0 else " ".join((out + errors).split())

    async def listed() -> dict[str, dict[str, Any]]:
        code, out = await table("list", "--json")
        assert code == 0, out
        return {each["topic"]: each for each in json.loads(out)}

    code, out = await table("list")
    assert (code, f"there is no group {GROUP} here" in out) == (1, True), out
    for topic in (ITEMS, RAW):
        await create_topic(settings.kafka, topic, 2)
    monitor = settings.model_copy(update={"health": HealthSettings()})
    began = wall_ms()
    async with services(settings, lake.parent / "logs", monitor=monitor):
        await produce(broker, ITEMS, [*GOOD, *BAD])
        await until(lambda: len(rows(lake, ITEMS)) == len(GOOD))
        await _is_measured(port, began)
        found = await listed()
        async with asyncio.timeout(LANDED_S):
            while {each["state"] for each in found.values()} != STATES:
                found = await listed()
        kinds = {t: (each["format"], each["rows"], each["bad"]) for t, each in found.items()}
        assert kinds == {
            ITEMS: ("json", len(GOOD), len(BAD)),
            LINES: ("csv", None, None),
            RAW: ("raw", 0, None),
        }
        assert list(kinds) == sorted(kinds)
        assert 0 <= found[ITEMS]["freshness_s"] <= (wall_ms() - began) / 1000
        assert found[RAW]["freshness_s"] is None
        assert (found[LINES]["state"], found[LINES]["version"]) == ("absent", None)
        assert found[ITEMS]["path"] == f"{lake}/{ITEMS}"
        await _one_server_is_away(spark_url, table)

        code, out = await table("pause", ITEMS, "--reason", "a repair")
        assert code == 0, out
        code, out = await table("describe", ITEMS, "--json")
        assert code == 0, out
        _is_described(json.loads(out))

    code, out = await table("describe", LINES)
    assert code == 0, out
    for line in ("state:          absent", "format:         csv, delimiter ';'"):
        assert line in out.splitlines()
    code, out = await table("describe", "nothing")
    assert (code, f"it has: {ITEMS}, {LINES}, {RAW}" in out) == (2, True), out


async def _one_server_is_away(
    spark_url: str, table: Callable[..., Awaitable[tuple[int, str]]]
) -> None:
    """Tables of one server are listed while another one does not answer."""
    with reserve_port() as unused:
        away = f"sc://{HOST}:{unused}"
        servers = f"{spark_url},{away}"
        server = {t: LakeSettings(spark=servers).server(t) for t in (ITEMS, RAW, LINES)}
        assert set(server.values()) == {spark_url, away}
        code, out = await table("list", "--json", "--spark", servers)
        assert code == 0, out
        for each in json.loads(out):
            is_away = server[each["topic"]] == away
            assert ("no Spark Connect server" in each["reason"]) is is_away
            assert each["rows"] is None or not is_away
        code, out = await table("list", "--spark", away)
    assert (code, "no Spark Connect server" in out) == (1, True), out


async def _is_measured(port: int, began: int) -> None:
    async with asyncio.timeout(LANDED_S):
        while (await metrics(port, ITEMS)).get("table_bad_records_total") != len(BAD):  # noqa: ASYNC110 - only asking tells
            await asyncio.sleep(0.5)
    found = await metrics(port, ITEMS)
    assert 0 <= found["table_freshness_seconds"] <= (wall_ms() - began) / 1000
    assert "table_freshness_seconds" not in await metrics(port, RAW)
    assert found["consumer_decoding_seconds_total"] > 0
    for kind in ("malformed", "incompatible"):
        assert found[f"consumer_bad_records_total {kind}"] == 1
    assert found["consumer_new_fields_total"] == 1
    assert found["table_landing"] == 1


def _is_described(found: dict[str, Any]) -> None:
    assert found["settings"] == {
        "schema_source": f"the entry of {ITEMS} in the settings",
        "columns": {"id": "bigint", "item": "string", "payload": "variant"},
        "delimiter": None,
        "message": None,
        "key": "",
        "new_fields": "ignore",
        "tombstones": "row",
        "partition_by": None,
        "cluster_by": ["id"],
        "statistics": [],
        "bad_share": 1.0,
        "keep_days": 0.0,
    }
    assert found["new_fields"] == ["by"]
    assert found["state"] == "paused"
    assert re.search(r"paused by .*: a repair", found["reason"])
    (first, second) = found["partitions"]
    assert (first["committed"], first["end"], first["lag"]) == (5, 5, 0)
    assert second["committed"] == 0
    there = found["table"]
    assert there["columns"]["payload"] == "variant"
    assert next(iter(there["columns"])) == "_kafka"
    assert there["bad_kinds"] == {"incompatible": 1, "malformed": 1}
    bad = {each["offset"]: (each["partition"], each["kind"]) for each in there["bad_records"]}
    first = len(GOOD)
    assert bad == {first: (0, "malformed"), first + 1: (0, "incompatible")}
    assert all(each["reason"] for each in there["bad_records"])
    assert there["clustered_by"] == ["id"]
    assert "variantType" in there["reader_features"]
    assert "clustering" not in there["reader_features"]
    assert "Spark before 4.0" in there["shut_out"]
    assert "a repair" in there["paused"]
    assert there["commits"][0]["version"] == found["version"]
    assert sum(commit["rows"] or 0 for commit in there["commits"]) == len(GOOD)
