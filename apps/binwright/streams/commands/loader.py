"""A load on a cluster: its topics, the records, and what was written."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from binwright.cli.terminal import Console, count, data_size
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.protocol.errors import SettingsError, StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.ports.kafka import ControlTopics
from binwright.runtime.settings.group import Settings
from binwright.streams.load import LoadProgress, LoadResult, kafka_options, run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.location import DEFAULT_ROW_S, StreamLocation
from binwright.streams.streams import CompactStream, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTopics:
    """The topics of a load.

    Attributes:
        partitions: How many each must have.
        named: The user has named these: they may hold records already.
        grow: Whether topics that exist get the partitions that they lack.
    """

    partitions: Mapping[str, int]
    named: Collection[str]
    grow: bool

    async def prepare(self, bus: ControlTopics, report: Callable[[str], None]) -> None:
        """Create the topics that are missing, before a record is written; report which.

        Raises:
            SettingsError: A topic lacks partitions, or holds records and is not named.
            BrokerUnavailable: Kafka does not answer or refuses.
        """
        missing = {}
        for topic, wanted in self.partitions.items():
            there = await bus.partitions(topic)
            if there and not self.grow:
                await self._check(bus, topic, there)
            if there < wanted:
                missing[topic] = there
        for topic, there in missing.items():
            new = self.partitions[topic] - there
            what = "more in topic" if there else "in a new topic,"
            report(f"creating {count(new, 'partition')} {what} {topic}")
            await bus.ensure(topic, self.partitions[topic], {})

    async def _check(self, bus: ControlTopics, topic: str, there: int) -> None:
        if there < self.partitions[topic]:
            raise SettingsError(
                f"topic {topic} has {there} partitions, the stream has {self.partitions[topic]}: "
                "add them, or write to topics of other names (--prefix)"
            )
        if topic not in self.named and any([await bus.end(topic, n) for n in range(there)]):
            raise SettingsError(
                f"topic {topic} holds records, and a load would add to them: name it to allow that "
                f"(--topics {topic}), or write to topics of other names (--prefix)"
            )


UNLIMITED_S = 1e9  # until Ctrl-C
LINE_S = 5  # between lines, without a terminal


def words_of(progress: LoadProgress) -> str:
    """Return how far a load is, in words."""
    of = "" if progress.ends_s >= UNLIMITED_S else f" of {progress.ends_s:.0f} s"
    rate = data_size(progress.bytes / progress.elapsed_s)
    return (
        f"{progress.elapsed_s:.0f}{of or ' s'}: {progress.records:,} records, "
        f"{data_size(progress.bytes)}, {rate}/s"
    )


@dataclass(frozen=True, slots=True)
class Loader:
    """Writes a load to topics.

    Attributes:
        console: For progress.
        settings: Of Kafka.
        topics: To be written to.
        stream: Rates, in per cent.
        load: How they become records.
    """

    console: Console
    settings: Settings
    topics: LoadTopics
    stream: Stream
    load: Pacing

    async def run(self) -> LoadResult:
        """Write until the load is over; when cancelled, end early and return what was written.

        Raises:
            ExternalError: Kafka is away, or did not confirm every record.
            UserError: A topic or a number does not fit.
        """
        kafka_options(self.settings.kafka)  # what they refuse is refused before a topic is made
        async with KafkaControlTopics(self.settings.kafka) as bus:
            await self.topics.prepare(bus, self.console.log)
        where = self.settings.kafka.bootstrap_servers
        self.console.log(f"writing to {', '.join(self.topics.partitions)} at {where}")
        stop = asyncio.Event()
        with self.console.status("writing; Ctrl-C ends it") as status:

            def show(progress: LoadProgress) -> None:
                status.update(f"{words_of(progress)}; Ctrl-C ends it")
                if not self.console.is_terminal and not round(progress.elapsed_s) % LINE_S:
                    self.console.log(words_of(progress))

            writing = asyncio.create_task(
                run_load(self.stream, self.settings.kafka, self.load, on_progress=show, stop=stop)
            )
            try:
                await asyncio.wait([writing])
            except asyncio.CancelledError:
                stop.set()  # what is written until Ctrl-C is confirmed, and counted
                await asyncio.wait([writing])
        return writing.result()


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLoad:
    """Writes the rates of a stream or a recording.

    Attributes:
        location: Of the stream.
        settings: Of Kafka, and of a consumer's capacity.
        topics: Those of the stream that are written, and may hold records; none: all of it.
        prefix: Before each topic's name.
        capacity: A stream's 100 per cent, bytes/s; None: the settings' capacity.
        scale: Multiplies every rate.
        row_s: How long a row lasts, seconds; None: the paper's length.
        speed: A row lasts 1/speed of that.
        minutes: How long; None: the stream once.
        record_bytes: Of one record.
    """

    location: StreamLocation
    settings: Settings
    topics: Collection[str] = ()
    prefix: str = ""
    capacity: float | None = None
    scale: float = 1.0
    row_s: float | None = None
    speed: float = 1.0
    minutes: float | None = None
    record_bytes: int = 1_000

    async def run(self) -> LoadResult:
        """Write; see `Loader.run` and `StreamLocation.read`."""
        timed = await self.location.read(self.row_s or DEFAULT_ROW_S)
        rows = selected(timed.rows, self.topics, self.prefix)
        load = self.pace(timed.row_s, timed.capacity)
        console = self.location.console
        console.log(
            f"{len(rows):,} rows of {load.row_s:g} s each; "
            f"100 per cent are {100 * load.bytes_per_per_cent:,.0f} bytes/s"
        )
        counts = partition_counts(rows.partitions)
        topics = LoadTopics(
            partitions=counts, named=counts if self.prefix else self.topics, grow=False
        )
        return await Loader(console, self.settings, topics, rows, load).run()

    def pace(self, row_s: float, recorded_capacity: BytesPerSecond | None) -> Pacing:
        """Return how the rows become records.

        Args:
            row_s: How long a row lasts, seconds.
            recorded_capacity: What 100 per cent are in a recording, bytes/s; None: it is a stream.
        """
        full = recorded_capacity or self.capacity or self.settings.controller.capacity
        return Pacing(
            row_s=row_s / self.speed,
            bytes_per_per_cent=full * self.scale / 100,
            record_bytes=self.record_bytes,
            duration_s=None if self.minutes is None else self.minutes * 60,
        )


def partition_counts(partitions: Collection[TopicPartition]) -> dict[str, int]:
    """Return how many partitions each topic needs to have these, by topic."""
    counts: dict[str, int] = {}
    for topic, number in sorted(partitions):
        counts[topic] = number + 1
    return counts


def selected(rows: CompactStream, topics: Collection[str], prefix: str) -> CompactStream:
    """Return a stream of some of its topics, under other names.

    Args:
        rows: The stream.
        topics: Of the stream; none: all of them.
        prefix: Before each name.

    Raises:
        StreamError: The stream has no such topic.
    """
    there = {partition.topic for partition in rows.partitions}
    if unknown := sorted(set(topics) - there):
        raise StreamError(
            f"the stream has no topic {', '.join(unknown)}; it has {', '.join(sorted(there))}"
        )
    wanted = set(topics) or there
    if wanted == there and not prefix:
        return rows
    names = {p: p._replace(topic=prefix + p.topic) for p in rows.partitions if p.topic in wanted}
    return CompactStream({names[p]: rate for p, rate in row.items() if p in names} for row in rows)
