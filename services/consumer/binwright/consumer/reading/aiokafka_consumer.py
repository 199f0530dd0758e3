"""An aiokafka consumer with partitions assigned by hand, all paused unless started.

`assign` with a changed list discards the buffers and pending requests of all partitions. So the
list changes only when a topic is new, grows or was deleted. Starting a partition is a seek and a
resume, stopping it is a pause.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import KafkaError

from binwright.kafka.aiokafka_patches import (
    DecodeIssues,
    fetcher_has_died,
    install_decoder,
    keep_to_own_topics,
    known_topics,
    unwatch,
    watch,
)
from binwright.kafka.client import client_options, stop_client, unreachable_error
from binwright.protocol.model import TopicPartition
from binwright.runtime.settings import KafkaSettings

FETCH_BYTES = 8 << 20  # per response of a broker, compressed: larger ones are no faster
PARTITION_BYTES = 1 << 20
MIN_FETCH_BYTES = 1 << 16
FETCH_WAIT_MS = 75
"""A broker responds to a fetch when it has `MIN_FETCH_BYTES`, or after this time.

With responses of one or two records, sixteen consumers of 110 kB/s cost three times as much CPU.
Longer waits would save more, but a started partition is fetched only after its broker has responded
to the pending fetch: this wait is the longest that it adds to a hand-over.
"""


install_decoder()


class AssignedConsumer:
    """An aiokafka consumer that can be replaced when it is broken.

    Attributes:
        partitions: The assigned partitions.
        positions: Started partitions -> the next offset to return.
    """

    def __init__(self, kafka: KafkaSettings, isolation: str) -> None:
        self._kafka, self._isolation = kafka, isolation
        self._consumer: Any = None
        self.partitions: frozenset[TopicPartition] = frozenset()
        self.positions: dict[TopicPartition, int] = {}

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
            fetch_min_bytes=MIN_FETCH_BYTES,
        )
        keep_to_own_topics(self._consumer)
        try:
            await self._consumer.start()
        except (KafkaError, OSError) as exc:
            raise await unreachable_error(self._kafka, exc) from exc

    async def close(self) -> None:
        """Close the connections."""
        if self._consumer is not None:
            await stop_client(self._consumer)

    @property
    def broken(self) -> bool:
        """Return whether the fetcher has died; aiokafka does not restart it."""
        return fetcher_has_died(self._consumer)

    async def replace_client(self) -> None:
        """Replace the client, at the same positions."""
        await self.close()
        await self.open()
        self.assign(self.partitions)

    async def connect(self) -> None:
        """Connect to all leaders, so that the first fetch is not delayed; raise `KafkaError`."""
        await self._consumer.end_offsets([KafkaPartition(*p) for p in self.partitions])

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Assign these partitions, each at its position, at offset 0 if not started."""
        for removed in self.partitions.difference(partitions):
            unwatch(KafkaPartition(*removed))
        self.partitions = frozenset(partitions)
        assigned = [KafkaPartition(*p) for p in sorted(partitions)]
        self._consumer.assign(assigned)
        self._consumer.pause(*[KafkaPartition(*p) for p in partitions if p not in self.positions])
        for partition in assigned:
            watch(partition)
            self._consumer.seek(partition, self.positions.get(TopicPartition(*partition), 0))

    def missing(self) -> frozenset[TopicPartition]:
        """Return the partitions that are not started and whose topic no longer exists."""
        known = known_topics(self._consumer)
        started = {p.topic for p in self.positions}
        return frozenset(p for p in self.partitions if p.topic not in known | started)

    def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch an assigned partition from `offset` on."""
        self.seek(partition, offset)
        self._consumer.resume(KafkaPartition(*partition))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue a started partition at `offset`."""
        self.positions[partition] = offset
        self._consumer.seek(KafkaPartition(*partition), offset)

    def stop(self, partition: TopicPartition) -> None:
        """Stop a partition: `poll` returns no more of its records."""
        if self.positions.pop(partition, None) is not None:
            self._consumer.pause(KafkaPartition(*partition))

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        """Pause fetching of started partitions."""
        self._consumer.pause(*[KafkaPartition(*p) for p in partitions])

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        """Resume fetching of paused partitions."""
        self._consumer.resume(*[KafkaPartition(*p) for p in partitions])

    def rewind(self) -> None:
        """Seek to the last returned records: aiokafka drops what it fetched along with an error."""
        for partition, offset in self.positions.items():
            self.seek(partition, offset)

    async def poll(
        self, timeout_s: float, most: int
    ) -> Mapping[TopicPartition, Sequence[ConsumerRecord]]:
        """Return fetched records, at most `most`, after `timeout_s` at the latest.

        Raises aiokafka's errors. The caller must not await before it returns the records: if
        cancelled there, it would lose them.
        """
        polled = await self._consumer.getmany(
            timeout_ms=max(round(timeout_s * 1000), 1), max_records=most
        )
        records_of = {TopicPartition(*p): records for p, records in polled.items()}
        for partition, records in records_of.items():
            self.positions[partition] = records[-1].offset + 1
        return records_of

    def decode_issues(self) -> Mapping[TopicPartition, DecodeIssues]:
        """Return the decode issues of started partitions that have any."""
        watched = {p: watch(KafkaPartition(*p)) for p in self.positions}
        return {p: issues for p, issues in watched.items() if issues.fault or issues.escaped}

    def last_response_ms(self) -> int:
        """Return when a broker last responded to a fetch, ms: usually several times a second."""
        polls = (self._consumer.last_poll_timestamp(KafkaPartition(*p)) for p in self.positions)
        return max((when for when in polls if when is not None), default=0)
