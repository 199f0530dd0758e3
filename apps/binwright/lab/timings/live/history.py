"""Read a range of a group's control topics, without taking any part in the group."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from binwright.kafka.control_records import CONTROLLER_PARTITION, METRICS_PARTITION, Decoder
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lab.timings.events import GroupRecord, timings_since
from binwright.lab.timings.outcome import TimedParts
from binwright.lab.timings.steps import Pass
from binwright.look.follower import group_topic
from binwright.protocol.errors import ExternalError
from binwright.protocol.metadata import decode_inbound
from binwright.protocol.metrics import decode_measurement
from binwright.protocol.ports.kafka import Reader, Record
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.settings.group import Settings

READ_S, SILENT_S = 0.5, 30.0
BEFORE_S = 5.0
"""Seconds before the range from which measurements are read: a group follows one monitor for each
topic, and a monitor measures each second."""

T = TypeVar("T")


@dataclass
class TopicRange(Generic[T]):
    """A control topic's first partition, in a range of times.

    Attributes:
        first: Offset of the first record in the range.
        collected: What was read, in order.
        read: Records in the range that were there.
        end: Offset behind the range; None: it has not ended.
    """

    topic: str
    partition: int
    reader: Reader
    first: int
    decoder: Decoder[Any]
    make: Callable[[Record, Any], T]
    collected: list[T] = field(default_factory=list)
    read: int = 0
    end: int | None = None

    @property
    def missing(self) -> int:
        """How many records of the range compaction had removed."""
        return max(0, (self.end or 0) - self.first - self.read)

    @property
    def done(self) -> bool:
        """Whether all of the range was read."""
        return self.end is not None and self.reader.position >= self.end

    async def advance(self) -> bool:
        """Read once; return whether anything came."""
        records = await self.reader.read(READ_S)
        if self.end is not None:
            records = [record for record in records if record.offset < self.end]
        self.read += sum(record.offset >= self.first for record in records)
        self.collected += [self.make(r, message) for r, message in self.decoder.decode(records)]
        return bool(records)


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """A range of a group's history.

    Attributes:
        settings: The group's: its name, its limits, the metrics topic.
        since_s: Where the range begins, s since 1970.
        until_s: Where it ends; if that is still to come, it is waited for.
        progress: Called with the seconds of the range that are over.
    """

    settings: Settings
    since_s: float
    until_s: float
    progress: Callable[[float], None] = lambda _: None

    async def timings(self, bus: KafkaControlTopics) -> TimedParts:
        """Read the range, and return what was timed in it.

        Raises:
            TopicMissing: There is no such group, or no metrics topic.
            BrokerUnavailable: Kafka does not answer.
            ExternalError: No record came for `SILENT_S`, although there are more.
        """
        topic, partition = self.settings.metadata_topic, CONTROLLER_PARTITION
        first = await bus.offset_at(topic, partition, round(1_000 * self.since_s))
        reader = await bus.reader(topic, partition, 0)
        # Before the range only the last report of each consumer counts.
        decoder = Decoder(decode_inbound, history_end=first)
        group = TopicRange(topic, partition, reader, first, decoder, _group_record)
        try:
            metrics = await self._metrics(bus)
            try:
                async with asyncio.TaskGroup() as tasks:
                    tasks.create_task(self._read(bus, group))
                    tasks.create_task(self._read(bus, metrics))
            finally:
                await metrics.reader.close()
        finally:
            await reader.close()
        limits = self.settings.controller.limits
        records = [record for record in group.collected if record.at_s < self.until_s]
        passes = [one for one in metrics.collected if one.at_s < self.until_s]
        timed = timings_since(records, passes, limits, self.since_s)
        return TimedParts(
            triggers=timed.triggers,
            starts=timed.starts,
            changes=timed.changes,
            writer_stops=timed.writer_stops,
            untriggered=timed.untriggered,
            unfinished=timed.unfinished,
            missing=group.missing,
        )

    async def _metrics(self, bus: KafkaControlTopics) -> TopicRange[Pass]:
        topic, partition = self.settings.monitor.topic, METRICS_PARTITION
        before_ms = round(1_000 * (self.since_s - BEFORE_S))
        first = await bus.offset_at(topic, partition, before_ms)
        reader = await bus.reader(topic, partition, first)
        return TopicRange(topic, partition, reader, first, Decoder(decode_measurement), _pass)

    async def _read(self, bus: KafkaControlTopics, read: TopicRange[Any]) -> None:
        last_s = loop_s()
        while not read.done:
            now_s = wall_ms() / 1_000
            self.progress(min(now_s, self.until_s) - self.since_s)
            if read.end is None and now_s >= self.until_s:
                until_ms = round(1_000 * self.until_s)
                read.end = await bus.offset_at(read.topic, read.partition, until_ms)
            if await read.advance() or read.end is None:
                last_s = loop_s()
            elif loop_s() - last_s > SILENT_S:
                raise ExternalError(f"{read.topic} could not be read up to offset {read.end}")


def _group_record(record: Record, message: Any) -> GroupRecord:
    return GroupRecord(record.timestamp_ms / 1_000, record.offset, message)


def _pass(record: Record, message: Any) -> Pass:
    return Pass(record.timestamp_ms / 1_000, message)


@dataclass(frozen=True, slots=True)
class RunningGroup:
    """The group of these settings, in a range of seconds since 1970."""

    settings: Settings
    since_s: float
    until_s: float
    progress: Callable[[float], None]

    async def run(self) -> TimedParts:
        """Read the range, up to its end if that is still to come.

        Raises:
            TopicMissing: There is no such group, or no metrics topic.
            ExternalError: Kafka does not answer.
        """
        async with KafkaControlTopics(self.settings.kafka, read_only=True) as bus:
            await group_topic(bus, self.settings.group)
            read = HistoryRange(self.settings, self.since_s, self.until_s, self.progress)
            return await read.timings(bus)
