"""Real consumers that see two types of a new field land both, in one column and beside it."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.command_line import binwright
from tests.integration.landing import LANDED_S, in_order, rows, texts, until
from tests.integration.topics import create_topic

from binwright.local.stack import services
from binwright.protocol.names import ADDED_COLUMNS
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

ODD = {"later": True, "a.b": 1, "`": "q", "it's": 0.5, "é-x": "", "SELECT": False, "$": "$"}
"""Fields whose names want care in SQL."""
GROUP, ITEMS = "new-columns", "new-columns-items"


def settings_of(broker: str, spark: str, lake: Path) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[ITEMS],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        tables=[{"topics": [ITEMS], "format": "json", "columns": "id BIGINT", "new_fields": "add"}],
        monitor={"topic": f"{GROUP}.metrics"},
        controller={"process_logs": str(lake.parent / "consumers"), "min_slots": 2},
    )


async def produce(broker: str, *values: tuple[int, bytes]) -> None:
    """Send values to the partitions that are named, all at the same time."""
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        sent = [await producer.send(ITEMS, value, partition=p) for p, value in values]
        await asyncio.gather(*sent)


def whole(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row's record, wherever they are."""
    fields = {n: v for n, v in row.items() if n not in {"_kafka", "_rest"} and v is not None}
    rest: dict[str, Any] = json.loads(row["_rest"] or "{}")
    assert not rest.keys() & fields.keys()
    return fields | rest


async def is_as_commands_have_it(environment: Mapping[str, str]) -> None:
    code, out, errors = await binwright("audit", "--json", environment=environment)
    assert code == 0, out + errors
    for reader in ("spark", "deltalake"):
        code, out, errors = await binwright(
            *("audit", "--table", ITEMS, "--compare", "values", "--json", "--reader", reader),
            environment=environment,
        )
        assert code == 0, out + errors
        found = json.loads(out)["values"][ITEMS][ITEMS]
        assert (found["waiting"], found["bad"]) == (0, 2)
    code, out, _ = await binwright("table", "describe", ITEMS, environment=environment)
    assert (code, "new fields:" in out) == (0, True), out


@pytest.mark.nightly
async def test_values_land_in_the_column_of_a_new_field_or_beside_it(
    broker: str, spark_url: str, lake: Path
) -> None:
    settings = settings_of(broker, spark_url, lake)
    await create_topic(settings.kafka, ITEMS, 2)
    expected = dict[int, dict[int, dict[str, Any]]]({0: {}, 1: {}})
    ends = [0, 0]

    async def send(*documents: tuple[int, dict[str, Any]]) -> None:
        for partition, document in documents:
            expected[partition][ends[partition]] = document
            ends[partition] += 1
        await produce(broker, *((p, json.dumps(each).encode()) for p, each in documents))
        await until(lambda: len(rows(lake, ITEMS)) == sum(map(len, expected.values())))

    def published() -> str:
        file = Path(settings.staging_path) / ITEMS / ADDED_COLUMNS
        return file.read_text() if file.exists() else ""

    async with services(settings, lake.parent / "logs"):
        await send((0, {"id": 1, "x": 7}), (1, {"id": 2, "x": "text"}))
        await until(lambda: published().startswith("x "))
        kind = published().removeprefix("x ")
        assert kind in {"bigint", "string"}
        fitting, other = (8, "more") if kind == "bigint" else ("more", 8)

        async def learned(partition: int) -> None:
            """Send until a consumer has filled the column."""
            async with asyncio.timeout(LANDED_S):
                while True:
                    await send((partition, {"x": fitting}))
                    newest = max(
                        (r for r in rows(lake, ITEMS) if r["_kafka"]["partition"] == partition),
                        key=lambda row: row["_kafka"]["offset"],
                    )
                    if newest["x"] is not None:
                        return

        await learned(0)
        await learned(1)
        await send((0, {"x": other, "X": 1}), (1, {"x": other, "y": {"z": [1.50]}}))
        await produce(broker, (0, b"no JSON"), (1, b'{"id": "x", "x": 1}'))
        await until(lambda: len(rows(lake, f"{ITEMS}__bad")) == 2)
        for partition in (0, 1):
            ends[partition] += 1

    async with services(settings, lake.parent / "logs"):
        await learned(0)
        await send((0, {**ODD, "x": fitting}), (1, {"later": None, "x": other}))
        await until(lambda: "later boolean" in published())
        async with asyncio.timeout(LANDED_S):
            while all(row.get("later") is None for row in rows(lake, ITEMS)):
                await send((0, ODD), (1, ODD))
    assert ODD.keys() <= {*next(row for row in rows(lake, ITEMS) if row["later"])}

    landed = {
        partition: {
            row["_kafka"]["offset"]: whole(row)
            for row in in_order(rows(lake, ITEMS))
            if row["_kafka"]["partition"] == partition
        }
        for partition in (0, 1)
    }
    assert landed == {
        partition: {
            offset: {name: value for name, value in document.items() if value is not None}
            for offset, document in documents.items()
        }
        for partition, documents in expected.items()
    }
    await is_as_commands_have_it(os.environ | settings_environment(settings))
    logs = "\n".join(texts(lake.parent / "consumers"))
    assert "rows.missing" not in logs
    assert "table.reclaimed" not in logs
