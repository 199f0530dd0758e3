"""`binwright savings`, of measurements on a real broker, and what others show of it."""

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

from binwright.kafka.control_records import METRICS_CONFIG, ORDERS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol import wire
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond
from binwright.protocol.selection import ORDERS_SUFFIX
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

BINWRIGHT = (sys.executable, "-m", "binwright.cli")
GROUP, METRICS, DEADLINE_S = "saved", "saved.metrics", 120.0
MINUTES, EVERY_S = 20, 10
QUIET, BUSY = 100_000, 1_500_000


@pytest.fixture
async def kafka(broker: str) -> AsyncIterator[str]:
    """A broker with a group, and twenty minutes of measurements, of which five are busy."""
    async with KafkaControlTopics(KafkaSettings(bootstrap_servers=broker)) as bus:
        await bus.ensure(METRICS, 1, METRICS_CONFIG)
        await bus.ensure(f"{GROUP}{ORDERS_SUFFIX}", 1, ORDERS_CONFIG)
        now_ms, size = round(time.time() * 1000), 0
        for at_s in range(0, 60 * MINUTES, EVERY_S):
            rate = BUSY if 300 <= at_s < 600 else QUIET
            parts = [
                PartitionRate(n, BytesPerSecond(float(rate)), 30, size // 100, size, 100.0)
                for n in range(2)
            ]
            size += EVERY_S * rate
            at_ms = now_ms - 1000 * (60 * MINUTES - at_s)
            message = measurement(P.topic, parts, at_ms=at_ms, number=at_s // EVERY_S)
            await bus.publish(METRICS, 0, wire.key(message), wire.encode(message))
        async with playing(bus, GROUP, {P: A, Q: B}):
            yield broker


async def asked(kafka: str, *arguments: str, topic: str = P.topic) -> str:
    done = await asyncio.to_thread(
        subprocess.run,
        (*BINWRIGHT, *arguments, "--bootstrap-servers", kafka),
        env={
            **os.environ,
            "BINWRIGHT_GROUP": GROUP,
            "BINWRIGHT_TOPICS": json.dumps([topic]),
            "BINWRIGHT_MONITOR__TOPIC": METRICS,
            "BINWRIGHT_CONTROLLER__LIMIT_BYTES_PER_S": "2000000",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
async def test_the_load_of_a_past_time_is_simulated_and_published(kafka: str) -> None:
    planned = ("savings", "--group", GROUP, "--hours", "1", "--publish", "--json")
    found = json.loads(await asked(kafka, *planned))
    peak = next(each for each in found["others"] if each["rule"] == "peak")
    assert peak["replica_minutes"] == pytest.approx(2 * MINUTES, rel=0.05)
    assert 0.4 < found["own"]["replica_minutes"] / peak["replica_minutes"] < 0.9
    assert found["until_ms"] - found["from_ms"] == 1000 * (60 * MINUTES - EVERY_S)

    (group,) = json.loads(await asked(kafka, "status", "--group", GROUP, "--json"))
    assert group["savings"]["own"] == found["own"]
    for command in (("status", "--group", GROUP), ("explain", "--group", GROUP)):
        shown = " ".join((await asked(kafka, *command)).split())
        assert "fewer replica-minutes than at peak" in shown
