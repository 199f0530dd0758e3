"""The system for a person's own topics, and the audit as a command of its own."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

pytestmark = pytest.mark.integration

BINWRIGHT = (sys.executable, "-m", "binwright.cli")
RECORDS = 2_000


async def until(condition: Callable[[], bool], patience_s: float) -> None:
    async with asyncio.timeout(patience_s):
        while not condition():  # noqa: ASYNC110 - a log tells nobody
            await asyncio.sleep(0.2)


async def produce(bootstrap: str) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(RECORDS):
            value = json.dumps({"id": number}).encode()
            await producer.send("mine", value, key=b"%d" % number, partition=number % 4)


async def test_own_records_land_and_the_audit_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, log = tmp_path / "lake", tmp_path / "up.log"
    monkeypatch.setenv("PYTHONWARNINGS", "ignore")
    command = (*BINWRIGHT, "up", "--topics", "mine", "--lake", str(lake))
    with log.open("w") as output:
        system = subprocess.Popen(  # noqa: ASYNC220 - a moment
            command, env={**os.environ}, stdout=output, stderr=output, start_new_session=True
        )
    try:
        await until(lambda: "logs:" in log.read_text() or system.poll() is not None, 300)
        found = re.search(r"Kafka: (\S+)", log.read_text())
        assert found, log.read_text()
        await produce(found.group(1))
        where = ("--bootstrap-servers", found.group(1), "--lake", str(lake))
        audit = (*BINWRIGHT, "audit", "--topics", "mine", *where, "--json")
        result: dict[str, object] = {}
        async with asyncio.timeout(240):
            while not result.get("clean"):
                done = await asyncio.to_thread(
                    subprocess.run, audit, capture_output=True, text=True, check=False, timeout=200
                )
                assert done.stdout, done.stderr
                result = json.loads(done.stdout)
                assert done.returncode == (0 if result["clean"] else 1)
        assert result["rows"] == RECORDS
    finally:
        system.send_signal(signal.SIGINT)
        await until(lambda: system.poll() is not None, 90)
    assert system.returncode == 0
