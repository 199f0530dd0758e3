"""An aiokafka consumer with partitions assigned by hand, all paused unless started.

`assign` with a changed list throws away everybody's buffers and requests under way. So the list
changes only when a topic is met first, grows or is gone; starting is to seek and resume, stopping
is to pause.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import aiokafka.client
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka import TopicPartition as Theirs
from aiokafka.errors import KafkaError
from aiokafka.protocol.metadata import MetadataRequest

from binwright.consumer import decode
from binwright.core.model import TopicPartition
from binwright.shell.broker import client_options, stop_client, unreachable
from binwright.shell.settings import KafkaSettings

FETCH_BYTES = 8 << 20  # of one answer of one broker, compressed: larger ones are no faster
PARTITION_BYTES = 1 << 20
GATHERED_BYTES = 1 << 16
FETCH_WAIT_MS = 75
"""A broker answers a fetch when it has so many bytes, or after so long.

Answers with a record or two each made sixteen consumers of 110 kB/s cost three times as much.
Longer waits would save more, but a partition is fetched, once started, only when its broker has
answered the fetch under way: this is the longest pause that it adds to a hand-over.
"""


class _Metadata(MetadataRequest):  # type: ignore[misc]  # aiokafka has no types
    """What aiokafka's clients ask about topics.

    Of their own accord they ask about all where they have none, and create what was deleted.
    """

    def __init__(self, topics: Collection[str] | None = None) -> None:
        super().__init__(list(topics or ()), allow_auto_topic_creation=False)


aiokafka.client.MetadataRequest = _Metadata
decode.install()


class Assigned:
    """One consumer of aiokafka, which can be replaced by another when it broke."""

    def __init__(self, kafka: KafkaSettings, isolation: str) -> None:
        self._kafka, self._isolation = kafka, isolation
        self._consumer: Any = None
        self.partitions: frozenset[TopicPartition] = frozenset()
        self.next: dict[TopicPartition, int] = {}
        """Started partitions -> the offset to return next."""

    async def open(self) -> None:
        """Connect; raise `BrokerUnavailable` with what to check."""
        self._consumer = AIOKafkaConsumer(
            **client_options(self._kafka),
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level=self._isolation,
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=PARTITION_BYTES,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            fetch_min_bytes=GATHERED_BYTES,
        )
        try:
            await self._consumer.start()
        except (KafkaError, OSError) as exc:
            raise await unreachable(self._kafka, exc) from exc

    async def close(self) -> None:
        """Let go of connections."""
        if self._consumer is not None:
            await stop_client(self._consumer)

    @property
    def broken(self) -> bool:
        """Tell whether nothing would ever be fetched again: aiokafka does not look after that."""
        fetcher = getattr(self._consumer, "_fetcher", None)
        return fetcher is not None and fetcher.error_future.done()

    async def renew(self) -> None:
        """Go on with a new client, where the old one was."""
        await self.close()
        await self.open()
        self.assign(self.partitions)

    async def connect(self) -> None:
        """Connect to all leaders, so that the first fetch need not; raise `KafkaError`."""
        await self._consumer.end_offsets([Theirs(*p) for p in self.partitions])

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Assign these, each at its place; what is not started needs a place, too."""
        for gone in self.partitions.difference(partitions):
            decode.unwatch(Theirs(*gone))
        self.partitions = frozenset(partitions)
        theirs = [Theirs(*p) for p in sorted(partitions)]
        self._consumer.assign(theirs)
        self._consumer.pause(*[Theirs(*p) for p in partitions if p not in self.next])
        for partition in theirs:
            decode.watch(partition)
            self._consumer.seek(partition, self.next.get(TopicPartition(*partition), 0))

    def missing(self) -> frozenset[TopicPartition]:
        """Return what is not started, and of a topic that Kafka does not know any more."""
        known = self._consumer._client.cluster.topics(exclude_internal_topics=False)  # noqa: SLF001
        started = {p.topic for p in self.next}
        return frozenset(p for p in self.partitions if p.topic not in known | started)

    def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch an assigned partition from `offset` on."""
        self.seek(partition, offset)
        self._consumer.resume(Theirs(*partition))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Return a started partition's records from `offset` on."""
        self.next[partition] = offset
        self._consumer.seek(Theirs(*partition), offset)

    def stop(self, partition: TopicPartition) -> None:
        """Return nothing of it any more."""
        if self.next.pop(partition, None) is not None:
            self._consumer.pause(Theirs(*partition))

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Fetch nothing of started partitions until they are resumed."""
        self._consumer.pause(*[Theirs(*p) for p in partitions])

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Go on with them."""
        self._consumer.resume(*[Theirs(*p) for p in partitions])

    def rewind(self) -> None:
        """Go back to what was returned last: an error may have swallowed what came with it."""
        for partition, offset in self.next.items():
            self.seek(partition, offset)

    async def records(
        self, timeout_s: float, most: int
    ) -> Mapping[TopicPartition, Sequence[ConsumerRecord]]:
        """Return what came; errors are aiokafka's.

        Nothing may wait between this and the caller's own return: one that is cancelled there
        would lose records.
        """
        found = await self._consumer.getmany(
            timeout_ms=max(round(timeout_s * 1000), 1), max_records=most
        )
        came = {TopicPartition(*theirs): records for theirs, records in found.items()}
        for partition, records in came.items():
            self.next[partition] = records[-1].offset + 1
        return came

    def faults(self) -> Mapping[TopicPartition, decode.Watch]:
        """Return the started partitions in which something could not be decoded as it should."""
        watched = {p: decode.watch(Theirs(*p)) for p in self.next}
        return {p: watch for p, watch in watched.items() if watch.fault or watch.escaped}

    def answered(self) -> int:
        """Return when a broker last answered a fetch, ms: they do several times a second."""
        polls = (self._consumer.last_poll_timestamp(Theirs(*p)) for p in self.next)
        return max((when for when in polls if when is not None), default=0)
