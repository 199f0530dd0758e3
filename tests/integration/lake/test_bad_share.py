"""A table stops where too many records cannot be decoded: real broker, Spark and processes."""

from pathlib import Path
from typing import Any

import pytest
from tests.integration.landing import produce, rows, texts, until
from tests.integration.topics import create_topic

from binwright.local.stack import services
from binwright.runtime.settings.group import Settings, load_settings

pytestmark = pytest.mark.integration

TOPIC, BESIDE = "wrong-format", "right-format"
RECORDS = 20


def settings_of(broker: str, spark: str, lake: Path, **table: Any) -> Settings:
    logs = lake.parent / "consumers"
    logs.mkdir(exist_ok=True)
    return load_settings(
        group="bad-share",
        topics=[TOPIC, BESIDE],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        tables=[
            {"topics": [TOPIC], "bad_share": 0.01, **table},
            {"topics": [BESIDE], "format": "string", "bad_share": 0.0},
        ],
        monitor={"topic": "bad-share.metrics"},
        controller={"process_logs": str(logs)},
    )


@pytest.mark.nightly
async def test_a_table_of_the_wrong_format_stops_and_lands_once_it_is_mended(
    broker: str, spark_url: str, lake: Path
) -> None:
    wrong = settings_of(broker, spark_url, lake, format="json", columns="value STRING")
    for topic in (TOPIC, BESIDE):
        await create_topic(wrong.kafka, topic, 1)
    values = [b"text %d" % number for number in range(RECORDS)]
    await produce(broker, TOPIC, values)
    async with services(wrong, lake.parent / "logs"):
        logs = lake.parent / "consumers"
        await until(lambda: "table.refused" in "".join(texts(logs)))
        await produce(broker, BESIDE, values)
        await until(lambda: len(rows(lake, BESIDE)) == RECORDS)
        refused = next(
            line for line in "".join(texts(logs)).splitlines() if "table.refused" in line
        )
        assert "of the newest 1000 records are bad, and bad_share allows 0.01 of them" in refused
        assert f"{TOPIC}-0 at offset 0: malformed: " in refused
        assert rows(lake, TOPIC) == rows(lake, f"{TOPIC}__bad") == []

    right = settings_of(broker, spark_url, lake, format="string")
    async with services(right, lake.parent / "logs"):
        await until(lambda: len(rows(lake, TOPIC)) == RECORDS)
    assert sorted(row["value"] for row in rows(lake, TOPIC)) == sorted(
        value.decode() for value in values
    )
    assert rows(lake, f"{TOPIC}__bad") == []
