"""The system for a person's own topics, and the audit as a command of its own."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from tests.integration.topics import create_topic

from binwright.runtime.settings import KafkaSettings

pytestmark = pytest.mark.integration

BINWRIGHT = (sys.executable, "-m", "binwright.cli")
RECORDS = 2_000

Report = dict[str, Any]


async def until(condition: Callable[[], bool], patience_s: float) -> None:
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - a log tells nobody
            await asyncio.sleep(0.2)


async def produce(bootstrap: str, records: int) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(records):
            value = json.dumps({"id": number}).encode()
            await producer.send("mine", value, key=b"%d" % number, partition=number % 4)


async def recreate(bootstrap: str) -> None:
    """Delete the topic and create it again, as soon as Kafka has deleted it."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.delete_topics(["mine"])
    finally:
        await admin.close()
    await create_topic(KafkaSettings(bootstrap_servers=bootstrap), "mine", 4)


async def audited(bootstrap: str, lake: Path, enough: Callable[[Report], bool]) -> Report:
    """Audit until it is enough."""
    where = ("--bootstrap-servers", bootstrap, "--lake", str(lake))
    command = (*BINWRIGHT, "audit", "--topics", "mine", *where, "--json")
    async with asyncio.timeout(240):
        while True:
            done = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, check=False, timeout=200
            )
            assert done.stdout, done.stderr
            found: Report = json.loads(done.stdout)
            assert done.returncode == (0 if found["clean"] else 1)
            if enough(found):
                return found


@asynccontextmanager
async def system(
    home: Path, monkeypatch: pytest.MonkeyPatch, *options: str
) -> AsyncIterator[tuple[str, Path]]:
    """Run `binwright up` until the block ends; give its Kafka, and the lake."""
    lake, log = home / "lake", home / "up.log"
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    monkeypatch.setenv("BINWRIGHT_LAKE__BATCH_BYTES", "100000000")
    command = (*BINWRIGHT, "up", "--topics", "mine", "--lake", str(lake), *options)
    with log.open("w") as output:
        running = subprocess.Popen(  # noqa: ASYNC220 - a moment
            command, env={**os.environ}, stdout=output, stderr=output, start_new_session=True
        )
    try:
        await until(lambda: "logs:" in log.read_text() or running.poll() is not None, 300)
        found = re.search(r"Kafka: (\S+)", log.read_text())
        assert found, log.read_text()
        yield found.group(1), lake
    finally:
        running.send_signal(signal.SIGINT)
        await until(lambda: running.poll() is not None, 90)
    assert running.returncode == 0


async def test_own_records_land_and_pass_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of a topic that is deleted and made anew, and soon longer than it ever was."""
    async with system(tmp_path, monkeypatch) as (bootstrap, lake):
        await produce(bootstrap, RECORDS)
        once = await audited(bootstrap, lake, lambda report: bool(report["clean"]))
        assert once["rows"] == RECORDS

        await recreate(bootstrap)
        await produce(bootstrap, 2 * RECORDS)
        both = await audited(bootstrap, lake, lambda report: report["rows"] >= 3 * RECORDS)
        assert both["rows"] == 3 * RECORDS
        assert both["clean"]
        (table,) = both["tables"]
        assert [part["earlier"] for part in table["partitions"]] == [RECORDS // 4] * 4


async def test_own_records_land_through_a_cluster_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = ("--cluster", "--spark-memory", "1g")
    async with system(tmp_path, monkeypatch, *cluster) as (bootstrap, lake):
        await produce(bootstrap, RECORDS)
        found = await audited(bootstrap, lake, lambda report: bool(report["clean"]))
        assert found["rows"] == RECORDS
