"""What topics still hold, as a plain reader sees it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import NoError
from aiokafka.protocol.admin import DescribeConfigsRequest

from binwright.core.errors import TopicMissing
from binwright.core.model import TopicPartition
from binwright.lab.ranges import Range, Tally
from binwright.shell.broker import Cluster, client_options, stop_client, translated
from binwright.shell.settings import KafkaSettings

POLL_S = 0.2
_TOPIC, _POLICY = 2, "cleanup.policy"  # a kind of resource in Kafka's protocol, and a name there
FETCH_WAIT_MS = 50  # there is something to fetch up to where we read: never wait for more


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What became of ranges of offsets, read as far as time allowed."""

    records: Tally  # offsets that carry a record
    unread: int  # offsets that were not looked at


class Topics:
    """Bounds and records of topics. See `open_topics`."""

    def __init__(self, cluster: Cluster, consumer: AIOKafkaConsumer) -> None:
        self._cluster, self._consumer = cluster, consumer

    async def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """Return of each partition its first offset kept, and its end.

        Read committed, the end is that of the last settled transaction.

        Raises:
            TopicMissing: There is no such topic.
            BrokerUnavailable: Kafka does not answer.
        """
        partitions = sorted(await self._cluster.leaders(topic))
        if not partitions:
            raise TopicMissing(f"there is no topic {topic}")
        wanted = [KafkaPartition(topic, number) for number in partitions]
        with translated(f"ask for the offsets of {topic}"):
            ends = await self._consumer.end_offsets(wanted)
            starts = await self._consumer.beginning_offsets(wanted)
        # Retention may reach the end between the two answers.
        return {p.partition: (min(starts[p], ends[p]), ends[p]) for p in wanted}

    async def topic_id(self, topic: str) -> str | None:
        """Return which of all topics of this name it is; None if Kafka does not tell."""
        return await self._cluster.topic_id(topic)

    async def compacted(self, topic: str) -> bool | None:
        """Tell whether Kafka takes records out of the topic's middle; None: it does not say.

        Raises:
            BrokerUnavailable: Kafka does not answer.
        """
        request = DescribeConfigsRequest([(_TOPIC, topic, [_POLICY])])
        answer: Any = await self._cluster.ask_controller(request)
        (code, _, _, _, entries) = answer.resources[0]
        found = {name: value for name, value, *_ in entries}
        if code != NoError.errno or _POLICY not in found:
            return None
        return "compact" in found[_POLICY]

    async def carried(
        self, partition: TopicPartition, ranges: Iterable[Range], until: float
    ) -> Carried:
        """Read `ranges`, in rising order, until the loop's clock shows `until`.

        Markers of transactions, aborted records, what compaction removed and what retention took
        carry no record.

        Raises:
            BrokerUnavailable: Kafka refuses; one that is silent costs the time there is.
        """
        tally, unread = Tally(), 0
        with translated(f"read {partition}"):
            for gap in ranges:
                unread += await self._read(KafkaPartition(*partition), gap, tally, until)
        return Carried(records=tally, unread=unread)

    async def _read(self, source: KafkaPartition, gap: Range, tally: Tally, until: float) -> int:
        """Count a gap's records; return how many of its offsets there was no time for."""
        loop, position = asyncio.get_running_loop(), gap.first
        if loop.time() >= until:
            return len(gap)
        self._consumer.assign([source])
        self._consumer.seek(source, gap.first)
        try:
            async with asyncio.timeout_at(until):
                while position <= gap.last:
                    found = await self._consumer.getmany(source, timeout_ms=round(POLL_S * 1000))
                    for record in found.get(source, ()):
                        if position <= record.offset <= gap.last:
                            tally.add(record.offset)
                    position = await self._consumer.position(source)
        except TimeoutError:
            return max(0, gap.last + 1 - position)
        return 0


@asynccontextmanager
async def open_topics(kafka: KafkaSettings, isolation: str) -> AsyncIterator[Topics]:
    """Connect to Kafka as a plain reader: no group, nothing committed.

    Args:
        kafka: How to reach it.
        isolation: `read_committed` or `read_uncommitted`.

    Raises:
        BrokerUnavailable: Nobody answers; says what to check.
    """
    consumer = AIOKafkaConsumer(
        **client_options(kafka),
        enable_auto_commit=False,
        auto_offset_reset="earliest",  # where retention took what was looked for
        isolation_level=isolation,
        fetch_max_wait_ms=FETCH_WAIT_MS,
    )
    async with Cluster(kafka) as cluster:
        try:
            with translated("connect to Kafka"):
                await consumer.start()
            yield Topics(cluster, consumer)
        finally:
            await stop_client(consumer)
