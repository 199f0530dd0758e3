"""One consumer works off a backlog, in one of the paper's conditions (Table VI, Figure 13)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from binwright.kafka.control_records import (
    LANDING_CONFIG,
    LANDING_PARTITIONS,
    METADATA_CONFIG,
    METRICS_CONFIG,
    Decoder,
)
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lab.timings.capacity import ReadCapacity, StagedBytes, capacity
from binwright.lab.timings.published import PublishedCapacity
from binwright.local.stack import Servers, services
from binwright.look.follower import read_history
from binwright.protocol.errors import ExternalError
from binwright.protocol.landing import decode_staged
from binwright.protocol.metadata import MeasuredCapacity, Report, decode_inbound
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Reader
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

RECORD_BYTES = 1_000
BATCH_BYTES, LEAST_FILES = 5_000_000, 10
"""Of a staged file, as of a batch of the paper's consumer; less where a table would have fewer
files."""
WAIT_S = 1.0
"""Age of a smaller batch, as of the paper's consumer."""
LAND_S, LAND_BYTES = 3_600.0, 100_000_000_000
"""Nothing lands while the consumer reads, unless that is wanted: Spark would take this machine's
cores from it."""
FILL_BYTES_PER_S, LEAST_FILL_S = 25_000_000, 2.0
UNLIMITED = 1e12
"""The consumer's limit, bytes/s: it is to read as fast as it can, and alone."""
START_S, LEAST_BYTES_PER_S = 120.0, 1_000_000
"""A backlog has failed after `START_S` and what it takes at so many bytes/s."""
READ_S = 0.5


@dataclass(frozen=True, slots=True)
class BacklogTest:
    """A condition, scaled.

    Attributes:
        condition: Of the paper.
        scale: The share of its bytes.
        servers: Kafka and Spark.
        directory: Of tables and logs.
        progress: Called with the share that was read, 0 to 1.
        lands: Rows land while the consumer reads.
    """

    condition: PublishedCapacity
    scale: float
    servers: Servers
    directory: Path
    progress: Callable[[float], None]
    lands: bool = False

    @property
    def name(self) -> str:
        """The group's name."""
        return self.condition.name.replace(" ", "-") + ("-lands" if self.lands else "")

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions, as evenly over the tables as they can be."""
        counts = Counter(
            number % self.condition.tables for number in range(self.condition.partitions)
        )
        return [
            TopicPartition(f"{self.name}-{table}", number)
            for table, count in sorted(counts.items())
            for number in range(count)
        ]

    def settings(self) -> Settings:
        """Return those of a group of one consumer."""
        a_table = self.scale * self.condition.total_bytes / self.condition.tables
        nothing_lands = {"freshness_s": LAND_S, "batch_bytes": LAND_BYTES}
        return load_settings(
            group=self.name,
            topics=tuple(sorted({p.topic for p in self.partitions()})),
            kafka={"bootstrap_servers": self.servers.bootstrap_servers},
            lake={
                "path": str(self.directory / "lake"),
                "spark": self.servers.spark,
                "token_file": self.servers.token_file,
                **({} if self.lands else nothing_lands),
            },
            staging={} if self.lands else {"max_bytes": LAND_BYTES},
            monitor={"topic": f"{self.name}.metrics", "groups": False},
            consumer={
                "batch_bytes": round(min(BATCH_BYTES, a_table / LEAST_FILES)),
                "batch_wait_s": WAIT_S,
            },
            controller={
                "limit_bytes_per_s": UNLIMITED,
                "max_slots": 1,
                "process_logs": self.directory,
            },
        )

    async def run(self) -> ReadCapacity | None:
        """Write the backlog, let one consumer read all of it, and return how fast it did.

        None: the backlog is too short to have a rate.

        Raises:
            ExternalError: A process does not start, or it takes too long.
        """
        settings = self.settings()
        self.directory.mkdir(parents=True, exist_ok=True)
        async with KafkaControlTopics(settings.kafka) as bus:
            return await self._run(bus, settings)

    async def _run(self, bus: KafkaControlTopics, settings: Settings) -> ReadCapacity | None:
        partitions = self.partitions()
        await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        await bus.ensure(settings.landing_topic, LANDING_PARTITIONS, LANDING_CONFIG)
        for topic in settings.topics:
            await bus.ensure(topic, sum(p.topic == topic for p in partitions), {})
        records = await self._fill(settings, partitions)
        files: list[StagedBytes] = []
        readers = [
            await bus.reader(settings.landing_topic, n, 0) for n in range(LANDING_PARTITIONS)
        ]
        try:
            async with (
                services(settings, self.directory) as stack,
                background_tasks(stack.wait_for_failure()),
            ):
                await self._until_read(readers, files, records * RECORD_BYTES)
        finally:
            for reader in readers:
                await reader.close()
        read = capacity(self.condition.name, self.condition.partitions, files)
        return None if read is None else replace(read, own=await _reported(bus, settings))

    async def _fill(self, settings: Settings, partitions: list[TopicPartition]) -> int:
        """Write the backlog; return how many records it has."""
        total = self.scale * self.condition.total_bytes
        fill_s = max(LEAST_FILL_S, total / FILL_BYTES_PER_S)
        load = Pacing(
            row_s=fill_s,
            bytes_per_per_cent=total / len(partitions) / fill_s / 100,
            record_bytes=RECORD_BYTES,
            delivery_s=120.0,
        )
        row = {partition: PerCent(100.0) for partition in partitions}
        result = await run_load([row], settings.kafka, load)
        return sum(sent.records for sent in result.partitions.values())

    async def _until_read(
        self, readers: Sequence[Reader], files: list[StagedBytes], total: int
    ) -> None:
        """Collect announcements until they have all bytes."""
        deadline_s = START_S + total / LEAST_BYTES_PER_S
        complete = asyncio.Event()

        async def follow(reader: Reader) -> None:
            decoder = Decoder(decode_staged)
            while True:
                for record, message in decoder.decode(await reader.read(READ_S)):
                    size = message.rows * RECORD_BYTES
                    files.append(StagedBytes(record.timestamp_ms / 1_000, message.topic, size))
                read = sum(file.bytes for file in files)
                self.progress(read / total)
                if read >= total:
                    complete.set()

        try:
            async with asyncio.timeout(deadline_s):
                async with background_tasks(*map(follow, readers)):
                    await complete.wait()
        except TimeoutError as exc:
            raise ExternalError(
                f"{self.condition.name} was not read within {deadline_s:.0f} s; "
                f"logs: {self.directory}"
            ) from exc


async def _reported(bus: KafkaControlTopics, settings: Settings) -> MeasuredCapacity | None:
    """Return what the group's consumer has measured of itself; None: it was too short for that."""
    reader, end = await read_history(bus, settings.metadata_topic)
    decoder, measured = Decoder(decode_inbound), None
    try:
        async with asyncio.timeout(START_S):
            while reader.position < end:
                for _, message in decoder.decode(await reader.read(READ_S)):
                    if isinstance(message, Report):
                        measured = message.capacity or measured
    finally:
        await reader.close()
    return measured
