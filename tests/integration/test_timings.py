"""`binwright lab timings`: an embedded run with a few events, and the history of a group."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.builders import LIMIT

from binwright.kafka.control_records import CONTROLLER_PARTITION, METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol import wire
from binwright.protocol.metadata import Claim, Hello, Inbound, Planned, Report, Started
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

TIMINGS = (sys.executable, "-m", "binwright.cli", "lab", "timings")
P = TopicPartition("timings-orders", 0)
WINDOW_S = 4
CONDITIONS = {"test 1", "test 2", "test 3"}


def run(*options: str, **variables: str) -> tuple[dict[str, Any], str]:
    """Return what the command prints as JSON, and what it says besides."""
    environment = {**os.environ, **variables, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        (*TIMINGS, *options, "--json"),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found, done.stderr


@pytest.mark.nightly
def test_an_embedded_run_times_every_part_and_leaves_nothing(tmp_path: Path) -> None:
    temporary, output = tmp_path / "tmp", tmp_path / "output"
    temporary.mkdir()
    options = ("--events", "2", "--steps", "2", "--window-s", str(WINDOW_S), "--scale", "0.05")
    found, stderr = run(*options, "--output", str(output), TMPDIR=str(temporary))
    rows = {row["event"]: row for row in found["tables"]["timings"]}

    # Nine tenths of a step are not seen before nine tenths of the window are over.
    assert rows["monitor: 90 % of a step"]["p50, s"] >= 0.9 * WINDOW_S - 1
    assert rows["monitor: 90 % of a step"]["events"] == 2
    for event in ("measurement to plan", "plan to ready consumer", "plan to all partitions read"):
        assert rows[event]["events"] >= 2
        assert rows[event]["p50, s"] > 0
    assert found["missing"] == 0
    tested = {row["condition"] for row in found["tables"]["timings-capacity"]}
    # Of a small backlog one table may be read before the next one begins: then there is no rate.
    short = {condition for condition in CONDITIONS if f"{condition}: too short" in stderr}
    assert "test 1" in tested
    assert (tested | short, tested & short) == (CONDITIONS, set())

    with (output / "timings-events.csv").open() as file:
        kinds = {row["event"] for row in csv.DictReader(file)}
    assert {"step-90", "trigger", "ready", "change"} <= kinds
    assert (output / "timings-delta-2-trigger.svg").exists()
    assert not list(temporary.iterdir())


@pytest.mark.nightly
async def test_the_history_of_a_running_group_is_read(broker: str) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker)
    async with KafkaControlTopics(kafka) as bus:
        await bus.ensure("timed.metadata", 1, METADATA_CONFIG)
        await bus.ensure("timed.metrics", 1, METRICS_CONFIG)

        async def publish(message: Inbound) -> int:
            key, value = wire.key(message), wire.encode(message)
            return await bus.publish("timed.metadata", CONTROLLER_PARTITION, key, value)

        term = await publish(Claim(controller="c", limit=LIMIT))
        slot = Slot(0)
        await publish(
            Planned(
                term=term,
                reasons=("1 partition without a reader",),
                consumers=1,
                moves={},
                rscore=0.0,
                rates={},
                targets={P: slot},
            )
        )
        epoch = await publish(Hello(slot=slot, process="a", version="1"))
        await publish(Report(slot=slot, epoch=epoch, term=term, ready=True, reading={}, writing={}))
        await publish(Started(slot=slot, epoch=epoch, revision=1, offsets={P: 0}))
        ends = await bus.end("timed.metadata", CONTROLLER_PARTITION)
        variables = {"BINWRIGHT_GROUP": "timed", "BINWRIGHT_MONITOR__TOPIC": "timed.metrics"}
        found, _ = run("--running", "--bootstrap-servers", broker, **variables)
        assert await bus.end("timed.metadata", CONTROLLER_PARTITION) == ends
    rows = {row["event"]: row for row in found["tables"]["timings"]}
    assert rows["plan to ready consumer"]["events"] == 1
    assert rows["plan to all partitions read"]["events"] == 1
    assert found["untriggered"] == 1
