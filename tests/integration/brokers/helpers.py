"""Topics placed on purpose, filled and read, and commands as processes."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from binwright.balancer import plan_file
from binwright.balancer.decide.proposals import BrokerPlanRecord, decode_record
from binwright.balancer.decide.throttles import Throttles
from binwright.balancer.executor import read_throttles
from binwright.balancer.ports import Brokers, ClusterState, Replicas
from binwright.balancer.settings import BalancerProgramSettings
from binwright.kafka.client import client_options
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.child import Child, Command
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.loading import settings_environment

DEADLINE_S = 120.0
STOP_S = 30.0
RECORD_BYTES = 10_000


async def make_topic(
    kafka: KafkaSettings,
    topic: str,
    placement: Mapping[int, Replicas],
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic whose partitions are on exactly these brokers."""
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()
    try:
        wanted = NewTopic(
            topic,
            replica_assignments={number: list(replicas) for number, replicas in placement.items()},
            topic_configs=dict(config or {}),
            num_partitions=-1,
            replication_factor=-1,
        )
        ((_, code, _),) = (await admin.create_topics([wanted])).topic_errors
        assert code == 0
    finally:
        await admin.close()


async def fill(kafka: KafkaSettings, sizes: Mapping[TopicPartition, int]) -> None:
    """Write about as many bytes to each partition."""
    async with AIOKafkaProducer(**client_options(kafka), acks="all") as producer:
        for partition, size in sizes.items():
            for _ in range(size // RECORD_BYTES):
                await producer.send(
                    partition.topic, os.urandom(RECORD_BYTES), partition=partition.partition
                )
        await producer.flush()


class Load:
    """Numbered records to each of some partitions, in order, until it is left."""

    def __init__(self, kafka: KafkaSettings, partitions: list[TopicPartition]) -> None:
        self._kafka, self._partitions = kafka, partitions
        self.confirmed = dict.fromkeys(partitions, 0)

    @asynccontextmanager
    async def running(self, every_s: float) -> AsyncIterator["Load"]:
        """Write for as long as the block lasts; it begins when each partition has a record."""
        options = client_options(self._kafka)
        async with AIOKafkaProducer(**options, acks="all", enable_idempotence=True) as producer:
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.gather(*(self._send(producer, p) for p in self.confirmed))
            tasks = [asyncio.create_task(self._write(producer, p, every_s)) for p in self.confirmed]
            try:
                yield self
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                await producer.flush()

    async def _write(
        self, producer: AIOKafkaProducer, partition: TopicPartition, every_s: float
    ) -> None:
        while True:
            await asyncio.sleep(every_s)
            await self._send(producer, partition)

    async def _send(self, producer: AIOKafkaProducer, partition: TopicPartition) -> None:
        number = self.confirmed[partition]
        await asyncio.shield(
            producer.send_and_wait(
                partition.topic, b"%d" % number, b"load", partition=partition.partition
            )
        )
        self.confirmed[partition] += 1


async def loaded_values(kafka: KafkaSettings, partition: TopicPartition) -> list[int]:
    """Return the numbers of the load that are in a partition, in order."""
    options = {**client_options(kafka), "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(**options) as consumer:
        found = KafkaPartition(*partition)
        consumer.assign([found])
        end = (await consumer.end_offsets([found]))[found]
        values: list[int] = []
        async with asyncio.timeout(DEADLINE_S):
            while await consumer.position(found) < end:
                batches = await consumer.getmany(found, timeout_ms=1000)
                records = [record for batch in batches.values() for record in batch]
                values += [int(record.value) for record in records if record.key == b"load"]
    return values


async def check_nothing_is_lost(kafka: KafkaSettings, load: Load) -> None:
    """Assert that each partition begins with all that was confirmed, in order."""
    for partition, confirmed in load.confirmed.items():
        values = await loaded_values(kafka, partition)
        assert values[:confirmed] == list(range(confirmed))


def command(kafka: KafkaSettings, *arguments: str) -> Coroutine[Any, Any, Process]:
    """Start `binwright brokers ...` against this cluster."""
    line = (sys.executable, "-m", "binwright.cli", "brokers", *arguments)
    servers = ("--bootstrap-servers", kafka.bootstrap_servers)
    return asyncio.create_subprocess_exec(*line, *servers, stdout=PIPE, stderr=PIPE)


async def finished(process: Process) -> tuple[int, str, str]:
    """Return exit code, output and errors of a command."""
    async with asyncio.timeout(DEADLINE_S):
        out, errors = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), errors.decode()


async def run(kafka: KafkaSettings, *arguments: str) -> tuple[int, str, str]:
    """Run `binwright brokers ...` to its end."""
    return await finished(await command(kafka, *arguments))


@asynccontextmanager
async def balancer(settings: BalancerProgramSettings, directory: Path) -> AsyncIterator[Child]:
    """Run a whole balancer as a process, and stop it at the end as an operator would."""
    line = (sys.executable, "-m", "binwright.balancer")
    environment = {**os.environ, **settings_environment(settings)}
    child = Child(Command("the balancer", line, directory, directory / "balancer.log", environment))
    try:
        yield child
    finally:
        await child.stop(grace_s=STOP_S)


async def plan_records(bus: KafkaControlTopics, topic: str) -> list[tuple[int, BrokerPlanRecord]]:
    """Return what the topic of plans for brokers says, with offsets."""
    if not await bus.partitions(topic):
        return []
    reader = await bus.reader(topic, 0, 0)
    end, found = await bus.end(topic, 0), []
    while reader.position < end:
        found += [(r.offset, decode_record(r.value)) for r in await reader.read(1.0)]
    await reader.close()
    return found


async def until(brokers: Brokers, condition: Callable[[ClusterState], bool]) -> ClusterState:
    """Wait until the cluster is in such a state."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition(state := await brokers.state()):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return state


async def throttles(brokers: Brokers) -> Throttles:
    return await read_throttles(brokers, await brokers.state())


def placement(state: ClusterState, topic: str) -> dict[TopicPartition, Replicas]:
    return {p: each.replicas for p, each in sorted(state.partitions.items()) if p.topic == topic}


def write_plan(path: Path, targets: Mapping[TopicPartition, Replicas]) -> Path:
    plan_file.write(path, targets, {"why": "test"})
    return path
