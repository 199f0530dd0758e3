"""An aiokafka consumer with partitions assigned by hand, all paused unless started.

`assign` with a changed list discards the buffers and pending requests of all partitions. So the
list changes only when a topic is new, grows or was deleted. Starting a partition is a seek and a
resume, stopping it is a pause.
"""

from collections.abc import Collection, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition

from binwright.kafka.aiokafka_patches import (
    fetcher_has_died,
    hasten_first_fetches,
    known_topics,
)
from binwright.kafka.batches import Limits
from binwright.kafka.client import client_options, start_client, stop_client
from binwright.kafka.decoding import Watch, install_decoder, watch
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Records
from binwright.runtime.settings.kafka import KafkaSettings

FETCH_BYTES = 8 << 20  # per response of a broker, compressed: larger ones are no faster
PARTITION_BYTES = 1 << 20
MIN_FETCH_BYTES = 1 << 16
FETCH_WAIT_MS = 75
"""A broker responds to a fetch when it has `MIN_FETCH_BYTES`, or after this time.

With responses of one or two records, sixteen consumers of 110 kB/s cost three times as much CPU.
Longer waits would save more, but a started partition is fetched only after its broker has responded
to the pending fetch: this wait is the longest that it adds to a hand-over. The first fetch of a
started partition returns at once.
"""


install_decoder()


class AssignedConsumer:
    """An aiokafka consumer that can be replaced when it is broken.

    Attributes:
        partitions: The assigned partitions.
        positions: Started partitions -> the next offset to return.
        passed: Started partitions -> their position, where no record stands before it.
    """

    def __init__(
        self, kafka: KafkaSettings, isolation: str, limits: Limits, zone: str | None
    ) -> None:
        self._kafka, self._isolation, self._zone = kafka, isolation, zone
        self._limits = limits
        self._first: set[KafkaPartition] = set()  # started, and not fetched yet
        self._watched: Mapping[KafkaPartition, Watch] = {}
        self._consumer: Any = None
        self.partitions: frozenset[TopicPartition] = frozenset()
        self.positions: dict[TopicPartition, int] = {}
        self.passed: dict[TopicPartition, int] = {}

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
            client_rack=self._zone,
        )
        await start_client(self._consumer, self._kafka)
        self._first = hasten_first_fetches(self._consumer)

    async def close(self) -> None:
        """Close the connections."""
        if self._consumer is not None:
            await stop_client(self._consumer)

    @property
    def stored_bytes(self) -> int:
        """Return the bytes of all batches that were read, as stored."""
        return self._limits.stored_bytes

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
        self.partitions = frozenset(partitions)
        assigned = [KafkaPartition(*p) for p in sorted(partitions)]
        self._consumer.assign(assigned)
        self._watched = watch(self._consumer, self._limits)
        self._consumer.pause(*[KafkaPartition(*p) for p in partitions if p not in self.positions])
        for partition in assigned:
            self._consumer.seek(partition, self.positions.get(TopicPartition(*partition), 0))

    def missing(self) -> frozenset[TopicPartition]:
        """Return the partitions that are not started and whose topic no longer exists."""
        known = known_topics(self._consumer)
        started = {p.topic for p in self.positions}
        return frozenset(p for p in self.partitions if p.topic not in known | started)

    def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch an assigned partition from `offset` on."""
        self.seek(partition, offset)
        self._first.add(KafkaPartition(*partition))
        self._consumer.resume(KafkaPartition(*partition))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue a started partition at `offset`."""
        self.positions[partition] = offset
        self.passed.pop(partition, None)
        self._seek(partition, offset)

    def _seek(self, partition: TopicPartition, offset: int) -> None:
        self._watched[KafkaPartition(*partition)].passed = None
        self._consumer.seek(KafkaPartition(*partition), offset)

    def allow_large(self, partition: TopicPartition, before: int) -> None:
        """Decode large batches before this offset, until the partition is stopped."""
        self._watched[KafkaPartition(*partition)].large_before = before

    def stop(self, partition: TopicPartition) -> None:
        """Stop a partition: `poll` returns no more of its records."""
        self.passed.pop(partition, None)
        if watched := self._watched.get(KafkaPartition(*partition)):
            watched.large_before = 0
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
            self._seek(partition, offset)

    async def poll(
        self, timeout_s: float, most_bytes: int, most: int
    ) -> Mapping[TopicPartition, Records]:
        """Return fetched records after `timeout_s` at the latest.

        They are at most `most`, and about `most_bytes` bytes: the last one may exceed that.

        Raises aiokafka's errors. The caller must not await before it returns the records: if
        cancelled there, it would lose them.
        """
        self._limits.poll_bytes = max(most_bytes, 1)
        polled = await self._consumer.getmany(
            timeout_ms=max(round(timeout_s * 1000), 1), max_records=most
        )
        records_of: dict[TopicPartition, Records] = {
            TopicPartition(*p): records for p, records in polled.items()
        }
        for partition, records in records_of.items():
            self.positions[partition] = records.next
        for partition, position in self.positions.items():
            watched = self._watched[KafkaPartition(*partition)]
            if watched.passed is not None and watched.passed > position:
                self.positions[partition] = self.passed[partition] = watched.passed
            watched.passed = None
        return records_of

    def take_passed(self) -> Mapping[TopicPartition, int]:
        """Return `passed`, each once."""
        passed, self.passed = self.passed, {}
        return passed

    def offsets(self) -> dict[TopicPartition, tuple[int, int]]:
        """Return the position and the end of started partitions that were fetched.

        Where only committed records are read, the end is before the first open transaction.
        """
        committed = self._isolation == "read_committed"
        end_of = self._consumer.last_stable_offset if committed else self._consumer.highwater
        ends = {p: end_of(KafkaPartition(*p)) for p in self.positions}
        return {p: (self.positions[p], end) for p, end in ends.items() if end is not None}

    def decode_issues(self) -> Mapping[TopicPartition, Watch]:
        """Return the started partitions in which something could not be decoded."""
        watched = {p: self._watched[KafkaPartition(*p)] for p in self.positions}
        return {p: issues for p, issues in watched.items() if issues.fault or issues.escaped}

    def last_response_ms(self) -> int:
        """Return when a broker last responded to a fetch, ms: usually several times a second."""
        polls = (self._consumer.last_poll_timestamp(KafkaPartition(*p)) for p in self.positions)
        return max((when for when in polls if when is not None), default=0)
