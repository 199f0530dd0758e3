"""A group that runs, in which all has happened that the questions are about."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from aiokafka import AIOKafkaProducer
from tests.integration.command_line import binwright
from tests.integration.landing import has_landed, produce, until
from tests.integration.topics import create_topic

from binwright.kafka.control_records import (
    CONTROLLER_PARTITION,
    METRICS_PARTITION,
    ORDERS_PARTITION,
    Decoder,
)
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.stack import services
from binwright.protocol.metadata import Claim, Held, Inbound, Planned, Report, decode_inbound
from binwright.protocol.metrics import Measurement, decode_measurement
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.names import BAD_SUFFIX
from binwright.protocol.orders import FreezeOrder, GroupOrder, OrderRecord, ScaleOrder, decode_order
from binwright.protocol.ports.kafka import Record
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.loading import settings_environment

GROUP = "asked"
CLICKS, PAYMENTS, BILLS = "asked-clicks", "asked-payments", "asked-bills"
COLUMNS = "id BIGINT, item STRING, payload VARIANT"
GOOD = [b'{"id": 1, "item": "tea", "payload": {"a": 1}}', b'{"id": 2}', None]
BAD = [b"no JSON", b'{"id": "x"}']
WAITING = 20  # records of the paused table
LIMIT = 200_000.0  # bytes/s that a consumer sustains
PARTITIONS, RATE, RECORD_BYTES = 4, 60_000, 1_000
"""Of the topic under load, bytes/s of each partition: all are more than a consumer sustains, and a
plan gives a consumer two of them, as three are more than 25/30 of the limit.
"""
TICK_S = 0.1
DEADLINE_S = 240.0

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class Topics:
    """What the group's own topics hold: that by which its programs decide."""

    metadata: list[tuple[Record, Inbound]]
    orders: list[tuple[Record, OrderRecord]]
    measurements: list[Measurement]

    def last(self, kind: type[Message]) -> Message:
        """Return the newest message of a kind."""
        return next(m for _, m in reversed(self.metadata) if isinstance(m, kind))

    def plans(self) -> list[tuple[int, Planned]]:
        """Return all plans with their numbers, oldest first."""
        return [(record.offset, m) for record, m in self.metadata if isinstance(m, Planned)]

    def reports(self, table: str) -> list[Report]:
        """Return the reports about a table, oldest first."""
        return [m for _, m in self.metadata if isinstance(m, Report) and table in m.writing]


@dataclass(frozen=True, slots=True)
class LiveSystem:
    """The group, seen from outside: by commands, and by what its topics hold."""

    settings: Settings
    lake: Path

    async def run(self, *arguments: str) -> tuple[int, str]:
        """Run a command as a person of this group does; return its exit code and output."""
        environment = os.environ | settings_environment(self.settings)
        code, out, errors = await binwright(*arguments, environment=environment)
        return code, out or errors

    async def topics(self) -> Topics:
        """Read the group's topics from their beginnings to their present ends."""
        async with KafkaControlTopics(self.settings.kafka, read_only=True) as bus:
            metadata = await _read(
                bus, f"{GROUP}.metadata", CONTROLLER_PARTITION, Decoder(decode_inbound)
            )
            orders = await _read(
                bus, self.settings.orders_topic, ORDERS_PARTITION, Decoder(decode_order)
            )
            measured = await _read(
                bus,
                self.settings.monitor.topic,
                METRICS_PARTITION,
                Decoder(decode_measurement),
            )
        return Topics(metadata, orders, [message for _, message in measured])

    async def wait(self, holds: Callable[[Topics], bool]) -> Topics:
        """Read the topics again and again until this holds."""
        async with asyncio.timeout(DEADLINE_S):
            while not holds(found := await self.topics()):  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(0.5)
        return found

    async def order(self, *arguments: str) -> None:
        """Give an order as a person does."""
        code, out = await self.run(*arguments)
        assert code == 0, out


async def _read(
    bus: KafkaControlTopics, topic: str, partition: int, decoder: Decoder[Any]
) -> list[tuple[Record, Any]]:
    if not await bus.partitions(topic):
        return []  # before any program runs
    end = await bus.end(topic, partition)
    reader = await bus.reader(topic, partition, 0)
    found: list[tuple[Record, Any]] = []
    try:
        async with asyncio.timeout(DEADLINE_S):
            while reader.position < end:
                found += decoder.decode(await reader.read(1.0))
    finally:
        await reader.close()
    return found


