"""The scaler as a whole on a real broker: real groups' offsets, and a group that wakes."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as Assigned
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete
from tests.exposition import value
from tests.integration.authorization import guarded_broker, parse_command
from tests.waiting import until

from binwright.kafka.client import ClusterClient
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.server import HOST, reserve_port
from binwright.protocol.model import TopicPartition
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.loading import load
from binwright.scaler.__main__ import scale
from binwright.scaler.ends import TopicEnds
from binwright.scaler.groups import ConsumerGroups
from binwright.scaler.settings import ScalerProgramSettings

pytestmark = pytest.mark.integration
PATIENCE_S = 60.0

# Reads its topic as any consumer would, pauses for each record, and commits what it has read.
WORKER = """
import asyncio, sys
from aiokafka import AIOKafkaConsumer

async def work(servers, topic, group, pause_s):
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=servers, group_id=group,
                                auto_offset_reset="earliest", auto_commit_interval_ms=200)
    await consumer.start()
    async for _ in consumer:
        await asyncio.sleep(float(pause_s))

asyncio.run(work(*sys.argv[1:5]))
"""


async def metric(port: int, name: str, **labels: str) -> float:
    """Return a metric by its name, without its prefix, and labels; 0 while there is none."""
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://{HOST}:{port}/metrics") as response,
        ):
            text = await response.text()
    except aiohttp.ClientConnectionError:
        return 0.0
    return value(text, name, **labels) or 0.0


@asynccontextmanager
async def producer_to(broker: str) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(bootstrap_servers=broker)
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def read(broker: str, group: str, topic: str, records: int) -> None:
    """Read so many records as a member of a group, and commit."""
    consumer = AIOKafkaConsumer(
        topic, bootstrap_servers=broker, group_id=group, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(records):
                await consumer.getone()
        await consumer.commit()
    finally:
        await consumer.stop()


def free_port() -> int:
    with reserve_port() as port:
        return port


def scaled_workers(
    file: Path, broker: str, topic: str, group: str, *, pause_s: float
) -> dict[str, Any]:
    """Return the settings of a group of workers, and write their program to `file`."""
    file.write_text(WORKER)
    command = [sys.executable, str(file), broker, topic, group, str(pause_s), "{replica}"]
    return {"group": group, "command": command, "logs": str(file.parent), "grace_s": 5}


def scaler_settings(
    broker: str, port: int, group: dict[str, Any], **scaler: float
) -> ScalerProgramSettings:
    """Return the settings of a scaler of one group, with its metrics at `port`."""
    return load(
        ScalerProgramSettings,
        group=group["group"],
        health={"port": port},
        kafka={"bootstrap_servers": broker},
        monitor={"topic": f"{group['group']}.metrics"},
        scaler={"groups": [group], **scaler},
    )


def processes(file: Path) -> list[psutil.Process]:
    """Return the processes that run a program."""
    lines = ((p, p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"]))
    return [process for process, line in lines if str(file) in line]


async def test_offsets_and_ends_of_groups_are_looked_up(broker: str) -> None:
    kafka = KafkaSettings(bootstrap_servers=broker)
    async with (
        KafkaControlTopics(kafka) as bus,
        ClusterClient(kafka) as cluster,
        producer_to(broker) as out,
    ):
        await bus.ensure("scaler-orders", 2, {})
        for _ in range(5):
            await out.send_and_wait("scaler-orders", b"order", partition=1)
        await read(broker, "scaler-first", "scaler-orders", 3)
        await read(broker, "scaler-second", "scaler-orders", 5)
        found = await ConsumerGroups(cluster).committed(
            ["scaler-first", "scaler-second", "scaler-unknown"]
        )
        ends = await TopicEnds(cluster, None).look_up(["scaler-orders", "scaler-missing"])
        topic_id = await cluster.topic_id("scaler-orders")

    last = TopicPartition("scaler-orders", 1)
    assert found.faults == {}
    assert found.offsets["scaler-first"][last] == 3
    assert found.offsets["scaler-second"][last] == 5
    assert found.offsets["scaler-unknown"] == {}
    assert set(ends) == {"scaler-orders"}
    assert (ends["scaler-orders"].starts, ends["scaler-orders"].topic_id) == (
        {0: 0, 1: 0},
        topic_id,
    )
    assert (ends["scaler-orders"].ends, ends["scaler-orders"].count) == ({0: 0, 1: 5}, 2)


@pytest.mark.nightly
async def test_a_group_at_zero_wakes_reads_its_first_record_and_sleeps_again(
    broker: str, tmp_path: Path
) -> None:
    topic, group = "scaler-asleep", f"scaler-asleep-{os.getpid()}"
    file, port = tmp_path / "worker.py", free_port()
    asleep = scaled_workers(file, broker, topic, group, pause_s=0)
    asleep |= {"topics": [topic], "min_replicas": 0, "records_per_s": 1000}
    asleep |= {"cooldown_down_s": 0, "idle_s": 0}
    settings = scaler_settings(broker, port, asleep, period_s=1.0, zero_poll_s=0.5)

    def workers() -> list[psutil.Process]:
        return processes(file)

    kafka = KafkaSettings(bootstrap_servers=broker)
    async with (
        KafkaControlTopics(kafka) as bus,
        ClusterClient(kafka) as cluster,
        producer_to(broker) as out,
    ):
        await bus.ensure(topic, 2, {})
        groups = ConsumerGroups(cluster)

        async def has_read() -> bool:
            committed = (await groups.committed([group])).offsets.get(group, {})
            return committed.get(TopicPartition(topic, 1)) == 1

        async def has_passed() -> bool:
            return (await metric(port, "scaler_passes_total")) > 2

        async def sleeps() -> bool:
            return not workers()

        try:
            async with background_tasks(scale(settings)):
                await until(has_passed)
                assert await sleeps()
                await out.send_and_wait(topic, b"first", partition=1)
                await until(has_read)
                # A rate is that of the last minute: the group is idle when it is zero.
                await until(sleeps, 2 * PATIENCE_S)
        finally:
            for process in workers():
                process.kill()


async def put(broker: str, topic: str, records: int) -> None:
    """Write records to both partitions of a topic."""
    async with producer_to(broker) as out:
        for number in range(records):
            await out.send(topic, b"record", partition=number % 2)


async def commit(broker: str, group: str, offset: int) -> None:
    """Commit an offset in both partitions of the topic that is named like the group."""
    consumer = AIOKafkaConsumer(bootstrap_servers=broker, group_id=group)
    await consumer.start()
    partitions = [Assigned(group, number) for number in range(2)]
    consumer.assign(partitions)
    await consumer.commit(dict.fromkeys(partitions, offset))
    await consumer.stop()


async def odd_topics(broker: str, admin: AIOKafkaAdminClient, names: list[str]) -> None:
    """Make the topics of the test below, and commit what their groups have."""
    early, retained, markers, restarted = names
    await admin.create_topics([NewTopic(name, 2, 1) for name in names])
    for topic in (early, retained, restarted):
        await put(broker, topic, 200)
    await commit(broker, retained, 20)
    await commit(broker, restarted, 100)
    await admin.delete_records({Assigned(retained, n): RecordsToDelete(100) for n in range(2)})
    transactional = AIOKafkaProducer(bootstrap_servers=broker, transactional_id=markers)
    await transactional.start()
    async with transactional.transaction():
        for number in range(2):
            await transactional.send(markers, b"record", partition=number)
    await transactional.stop()
    await commit(broker, markers, 1)  # as who commits the offset after its last record


async def test_no_group_is_sized_by_what_is_not_known_or_not_there(broker: str) -> None:
    """Groups at zero that only show what they want; each reads a topic named like itself."""
    prefix, port = f"scaler-odd-{os.getpid()}", free_port()
    kinds = ("early", "retained", "markers", "restarted", "typo", "misspelt")
    names = [f"{prefix}-{kind}" for kind in kinds]
    early, retained, markers, restarted = topics = names[:4]
    shared: dict[str, Any] = {"mode": "observe", "min_replicas": 0, "records_per_s": 50}
    groups = [{"group": name, "command": ["none", "{replica}"], **shared} for name in names]
    groups[0]["topics"] = [early]
    groups[2]["idle_lag"] = 1
    groups[4]["topics"] = [f"{early}\n", f"{prefix}-nosuch"]
    settings = load(
        ScalerProgramSettings,
        group=prefix,
        health={"port": port},
        kafka={"bootstrap_servers": broker},
        monitor={"topic": f"{prefix}.metrics"},
        scaler={"groups": groups, "period_s": 1.0, "zero_poll_s": 0.5, "rate_window_s": 3.0},
    )
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    await admin.start()

    async def shown(group: str, name: str) -> float:
        return await metric(port, f"scaled_group_{name}", target=f"local/{group}", group=group)

    async def is_settled() -> bool:
        wanted = [await shown(name, "wanted_replicas") for name in names]
        faults = [await shown(name, "fault") for name in names]
        lost = await shown(retained, "lost_records")
        return (wanted, faults, lost) == ([1, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1], 160)

    async def is_recreated() -> bool:
        made = await admin.create_topics([NewTopic(restarted, 2, 1)])
        return not made.topic_errors[0][1]

    async def is_awake() -> bool:
        wants, lag = (
            await shown(restarted, "wanted_replicas"),
            await shown(restarted, "lag_records"),
        )
        return bool(wants) and lag == 250

    try:
        await odd_topics(broker, admin, topics)
        async with background_tasks(scale(settings)):
            await until(is_settled)
            await admin.delete_topics([restarted])
            await until(is_recreated)
            await put(broker, restarted, 250)  # more than there were
            await until(is_awake)
            assert await shown(markers, "lag_records") == 2
    finally:
        await admin.delete_topics(topics)
        await admin.close()


@pytest.mark.nightly
async def test_the_speed_of_a_replica_is_measured_while_its_group_is_behind(
    broker: str, tmp_path: Path
) -> None:
    """One replica reads at most 100 records/s; 16,000 in 60 s need three or more of them."""
    topic, group = "scaler-behind", f"scaler-behind-{os.getpid()}"
    file = tmp_path / "worker.py"
    behind = scaled_workers(file, broker, topic, group, pause_s=0.01) | {"max_replicas": 4}
    settings = scaler_settings(broker, free_port(), behind, period_s=2.0, zero_poll_s=2.0)
    async with (
        KafkaControlTopics(KafkaSettings(bootstrap_servers=broker)) as bus,
        producer_to(broker) as out,
    ):
        await bus.ensure(topic, 4, {})
        for number in range(16_000):
            await out.send(topic, b"record", partition=number % 4)
        await out.flush()

        async def has_grown() -> bool:
            return len(processes(file)) >= 3

        try:
            async with background_tasks(scale(settings)):
                await until(has_grown, 2 * PATIENCE_S)
        finally:
            for process in processes(file):
                process.kill()


async def test_the_documented_rights_are_enough_for_a_scaler(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "acls.md").read_text()
    lines = re.findall(r"^allow User:scaler .*$", page, re.MULTILINE)
    rules = [rule for line in lines for rule in parse_command(line)]
    async with guarded_broker(tmp_path / "kafka", ["scaler"], rules, denies=True) as (
        owner,
        users,
    ):
        servers = owner.bootstrap_servers
        async with KafkaControlTopics(owner) as bus, producer_to(servers) as out:
            await bus.ensure("orders", 1, {})
            await bus.ensure("clicks", 1, {})
            for _ in range(5):
                await out.send_and_wait("orders", b"order")
        await read(servers, "orders-billing", "orders", 3)
        port = free_port()
        group = {"group": "orders-billing", "mode": "observe", "command": ["none", "{replica}"]}
        settings = load(
            ScalerProgramSettings,
            kafka=users["scaler"],
            health={"port": port},
            scaler={"period_s": 1.0, "zero_poll_s": 1.0, "groups": [group]},
        )
        labels = {"target": "local/orders-billing", "group": "orders-billing"}

        async def sees_the_lag() -> bool:
            return (await metric(port, "scaled_group_lag_records", **labels)) == 2

        async with background_tasks(scale(settings)):
            await until(sees_the_lag)
            assert await metric(port, "scaled_group_fault", **labels) == 0
