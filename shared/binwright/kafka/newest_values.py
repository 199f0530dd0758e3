"""Reads the newest values of topics: a bounded sample, as a reader without a group."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import KafkaError

from binwright.kafka.client import client_options, start_client, stop_client
from binwright.kafka.connection_faults import reason_of
from binwright.runtime.settings.kafka import KafkaSettings

MOST_PARTITIONS = 10
"""Partitions of a topic that a sample is of: those that keep the most offsets."""
FETCH_BYTES, FETCH_WAIT_MS, POLL_MS = 8 << 20, 50, 200

Bounds = Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TopicSample:
    """Values of a topic; those of tombstones are None."""

    values: tuple[bytes | None, ...] = ()
    fault: str = ""  # why there are no more; empty: these are all that were wanted


class NewestValues:
    """See `open_newest_values`."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    async def read(self, topic: str, bounds: Bounds, wanted: int, until: float) -> TopicSample:
        """Return up to `wanted` values, about, of the topic's newest records.

        A fault, such as a missing right, is a part of the sample: other topics can be read.

        Args:
            topic: The topic.
            bounds: Partition -> first offset and end; those without records need not be there.
            wanted: How many of all partitions.
            until: The end, by the loop's clock.
        """
        ends = _ranges(bounds, wanted)
        if not ends:
            return TopicSample()
        source = {KafkaPartition(topic, number): each for number, each in ends.items()}
        self._consumer.assign(list(source))
        for partition, (first, _) in source.items():
            self._consumer.seek(partition, first)
        values: list[bytes | None] = []
        fault = ""
        try:
            async with asyncio.timeout_at(until):
                await self._read(source, values)
        except TimeoutError:
            fault = "the newest records did not come in time"
        except KafkaError as exc:
            fault = reason_of(exc)
        return TopicSample(tuple(values[-wanted:]), fault)

    async def _read(
        self, source: Mapping[KafkaPartition, tuple[int, int]], values: list[bytes | None]
    ) -> None:
        """Append the values of these ranges, each up to its end."""
        left = dict(source)
        while left:
            batches = await self._consumer.getmany(*left, timeout_ms=POLL_MS)
            for partition, records in batches.items():
                _, end = source[partition]
                values += [record.value for record in records if record.offset < end]
            for partition, (_, end) in [*left.items()]:
                if await self._consumer.position(partition) >= end:
                    del left[partition]
                    self._consumer.pause(partition)


def _ranges(bounds: Bounds, wanted: int) -> dict[int, tuple[int, int]]:
    """Return the offsets to read: the last ones of some partitions, as many in each."""
    fullest = sorted(bounds, key=lambda p: (bounds[p][0] - bounds[p][1], p))[:MOST_PARTITIONS]
    partitions = [number for number in fullest if bounds[number][0] < bounds[number][1]]
    share = -(-wanted // len(partitions)) if partitions else 0
    return {p: (max(bounds[p][0], bounds[p][1] - share), bounds[p][1]) for p in sorted(partitions)}


@asynccontextmanager
async def open_newest_values(kafka: KafkaSettings) -> AsyncIterator[NewestValues]:
    """Connect as a plain reader: no group, nothing committed, no topic created.

    Records of transactions that are open or aborted are read as well: they show the format too.

    Raises:
        BrokerUnavailable: Kafka does not answer; says what to check.
    """
    consumer = AIOKafkaConsumer(
        **client_options(kafka),
        enable_auto_commit=False,
        auto_offset_reset="latest",  # where retention has removed the offset meanwhile
        fetch_max_bytes=FETCH_BYTES,
        fetch_max_wait_ms=FETCH_WAIT_MS,
    )
    await start_client(consumer, kafka)
    try:
        yield NewestValues(consumer)
    finally:
        await stop_client(consumer)


async def newest_values(
    kafka: KafkaSettings,
    wanted: Sequence[tuple[str, Bounds]],
    most: int,
    limits_s: tuple[float, float],
) -> dict[str, TopicSample]:
    """Return up to `most` of the newest values of each topic, in turn.

    Args:
        kafka: The connection.
        wanted: Topics with their bounds, the most important first.
        most: Values of each.
        limits_s: Of one topic, and of all.

    Raises:
        BrokerUnavailable: Kafka does not answer.
    """
    loop = asyncio.get_running_loop()
    of_one_s, of_all_s = limits_s
    end, samples = loop.time() + of_all_s, dict[str, TopicSample]()
    async with open_newest_values(kafka) as newest:
        for topic, bounds in wanted:
            until = min(loop.time() + of_one_s, end)
            samples[topic] = await newest.read(topic, bounds, most, until)
    return samples
