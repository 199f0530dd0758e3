"""`binwright status` as a command, of what stands on a real broker's topics."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.builders import LIMIT, measurement

from binwright.kafka.control_records import CONTROLLER_PARTITION, METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol import wire
from binwright.protocol.metadata import Claim, Hello, Inbound, Planned, TableReport
from binwright.protocol.metadata import Report as Told
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.kafka import KafkaSettings

pytestmark = pytest.mark.integration

STATUS = (sys.executable, "-m", "binwright.cli", "status")
DEADLINE_S = 60.0
P, Q = TopicPartition("status-orders", 0), TopicPartition("status-orders", 1)
A, B = Slot(0), Slot(1)


async def sent(bus: KafkaControlTopics, group: str, message: Inbound) -> int:
    topic = f"{group}.metadata"
    return await bus.publish(topic, CONTROLLER_PARTITION, wire.key(message), wire.encode(message))


@asynccontextmanager
async def playing(
    bus: KafkaControlTopics, group: str, targets: dict[TopicPartition, Slot]
) -> AsyncIterator[None]:
    """Say what a group says whose consumer 0 reads and writes everything, every second."""
    await bus.ensure(f"{group}.metadata", 1, METADATA_CONFIG)
    term = await sent(bus, group, Claim(controller="c", limit=LIMIT))
    epoch = await sent(bus, group, Hello(slot=A, process="a", version="1"))
    rates = dict.fromkeys(targets, BytesPerSecond(1e6))
    plan = Planned(
        term=term,
        reasons=("orders grow",),
        consumers=2,
        moves={Q: B},
        rscore=0.5,
        rates=rates,
        targets=targets,
    )
    await sent(bus, group, plan)
    table = TableReport(state="landing", committed={P: 4, Q: 2}, age_s=1.5, pending_bytes=99)
    report = Told(
        slot=A,
        epoch=epoch,
        term=term,
        ready=True,
        reading={P: 5, Q: 3},
        writing={"status-orders": table},
        rate=5e5,
    )
    await sent(bus, group, report)

    async def go_on() -> None:
        while True:
            await asyncio.sleep(1.0)
            await sent(bus, group, report)

    async with background_tasks(go_on()):
        yield


async def asked(broker: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = (*STATUS, "--bootstrap-servers", broker, *arguments)
    return await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )


async def facts(broker: str, *arguments: str) -> dict[str, Any]:
    done = await asked(broker, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return {each["group"]: each for each in json.loads(done.stdout)}


async def measure(bus: KafkaControlTopics) -> None:
    await bus.ensure("binwright.metrics", 1, METRICS_CONFIG)
    parts = tuple(PartitionRate(n, BytesPerSecond(1e6), 30, 10, 0, 10.0) for n in range(2))
    rates = measurement("status-orders", parts)
    await bus.publish("binwright.metrics", 0, wire.key(rates), wire.encode(rates))


async def test_every_group_is_found_and_shown(broker: str) -> None:
    async with (
        KafkaControlTopics(KafkaSettings(bootstrap_servers=broker)) as bus,
        playing(bus, "status-moving", {P: A, Q: B}),
        playing(bus, "status-steady", {P: A, Q: A}),
    ):
        await measure(bus)
        found = await facts(broker)
        moving, steady = found["status-moving"], found["status-steady"]
        assert (moving["state"], steady["state"]) == ("moving", "steady")
        (move,) = moving["moves"]
        assert (move["partition"], move["old"], move["new"]) == ("status-orders-1", 0, 1)
        assert (moving["load"], moving["staging"], moving["lag"]) == (2e6, 5e5, 14)
        (table,) = moving["tables"]
        assert (table["topic"], table["writer"], table["state"]) == ("status-orders", 0, "landing")
        assert (table["pending_bytes"], table["lag"]) == (99, 14)
        assert moving["plan"]["reasons"] == ["orders grow"]
        assert moving["consumers"][0]["partitions"] == ["status-orders-0", "status-orders-1"]
        assert (await facts(broker, "--group", "status-steady")).keys() == {"status-steady"}
        page = await asked(broker, "--group", "status-moving")
        assert "status-moving  moving  1 consumer, 2 partitions" in page.stdout


async def test_watching_shows_changes(broker: str) -> None:
    async with (
        KafkaControlTopics(KafkaSettings(bootstrap_servers=broker)) as bus,
        playing(bus, "status-watched", {P: A, Q: A}),
    ):
        command = (*STATUS, "--bootstrap-servers", broker, "--json", "--watch")
        watching = await asyncio.create_subprocess_exec(
            *command, "--group", "status-watched", stdout=asyncio.subprocess.PIPE
        )
        assert watching.stdout is not None
        try:
            async with asyncio.timeout(DEADLINE_S):
                (first,) = json.loads(await watching.stdout.readline())
                assert [each["slot"] for each in first["consumers"]] == [0]
                await sent(bus, "status-watched", Hello(slot=B, process="b", version="1"))
                slots = [0]
                while slots != [0, 1]:
                    (latest,) = json.loads(await watching.stdout.readline())
                    slots = [each["slot"] for each in latest["consumers"]]
        finally:
            watching.terminate()
            await watching.wait()
    assert watching.returncode == 0
