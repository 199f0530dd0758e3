"""On a real broker and Spark, no file and no log has what a mask hides, and an audit is clean."""

import asyncio
import hmac
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aiokafka import AIOKafkaProducer
from pyspark.sql.connect.session import SparkSession
from tests.integration.command_line import binwright
from tests.integration.landing import in_order, rows, until
from tests.integration.topics import create_topic

from binwright.local.stack import services
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import settings_environment

pytestmark = pytest.mark.integration

GROUP, PEOPLE, RAW = "masks", "masks-people", "masks-raw"
CLEAR = b"CLEAR-ann@example.com"
KEY = "of-more-than-sixteen-characters"
ROWS, TESTS = 40, 10  # that land, and that the filter leaves out


def settings_of(broker: str, spark: str, lake: Path, key_file: Path) -> Settings:
    mask: dict[str, Any] = {"key": "sha256", "headers": {"*": "drop"}, "key_file": key_file}
    return load_settings(
        group=GROUP,
        topics=[PEOPLE, RAW],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark, "freshness_s": 1.0},
        tables=[
            {
                "topics": [PEOPLE],
                "format": "json",
                "columns": "id BIGINT, mail STRING, by STRUCT<name: STRING, n: INT>, kind STRING",
                "new_fields": "rest",
                "where": ["kind != 'test'"],
                "mask": {
                    **mask,
                    "fields": {"mail": "sha256", "by.name": "last 4", "_rest": "drop"},
                },
            },
            {"topics": [RAW], "format": "raw", "mask": {**mask, "fields": {"value": "null"}}},
        ],
        monitor={"topic": f"{GROUP}.metrics"},
        controller={"process_logs": str(lake.parent / "consumers")},
    )


def person(number: int, kind: str = "real") -> bytes:
    clear = CLEAR.decode()
    by = {"name": f"{clear}-{number:04}", "n": number}
    return json.dumps({"id": number, "mail": clear, "by": by, "kind": kind, "more": clear}).encode()


async def produce(broker: str) -> None:
    """Write rows, records of tests and bad ones, of which each has it in key, header and value."""
    headers = [("user", CLEAR)]
    odd = [CLEAR, json.dumps({"id": CLEAR.decode(), "kind": "real"}).encode()]
    values = [
        *(person(number) for number in range(ROWS)),
        *(person(number, "test") for number in range(TESTS)),
        *odd,
    ]
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        for topic in (PEOPLE, RAW):
            for value in values:
                await producer.send_and_wait(topic, value, key=CLEAR, partition=0, headers=headers)


@asynccontextmanager
async def staged_files_kept(lake: Path, kept: Path) -> AsyncIterator[None]:
    """Link each staged file to another place, before its table's writer deletes it."""

    async def link() -> None:
        await asyncio.to_thread(kept.mkdir)
        while True:
            # Not `rglob`, which fails where a consumer has removed its directory by now.
            for place, _, files in os.walk(lake / "_staging"):
                for name in files:
                    with suppress(FileExistsError, FileNotFoundError):
                        os.link(Path(place, name), kept / name)
            await asyncio.sleep(0.01)

    linking = asyncio.create_task(link())
    try:
        yield
    finally:
        linking.cancel()
        with suppress(asyncio.CancelledError):
            await linking


def with_clear_text(*places: Path) -> Iterator[Path]:
    """Yield the files that have it: anywhere, also within what Parquet compresses."""
    files = (file for place in places for file in place.rglob("*") if file.is_file())
    for file in files:
        content = file.read_bytes()
        if content[:4] == b"PAR1":
            content += repr(pq.read_table(pa.BufferReader(content)).to_pylist()).encode()
        if b"CLEAR" in content or KEY.encode() in content:
            yield file


@pytest.mark.nightly
async def test_what_is_masked_is_in_no_file_and_no_log_and_what_is_left_out_is_not_lost(
    broker: str, spark_url: str, lake: Path
) -> None:
    place = lake.parent
    key_file = place / "mask.key"
    key_file.write_text(KEY)
    settings = settings_of(broker, spark_url, lake, key_file)
    environment = os.environ | settings_environment(settings)

    async def audited(*options: str) -> dict[str, Any]:
        _, out, errors = await binwright("audit", "--json", *options, environment=environment)
        assert out, errors
        found: dict[str, Any] = json.loads(out)
        return found

    async def reported() -> tuple[int, str]:
        """Return what was skipped, 0 before the first report, and all that status says."""
        _, status, errors = await binwright(
            "status", "--group", GROUP, "--json", environment=environment
        )
        tables = [each for group in json.loads(status or "[]") for each in group["tables"]]
        return sum(each["skipped"] for each in tables if each["name"] == PEOPLE), status + errors

    for topic in settings.topics:
        await create_topic(settings.kafka, topic, 1)
    staged, logs = place / "staged", place / "logs"
    async with staged_files_kept(lake, staged), services(settings, logs):
        await produce(broker)
        await until(lambda: len(rows(lake, PEOPLE)) == ROWS)
        await until(lambda: len(rows(lake, f"{PEOPLE}__bad")) == 2)
        await until(lambda: len(rows(lake, RAW)) == ROWS + TESTS + 2)
        for _ in range(30):  # reports come after rows
            skipped, status = await reported()
            if skipped == TESTS:
                break
        assert skipped == TESTS, status

    hashed = hmac.digest(KEY.encode(), CLEAR, "sha256").hex()
    first = in_order(rows(lake, PEOPLE))[7]
    assert {name: first[name] for name in first if name != "_kafka"} == {
        "id": 7,
        "mail": hashed,
        "by": {"name": "***0007", "n": 7},
        "kind": "real",
    }
    assert (first["_kafka"]["key"], first["_kafka"]["headers"]) == (hashed.encode(), [])
    assert {row["value"] for row in rows(lake, f"{PEOPLE}__bad")} == {None}
    assert {row["value"] for row in rows(lake, RAW)} == {None}
    assert len([*staged.iterdir()]) >= 2
    assert [*with_clear_text(lake, staged, logs, place / "consumers")] == []

    found = await audited("--compare", "both")
    assert found["clean"], found
    (people,) = [each for each in found["tables"] if each["name"] == PEOPLE]
    assert people["partitions"][0]["skipped"] == TESTS
    session = SparkSession.builder.remote(spark_url).create()
    try:
        delete = f"DELETE FROM delta.`{lake}/{PEOPLE}` WHERE id = 7"  # noqa: S608 - our own names
        session.sql(delete).collect()
    finally:
        session.stop()
    found = await audited("--table", PEOPLE)
    (part,) = found["tables"][0]["partitions"]
    assert (part["lost"], part["skipped"], found["clean"]) == (1, TESTS, False)