async def _load(broker: str) -> None:
    """Write to each partition at `RATE`, for ever; time that was lost is made up for."""
    loop, value = asyncio.get_running_loop(), bytes(RECORD_BYTES)
    async with AIOKafkaProducer(bootstrap_servers=broker) as producer:
        began, written = loop.time(), 0
        while True:
            due = int((loop.time() - began) * RATE / RECORD_BYTES)
            for _ in range(due - written):
                for partition in range(PARTITIONS):
                    await producer.send(CLICKS, value, partition=partition)
            written = due
            await asyncio.sleep(TICK_S)


def _spread(topics: Topics) -> bool:
    """Whether the last plan moved partitions under load, and both consumers read theirs."""
    plans = topics.plans()
    if not plans or not plans[-1][1].moves or plans[-1][1].consumers != 2:
        return False
    targets = plans[-1][1].targets
    reading: dict[Slot, set[TopicPartition]] = {}
    for _, message in topics.metadata:
        if isinstance(message, Report):
            reading[message.slot] = set(message.reading)
    return all(
        found == {p for p, owner in targets.items() if owner == slot}
        for slot, found in reading.items()
    )


def _settings(broker: str, spark: str, directory: Path) -> Settings:
    return load_settings(
        group=GROUP,
        topics=[CLICKS, PAYMENTS, BILLS],
        kafka={"bootstrap_servers": broker},
        lake={"path": str(directory / "lake"), "spark": spark, "freshness_s": 1.0},
        tables=[{"topics": [PAYMENTS], "format": "json", "columns": COLUMNS}],
        monitor={"topic": f"{GROUP}.metrics", "interval_s": 1.0, "window_s": 5.0},
        controller={
            "process_logs": str(directory / "consumers"),
            "limit_bytes_per_s": LIMIT,
            "replan_interval_s": 5.0,
        },
    )


@asynccontextmanager
async def live_system(broker: str, spark: str, directory: Path) -> AsyncIterator[LiveSystem]:
    """Run the group; give it once every situation has come about."""
    (directory / "lake").mkdir()
    system = LiveSystem(_settings(broker, spark, directory), directory / "lake")
    for topic, partitions in ((CLICKS, PARTITIONS), (PAYMENTS, 2), (BILLS, 1)):
        await create_topic(system.settings.kafka, topic, partitions)
    async with services(system.settings, directory / "logs"):
        await produce(broker, PAYMENTS, [*GOOD, *BAD])
        await produce(broker, BILLS, [b"before"])
        for name, number in (
            (PAYMENTS, len(GOOD)),
            (PAYMENTS + BAD_SUFFIX, len(BAD)),
            (BILLS, 1),
        ):
            await until(partial(has_landed, system.lake, name, number))
        await system.order("table", "pause", BILLS, "--reason", "a repair")
        await produce(broker, BILLS, [b"meanwhile"] * WAITING)
        async with background_tasks(_load(broker)):
            await system.wait(_spread)
            await system.order("group", "freeze", "--until", "1h", "--reason", "release")
            await system.order("group", "scale", "3", "--reason", "a backfill")
            await system.wait(_is_held)
            yield system


def _is_held(topics: Topics) -> bool:
    """Whether the controller has reported what the orders hold back, and all else is quiet."""
    held = [m for _, m in topics.metadata if isinstance(m, Held)]
    written = [r.writing[BILLS] for r in topics.reports(BILLS)][-1:]
    return (
        bool(held)
        and any("release" in reason for reason in held[-1].reasons)
        and all(table.state == "paused" for table in written)
        and all(rate < 1 for t in (PAYMENTS, BILLS) for rate in newest_rates(topics, t).values())
    )


def newest_rates(topics: Topics, topic: str) -> Mapping[TopicPartition, float]:
    """Return the rates of a topic's partitions in its newest measurement."""
    return next(m.rates() for m in reversed(topics.measurements) if m.topic == topic)


def orders_of(topics: Topics) -> dict[str, GroupOrder]:
    """Return the orders that were given, by what they are about."""
    found = {type(m): m for _, m in topics.orders if isinstance(m, FreezeOrder | ScaleOrder)}
    return {"freeze": found[FreezeOrder], "scale": found[ScaleOrder]}


def claimed_limit(topics: Topics) -> float:
    """Return what a consumer sustains, as the leading controller has it."""
    return topics.last(Claim).limit


def lines(answer: str, kind: str) -> list[str]:
    """Return the sentences of one kind in an explanation."""
    return [each["text"] for each in json.loads(answer)["lines"] if each["kind"] == kind]
