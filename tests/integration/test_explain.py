"""`binwright explain` as a command, of what stands on a real broker's topics."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator

import pytest
from tests.builders import measurement
from tests.integration.test_status import A, B, P, Q, playing

from binwright.kafka.control_records import METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol import wire
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

EXPLAIN = (sys.executable, "-m", "binwright.cli", "explain")
GROUP, DEADLINE_S = "explained", 60.0
METRICS = "explained.metrics"  # other tests look at the common one


@pytest.fixture
async def kafka(broker: str) -> AsyncIterator[str]:
    """A broker with a group whose consumer 0 reads both partitions, and is to give one away."""
    async with KafkaControlTopics(KafkaSettings(bootstrap_servers=broker)) as bus:
        await bus.ensure(METRICS, 1, METRICS_CONFIG)
        parts = [PartitionRate(n, BytesPerSecond(700_000.0), 30, 50, 0, 10.0) for n in range(2)]
        message = measurement(P.topic, parts, at_ms=round(time.time() * 1000))
        await bus.publish(METRICS, 0, wire.key(message), wire.encode(message))
        async with playing(bus, GROUP, {P: A, Q: B}):
            yield broker


async def asked(kafka: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = (*EXPLAIN, "--bootstrap-servers", kafka, "--group", GROUP, *arguments)
    return await asyncio.to_thread(
        subprocess.run,
        command,
        env={**os.environ, "BINWRIGHT_MONITOR__TOPIC": METRICS},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (
            (),
            (
                "1.4 MB/s in 2 partitions, read by 1 consumer",
                "orders grow",
                "1 move of the last plan under way (waiting)",
            ),
        ),
        (("status-orders-1",), ("it gets 700 kB/s; consumer 0 reads it",)),
        (("--at", "1h"), ("no consumer reports",)),
    ],
)
async def test_an_answer_has_the_numbers_of_the_group(
    kafka: str, what: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    done = await asked(kafka, *what)
    assert done.returncode == 0, done.stderr
    assert all(sentence in done.stdout for sentence in expected), done.stdout


async def test_programs_get_json(kafka: str) -> None:
    found = json.loads((await asked(kafka, "--json")).stdout)
    assert found["about"] == f"group {GROUP}"
    assert {"kind": "why", "text": found["lines"][1]["text"]} in found["lines"]
