"""Runs one consumer on fakes; the test acts as its controller."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, nullcontext
from typing import TypeVar

from binwright.consumer.decide.buffer import BatchConfig
from binwright.consumer.ingest import Ingest, IngestConfig
from binwright.consumer.mailbox import open_mailbox
from binwright.consumer.stage.timings import Timings
from binwright.kafka.control_records import landing_partition
from binwright.protocol import wire
from binwright.protocol.commands import Command, StartReading, StopReading
from binwright.protocol.landing import Staged, decode_staged
from binwright.protocol.metadata import (
    Gap,
    Goodbye,
    Report,
    Started,
    Stopped,
    TableReport,
    decode_inbound,
)
from binwright.protocol.model import Slot, TopicPartition
from binwright.testing.control_topics import FakeControlTopics
from binwright.testing.data_topics import FakeDataReader, FakeTopics
from binwright.testing.staging import FakeStaging

T = TypeVar("T")

METADATA, COMMANDS, LANDING = "g.metadata", "g.commands", "g.landing"
P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
C = TopicPartition("clicks", 0)
CONFIG = IngestConfig(batch=BatchConfig(bytes=100_000, wait_s=1.0, cap_bytes=1_000_000))


async def until(condition: Callable[[], object], patience_s: float = 60.0) -> None:
    """Wait until `condition` holds, on the virtual clock."""
    deadline = asyncio.get_running_loop().time() + patience_s
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "the condition never held"
        await asyncio.sleep(0.05)


def numbered(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % n for n in range(first, first + count)]


class FakeTables:
    """Table writers that record what was started and stopped."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[str, ...]]] = []

    def start(self, topics: Collection[str]) -> None:
        self.calls.append(("start", tuple(topics)))

    def stop(self, topics: Collection[str]) -> None:
        self.calls.append(("stop", tuple(topics)))

    def reports(self) -> Mapping[str, Mapping[str, TableReport]]:
        return {}

    async def run(self) -> None:
        await asyncio.Event().wait()


class ConsumerHarness:
    """One consumer, its ports as fakes, and the messages that it sends."""

    def __init__(
        self, topics: Mapping[str, int], config: IngestConfig, staging: FakeStaging
    ) -> None:
        self.topics = FakeTopics(topics)
        self.bus = FakeControlTopics({METADATA: 1, COMMANDS: 2, LANDING: 8})
        self.staging = staging
        self.reader = FakeDataReader(self.topics, "g")
        self.part_reader = FakeDataReader(self.topics, "g")
        self.tables = FakeTables()
        self.config = config
        self.revision = 0
        self.timings = Timings()
        self.ingest: Ingest
        self.running: asyncio.Task[None]

    async def open(self) -> None:
        mailbox = await open_mailbox(self.bus, METADATA, COMMANDS, Slot(0), "p", "test", lambda: 1)
        self.ingest = Ingest(
            mailbox=mailbox,
            reader=self.reader,
            part_reader=lambda: nullcontext(self.part_reader),
            staging=self.staging,
            landing_topic=LANDING,
            writers=lambda _: self.tables,
            config=self.config,
            wall_ms=lambda: 0,
            timings=self.timings,
        )
        self.running = asyncio.create_task(self.ingest.run())

    def timed(self) -> float | None:
        """Return how many staged files were timed."""
        labels = {"group": "", "slot": "0"}
        return self.timings.registry.get_sample_value("binwright_staging_seconds_count", labels)

    @property
    def epoch(self) -> int:
        return self.ingest.consumer.epoch

    async def command(self, command: Command) -> None:
        await self.bus.publish(COMMANDS, 0, wire.key(command), wire.encode(command))

    async def read(self, offsets: Mapping[TopicPartition, int | None]) -> int:
        self.revision += 1
        await self.command(
            StartReading(term=1, revision=self.revision, epoch=self.epoch, offsets=offsets)
        )
        return self.revision

    async def stop(self, *partitions: TopicPartition) -> Stopped:
        self.revision += 1
        number = self.revision
        await self.command(
            StopReading(term=1, revision=number, epoch=self.epoch, partitions=partitions)
        )
        await until(lambda: any(m.revision == number for m in self.sent(Stopped)))
        return next(m for m in self.sent(Stopped) if m.revision == number)

    def messages(self) -> list[object]:
        return [decode_inbound(r.value) for r in self.bus.records(METADATA, 0)]

    def sent(self, kind: type[T]) -> list[T]:
        return [m for m in self.messages() if isinstance(m, kind)]

    def staged(self, topic: str = "orders") -> list[Staged]:
        every = [
            decode_staged(record.value)
            for partition in range(8)
            for record in self.bus.records(LANDING, partition)
            if b"/" not in (record.key or b"")  # else it is about parts of a split partition
        ]
        return [m for m in every if m.topic == topic]

    def ranges(self, partition: TopicPartition) -> list[tuple[int, int]]:
        found = [m.ranges.get(partition) for m in self.staged(partition.topic)]
        return [tuple(r) for r in found if r]  # type: ignore[misc]

    def staged_end(self, partition: TopicPartition) -> int:
        return max((end for _, end in self.ranges(partition)), default=-1)

    def values(self, partition: TopicPartition) -> list[bytes | None]:
        """Return the values in announced files, in the order of announcements."""
        found: list[bytes | None] = []
        for message in self.staged(partition.topic):
            rows = self.staging.rows(partition.topic, message.file) or {}
            found += [record.value for record in rows.get(partition, ())]
        return found

    def report(self) -> Report:
        return self.sent(Report)[-1]


@asynccontextmanager
async def harness(
    topics: Mapping[str, int],
    config: IngestConfig = CONFIG,
    *,
    staging: FakeStaging | None = None,
) -> AsyncIterator[ConsumerHarness]:
    """Run a consumer; cancel it at the end, and fail if it failed."""
    consumer = ConsumerHarness(topics, config, staging or FakeStaging())
    await consumer.open()
    try:
        yield consumer
        if consumer.running.done() and not consumer.running.cancelled():
            assert consumer.running.exception() is None
    finally:
        consumer.running.cancel()
        await asyncio.gather(consumer.running, return_exceptions=True)


__all__ = [
    "C",
    "ConsumerHarness",
    "Gap",
    "Goodbye",
    "P",
    "Q",
    "Report",
    "Staged",
    "Started",
    "harness",
    "landing_partition",
    "numbered",
    "until",
]
