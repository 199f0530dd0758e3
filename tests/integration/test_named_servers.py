"""`binwright audit` with the Kafka and Spark of the settings file: nothing is embedded."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.topics import create_topic

from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.programs import FILE_VARIABLE

pytestmark = pytest.mark.integration

TOPIC = "named-servers"
RECORDS = 3


async def fill(broker: str) -> None:
    await create_topic(KafkaSettings(bootstrap_servers=broker), TOPIC, 1)
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        for _ in range(RECORDS):
            await producer.send_and_wait(TOPIC, b"x", partition=0)


def audit(file: Path, broker: str, spark: str, lake: Path) -> "subprocess.CompletedProcess[str]":
    file.write_text(
        f'topics = ["{TOPIC}"]\n'
        f'[kafka]\nbootstrap_servers = "{broker}"\n'
        f'[lake]\nspark = "{spark}"\npath = "{lake}"\n'
    )
    command = (sys.executable, "-W", "ignore", "-m", "binwright.cli", "audit", "--json")
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


async def test_the_audit_uses_the_servers_of_the_settings_file(
    broker: str, spark_url: str, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.toml"
    monkeypatch.setenv(FILE_VARIABLE, str(file))
    await fill(broker)

    ran = audit(file, broker, spark_url, lake)
    (table,) = json.loads(ran.stdout)["tables"]
    assert (ran.returncode, ran.stderr) == (1, "")  # an embedded server would log its start
    assert (table["exists"], table["partitions"][0]["lost"]) == (False, RECORDS)

    away = audit(file, broker, "sc://127.0.0.1:9", lake)
    (line,) = away.stderr.splitlines()
    assert away.returncode == 1
    assert line.startswith("binwright: no Spark Connect server at sc://127.0.0.1:9: ")
