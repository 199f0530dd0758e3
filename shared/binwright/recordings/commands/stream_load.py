"""A stream or a recording, written to a cluster as records."""

from collections.abc import Collection
from dataclasses import dataclass

from binwright.protocol.errors import StreamError
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.recordings.commands.loader import Loader, LoadTopics
from binwright.recordings.commands.options import DEFAULT_ROW_S
from binwright.recordings.load import LoadResult
from binwright.recordings.load_pacing import Load
from binwright.recordings.location import StreamLocation
from binwright.recordings.stream_files.compact import CompactStream
from binwright.runtime.settings import Settings


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
        found = await self.location.read(self.row_s or DEFAULT_ROW_S)
        rows = selected(found.rows, self.topics, self.prefix)
        load = self.pace(found.row_s, found.capacity)
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

    def pace(self, row_s: float, recorded_capacity: BytesPerSecond | None) -> Load:
        """Return how the rows become records.

        Args:
            row_s: How long a row lasts, seconds.
            recorded_capacity: What 100 per cent are in a recording, bytes/s; None: it is a stream.
        """
        full = recorded_capacity or self.capacity or self.settings.controller.capacity
        return Load(
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
