"""Faults of one table, server, partition or record, beside which all others go on as before."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaProducer
from tests.chaos.fault_helpers import (
    CATCH_UP,
    VICTIM_TIMEOUT_S,
    FaultResult,
    pick_topic,
    pick_writer,
    send_signal,
    until,
)
from tests.chaos.fault_schedule import Fault
from tests.chaos.health import watch_others_land
from tests.chaos.servers import FAR, place_partitions
from tests.chaos.system import System
from tests.kafka.batches import ZSTD, produce
from tests.kafka.bombs import bomb, zstd

from binwright.kafka.client import client_options
from binwright.lake.session import ReconnectingSession
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import TopicPartition
from binwright.tables.columns import KAFKA

ALTER_S, ALTERED_S = 30.0, 90.0
BY_NAME = "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"  # so that columns have names
BOMB_BYTES = 200_000_000  # above what a batch may inflate to, and little for the audit
KEPT_S = 400.0  # it is fetched again for 300 s


def _of_table(system: System, topic: str) -> set[TopicPartition]:
    return {partition for partition in system.partitions if partition.topic == topic}


async def refuse_table(system: System, fault: Fault) -> FaultResult:
    """Rename a column, as a person might: rows that have it by its old name are refused."""
    topic = pick_topic(fault)
    struct = "" if system.settings.targets(topic)[0].decoded is None else f"{KAFKA}."
    await pick_writer(system, fault)
    async with _session(system, topic) as session:
        await _alter(session, system, topic, BY_NAME)
        await _alter(session, system, topic, f"RENAME COLUMN {struct}headers TO renamed")
        try:
            await until(
                lambda: system.view.tables.by_name[topic].report.state == "refused",
                VICTIM_TIMEOUT_S,
                f"the table {topic} refuses rows",
            )
            others_s = await watch_others_land(system, _of_table(system, topic), fault.duration_s)
        finally:
            await _alter(session, system, topic, f"RENAME COLUMN {struct}renamed TO headers")
    return FaultResult(extra_recovery_s=CATCH_UP * fault.duration_s, others_s=others_s)


@asynccontextmanager
async def _session(system: System, topic: str) -> AsyncIterator[ReconnectingSession]:
    server = system.spark_of(topic)
    session = ReconnectingSession(lambda: server.url)
    try:
        yield session
    finally:
        await session.close()


async def _alter(session: ReconnectingSession, system: System, topic: str, change: str) -> None:
    """Alter a table, again while its writer's commits come in between."""
    text, last = f"ALTER TABLE delta.`{system.settings.lake.path}/{topic}` {change}", ""
    try:
        async with asyncio.timeout(ALTERED_S):
            while True:
                try:
                    await session.run(lambda spark: spark.sql(text).collect(), ALTER_S)
                except Exception as exc:  # pyspark's, whose classes differ by server
                    last = str(exc)
                    if "DELTA_CONCURRENT" not in last and "DELTA_METADATA_CHANGED" not in last:
                        raise ExternalError(f"{text}: {last}") from exc
                else:
                    return
    except TimeoutError as exc:
        raise ExternalError(f"{text}: not done within {ALTERED_S:g} s: {last}") from exc


async def freeze_spark(system: System, fault: Fault) -> FaultResult:
    """Stop the process of one server: it accepts, and never answers."""
    topic = pick_topic(fault)
    await pick_writer(system, fault)
    pid = system.spark_of(topic).pid
    assert pid is not None
    send_signal(pid, signal.SIGSTOP)
    try:
        others_s = await watch_others_land(system, _of_table(system, topic), fault.duration_s)
    finally:
        send_signal(pid, signal.SIGCONT)
    return FaultResult(victim=pid, extra_recovery_s=CATCH_UP * fault.duration_s, others_s=others_s)


async def lose_leader(system: System, fault: Fault) -> FaultResult:
    """Kill the broker that alone keeps one partition of a table."""
    await place_partitions(system.direct_settings.kafka)
    second = system.brokers[1]
    await second.kill()
    try:
        others_s = await watch_others_land(system, {FAR}, fault.duration_s)
    finally:
        await second.start()
    return FaultResult(others_s=others_s)


async def bomb_record(system: System, fault: Fault) -> FaultResult:
    """Write a record that inflates to 200 MB: it is kept for a person, and what follows lands."""
    partition = system.partitions[fault.pick % len(system.partitions)]
    kept = system.kept_batches(partition)
    batch = bomb(ZSTD, zstd(BOMB_BYTES))
    options = client_options(system.direct_settings.kafka)
    async with AIOKafkaProducer(**options) as producer:
        system.bombs.add((partition, await produce(producer, partition, batch)))
    others_s = await watch_others_land(
        system, {partition}, KEPT_S, ended=lambda: system.kept_batches(partition) > kept
    )
    if not system.kept_batches(partition) > kept:
        raise ExternalError(f"after {KEPT_S:g} s the batch of {partition} is not kept")
    return FaultResult(others_s=others_s)
