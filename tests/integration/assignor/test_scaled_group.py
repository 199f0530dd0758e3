"""One scaler sizes and assigns an ordinary group of real processes; no record is read twice.

The workers die at once when they are asked to end, without a last commit, and commit rarely: each
record that a worker had read since would be read again by another one.
"""

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from tests.integration.assignor.plans import until
from tests.integration.test_scaler import free_port, processes, scaler_settings
from tests.integration.topics import create_topic

from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.ports.kafka import Record
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.scaler.__main__ import scale
from binwright.scaler.plans_topic import PLANS_TOPIC, decoded_plan, plan_partition

pytestmark = pytest.mark.integration

TICK_S = 0.5
PATIENCE_S = 180.0
FAST = (9, 4, 4, 3)
"""Records for each partition in half a second: three workers of 20/s for 40/s."""
SLOW = (1, 1, 1, 1)

WORKER = """
import asyncio, os, signal, sys
from aiokafka import AIOKafkaConsumer
from binwright.scaler.assignor import follow_plans, planned_assignor

async def work(servers, topic, group, directory, replica):
    async with follow_plans(group, bootstrap_servers=servers) as plans:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=servers, group_id=group, client_id="worker-" + replica,
            auto_offset_reset="earliest", auto_commit_interval_ms=30_000,
            heartbeat_interval_ms=300, session_timeout_ms=6_000,
            partition_assignment_strategy=[planned_assignor(plans)])
        await consumer.start()
        # Its life, from the first assignment on: one file, so that a file is one member.
        with open(f"{directory}/read-{replica}-{os.getpid()}", "w", buffering=1) as file:
            while True:
                for partition, records in (await consumer.getmany(timeout_ms=100)).items():
                    for record in records:
                        file.write(f"{partition.partition} {record.offset}\\n")

signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
asyncio.run(work(*sys.argv[1:6]))
"""


@dataclass
class Load:
    """What is written to the topic, until it is told to end."""

    per_tick: Sequence[int] = FAST
    sent: int = 0

    async def write(self, servers: str, topic: str) -> None:
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            while True:
                for partition, count in enumerate(self.per_tick):
                    for _ in range(count):
                        await producer.send(topic, b"order", partition=partition)
                        self.sent += 1
                await asyncio.sleep(TICK_S)


def members(directory: Path) -> dict[str, list[tuple[int, int]]]:
    """Return the records that each worker has read, in its order."""
    return {
        file.name: [tuple(map(int, line.split())) for line in file.read_text().splitlines()]  # type: ignore[misc]
        for file in sorted(directory.glob("read-*"))
    }


def twice(read: Collection[Sequence[tuple[int, int]]]) -> list[tuple[int, int]]:
    counts = Counter(record for each in read for record in each)
    return sorted(record for record, count in counts.items() if count > 1)


async def published(servers: str, group: str) -> list[GroupPlan]:
    """Return all plans of a group that the topic still has, oldest first."""
    async with KafkaControlTopics(KafkaSettings(bootstrap_servers=servers), read_only=True) as bus:
        partition = plan_partition(group, await bus.partitions(PLANS_TOPIC))
        end = await bus.end(PLANS_TOPIC, partition)
        records: list[Record] = []
        reader = await bus.reader(PLANS_TOPIC, partition, 0)
        while reader.position < end:
            records += await reader.read(5.0)
        await reader.close()
    plans = [decoded_plan(record.value) for record in records if record.value]
    return [plan for plan in plans if plan is not None and plan.group == group]


@pytest.mark.nightly
async def test_replicas_come_for_their_bins_and_go_empty_so_that_no_record_is_read_twice(
    broker: str, tmp_path: Path
) -> None:
    topic = group = f"scaled-{os.getpid()}"
    await create_topic(KafkaSettings(bootstrap_servers=broker), topic, len(FAST))
    program = tmp_path / "worker.py"
    program.write_text(WORKER)
    command = [sys.executable, str(program), broker, topic, group, str(tmp_path), "{replica}"]
    described = {"group": group, "command": command, "logs": str(tmp_path), "grace_s": 5}
    described |= {"topics": [topic], "min_replicas": 1, "max_replicas": 3, "records_per_s": 20}
    described |= {"cooldown_up_s": 1, "cooldown_down_s": 1, "commit_interval_s": 30}
    described |= {"assigns": True}
    settings = scaler_settings(
        *(broker, free_port(), described),
        period_s=1.0,
        zero_poll_s=1.0,
        rate_window_s=10.0,
        broker_timeout_s=20.0,
    )
    load = Load()

    def running() -> int:
        """Return the workers that have joined and live: their files end in their process ids."""
        pids = (file.name.rpartition("-")[2] for file in tmp_path.glob("read-*"))
        return sum(Path("/proc", pid).exists() for pid in pids)

    def state() -> object:
        return running(), {name: len(read) for name, read in members(tmp_path).items()}

    try:
        async with background_tasks(scale(settings), load.write(broker, topic)):
            await until(lambda: running() == 3, state, PATIENCE_S)
            # All of them read: the plan for three was there before the third had joined.
            await until(lambda: sum(map(bool, members(tmp_path).values())) == 3, state, PATIENCE_S)
            load.per_tick = SLOW
            await until(lambda: running() == 1, state, PATIENCE_S)
            load.per_tick, sent = (0, 0, 0, 0), load.sent
            await until(
                lambda: sum(map(len, members(tmp_path).values())) >= load.sent, state, PATIENCE_S
            )
    finally:
        for process in processes(program):
            process.kill()
    read = members(tmp_path)
    assert twice(read.values()) == []
    assert len({one for each in read.values() for one in each}) == load.sent >= sent
    plans = await published(broker, group)
    assert [len(plan.leaving) for plan in plans if plan.leaving], json.dumps(
        [plan.reason for plan in plans]
    )
