"""Reads data partitions with aiokafka, and handles its failures: a `DataReader`."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import structlog
from aiokafka import ConsumerRecord
from aiokafka.errors import KafkaError, OffsetOutOfRangeError, TopicAuthorizationFailedError

from binwright.consumer.reading.aiokafka_consumer import AssignedConsumer
from binwright.consumer.reading.data_topics import DataTopics
from binwright.consumer.reading.group_offsets import GroupOffsets
from binwright.kafka.client import ClusterClient, translate_errors
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import GroupOffset, Record
from binwright.runtime.clock import loop_s
from binwright.runtime.settings import KafkaSettings

log = structlog.get_logger()

WARM_S = 2.0  # to connect to leaders in advance; optional, so it is short
MOST_RECORDS = 5_000
"""Per `fetch`: decoding them blocks the event loop for about 20 ms."""
CLEANUP_S = 10.0  # between checks for deleted topics
SHORTEST_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0  # after a failed fetch of a partition
TRIES = 5
"""How often a batch that cannot be decoded is fetched before it is skipped."""


@dataclass(frozen=True, slots=True)
class _Delay:
    until: float
    duration_s: float
    active: bool = True


class RetryDelays:
    """The delay of each partition; each delay is twice as long as the one before."""

    def __init__(self) -> None:
        self._delays: dict[TopicPartition, _Delay] = {}

    @property
    def partitions(self) -> Collection[TopicPartition]:
        """Return the partitions that are delayed now."""
        return [p for p, delay in self._delays.items() if delay.active]

    def is_new(self, partition: TopicPartition) -> bool:
        """Return whether the partition was not delayed before."""
        return partition not in self._delays

    def add(self, partition: TopicPartition, now: float) -> None:
        """Delay the partition from `now`, seconds, on."""
        last = self._delays.get(partition)
        duration_s = min(2 * last.duration_s, LONGEST_DELAY_S) if last else SHORTEST_DELAY_S
        self._delays[partition] = _Delay(now + duration_s, duration_s)

    def take_expired(self, now: float) -> Collection[TopicPartition]:
        """Return the partitions whose delay has ended, each once."""
        expired = [p for p, delay in self._delays.items() if delay.active and delay.until <= now]
        for partition in expired:
            delay = self._delays[partition]
            self._delays[partition] = _Delay(delay.until, delay.duration_s, active=False)
        return expired

    def forget(self, partition: TopicPartition) -> None:
        """Begin with short delays again: a fetch succeeded, or the partition is stopped."""
        self._delays.pop(partition, None)


class KafkaDataReader:
    """A `DataReader` over Kafka; an async context manager.

    Broker restarts and leader moves raise nothing. `fetch` raises when no broker has responded for
    the request timeout, and continues when called again.

    Attributes:
        undecodable: How many offsets were skipped because their batch cannot be decoded.
    """

    def __init__(self, kafka: KafkaSettings, group: str, isolation: str = "read_committed") -> None:
        self.undecodable = 0
        self._kafka = kafka
        self._cluster = ClusterClient(kafka)
        self._topics = DataTopics(self._cluster)
        self._offsets = GroupOffsets(self._cluster, group, kafka.request_timeout_s)
        self._assigned = AssignedConsumer(kafka, isolation)
        self._starts: dict[TopicPartition, object] = {}  # the latest start of each, by identity
        self._delays = RetryDelays()
        self._jumps: dict[TopicPartition, tuple[int, int]] = {}
        self._attempts: dict[TopicPartition, tuple[int, int]] = {}  # -> offset, number of fetches
        self._record_bytes = 1_000.0  # moving average
        self._silent_s, self._cleaned_up_at = 0.0, 0.0

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            BrokerUnavailable: Kafka cannot be reached; the message names what to check.
        """
        try:
            await asyncio.gather(self._cluster.__aenter__(), self._assigned.open())
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._assigned.close()
        await self._cluster.close()

    async def cluster_id(self) -> str:
        """Return the id of the Kafka cluster; raise `BrokerUnavailable`."""
        return await self._cluster.cluster_id()

    async def warm_up(self, topics: Collection[str]) -> None:
        """Connect to the leaders of topics that will be read, so that the first fetch is faster."""
        with contextlib.suppress(KafkaError, BrokerUnavailable, TimeoutError):
            async with asyncio.timeout(WARM_S):
                existing = await self._topics.found(topics)
                self._assign(self._assigned.partitions | existing)
                await self._assigned.connect()

    # --- the port --------------------------------------------------------------------------------

    async def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch from `offset` on; see `DataReader.start`. A later stop or start wins.

        Raises:
            BrokerUnavailable: The partition is not assigned yet, and Kafka does not describe it.
            TopicMissing: There is no such partition.
        """
        start = self._starts[partition] = object()
        if partition not in self._assigned.partitions:
            existing = await self._topics.existing([partition.topic])
            if partition not in existing:
                raise TopicMissing(f"no such partition: {partition}")
            if self._starts.get(partition) is not start:
                return
            if partition not in self._assigned.partitions:
                self._assign(self._assigned.partitions | existing)
        self._delays.forget(partition)
        self._assigned.start(partition, offset)

    def stop(self, partition: TopicPartition) -> None:
        """Stop fetching at once; no more of its records are returned."""
        self._starts.pop(partition, None)
        self._attempts.pop(partition, None)
        self._delays.forget(partition)
        self._assigned.stop(partition)

    async def fetch(
        self, max_bytes: int, timeout_s: float
    ) -> Mapping[TopicPartition, Sequence[Record]]:
        """Return fetched records; see `DataReader.fetch`. A cancelled call loses nothing."""
        begun, last_response_ms = loop_s(), self._assigned.last_response_ms()
        await self._maintain()
        polled: Mapping[TopicPartition, Sequence[ConsumerRecord]] = {}
        with translate_errors("fetch"):
            try:
                most = min(max(round(max_bytes / self._record_bytes), 1), MOST_RECORDS)
                polled = await self._assigned.poll(timeout_s, most)
            except OffsetOutOfRangeError as exc:
                await self._realign({TopicPartition(*p) for p in exc.args[0]})
            except TopicAuthorizationFailedError as exc:
                self._delay_refused_topic(str(exc.args[0]))
            except KafkaError:
                self._assigned.rewind()
                raise
        if (
            polled
            or not self._assigned.positions
            or self._assigned.last_response_ms() != last_response_ms
        ):
            self._silent_s = 0.0
        else:
            self._check_silence(loop_s() - begun)
        for partition in polled:
            self._delays.forget(partition)
        self._skip_undecodable()
        return {partition: self._records(records) for partition, records in polled.items()}

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return (first offset kept, end offset); see `DataReader.bounds`.

        Uses connections of its own: behind a fetch, a reply would wait until the fetch has data.
        """
        return await self._topics.bounds(partitions)

    async def partitions(self, topic: str) -> Collection[TopicPartition]:
        """Return the topic's partitions; see `DataReader.partitions`."""
        return await self._topics.existing([topic])

    async def topic_id(self, topic: str) -> str | None:
        """Return the topic's id; see `DataReader.topic_id`."""
        return await self._topics.topic_id(topic)

    async def committed(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset]:
        """Return offsets that binwright committed; raise `BrokerUnavailable`, `TopicMissing`."""
        if not partitions:
            return {}
        return await self._offsets.read(partitions, await self._topics.broker(partitions))

    async def commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Commit offsets under the group's name; raise `BrokerUnavailable`, `TopicMissing`."""
        if offsets:
            await self._offsets.write(offsets, await self._topics.broker(offsets))

    def jumps(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return jumps since the last call: partition -> (wanted offset, first offset kept).

        If the wanted offset was beyond the end, the log was truncated or recreated: the partition
        is stopped, because only a new start can determine its position.
        """
        jumps, self._jumps = self._jumps, {}
        return jumps

    # --- failures --------------------------------------------------------------------------------

    async def _maintain(self) -> None:
        """Replace a dead client, resume partitions after their delay, unassign deleted topics."""
        if self._assigned.broken:
            log.error("fetcher.died", then="a new client continues at its positions")
            await self._assigned.replace_client()
            self._assigned.pause(self._delays.partitions)
        self._assigned.resume(
            [p for p in self._delays.take_expired(loop_s()) if p in self._assigned.positions]
        )
        if loop_s() - self._cleaned_up_at > CLEANUP_S:
            self._cleaned_up_at = loop_s()
            if deleted := self._assigned.missing():
                self._assign(self._assigned.partitions - deleted)

    def _assign(self, partitions: Collection[TopicPartition]) -> None:
        self._assigned.assign(partitions)
        self._assigned.pause(self._delays.partitions)

    def _delay(self, partitions: Collection[TopicPartition]) -> None:
        """Pause started partitions for a growing delay, so that other partitions do not wait."""
        for partition in partitions:
            self._delays.add(partition, loop_s())
        self._assigned.pause(partitions)

    def _delay_refused_topic(self, topic: str) -> None:
        delayed = set(self._delays.partitions)
        partitions = [p for p in self._assigned.positions if p.topic == topic and p not in delayed]
        if any(self._delays.is_new(p) for p in partitions):
            log.error(
                "topic.refused", topic=topic, reason="this user may not read it", then="tried again"
            )
        self._delay(partitions)

    def _skip_undecodable(self) -> None:
        """Log what could not be decoded; after `TRIES` fetches of a batch, skip its offsets."""
        for partition, watch in self._assigned.decode_issues().items():
            bound = log.bind(partition=str(partition))
            for offset in watch.escaped:
                bound.warning(
                    "record.undecodable", offset=offset, what="header key", then="escaped"
                )
            watch.escaped.clear()
            fault, watch.fault = watch.fault, None
            if fault is None or fault.offset != self._assigned.positions[partition]:
                continue  # stopped, or started elsewhere since
            at, attempts = self._attempts.get(partition, (fault.offset, 0))
            attempts = attempts + 1 if at == fault.offset else 1
            self._attempts[partition] = (fault.offset, attempts)
            if attempts < TRIES:
                self._delay([partition])
                continue
            self.undecodable += fault.next - fault.offset
            bound.error(
                "record.undecodable",
                offset=fault.offset,
                offsets=fault.next - fault.offset,
                reason=fault.reason,
                then="skipped",
            )
            self._delays.forget(partition)
            self._assigned.start(partition, fault.next)

    async def _realign(self, partitions: Collection[TopicPartition]) -> None:
        """Move partitions whose position is outside the log to an offset that exists."""
        try:
            bounds = await self.bounds([p for p in partitions if p in self._assigned.positions])
        except TopicMissing as exc:
            raise BrokerUnavailable(str(exc)) from exc  # perhaps it is being recreated
        for partition, (begin, end) in bounds.items():
            wanted = self._assigned.positions.get(partition)
            if wanted is None or begin <= wanted <= end:
                continue  # stopped or restarted since, or a broker lagged
            self._jumps[partition] = (wanted, begin)
            if wanted < begin:
                self._assigned.seek(partition, begin)
            else:
                self.stop(partition)

    # --- inside ----------------------------------------------------------------------------------

    def _records(self, polled: Sequence[ConsumerRecord]) -> list[Record]:
        size = sum(len(r.key or b"") + len(r.value or b"") for r in polled) / len(polled)
        self._record_bytes += (max(size, 1.0) - self._record_bytes) / 4
        return [
            Record(r.offset, r.timestamp, r.key, r.value, r.timestamp_type, r.headers)
            for r in polled
        ]

    def _check_silence(self, waited_s: float) -> None:
        self._silent_s += waited_s
        if self._silent_s >= self._kafka.request_timeout_s:
            silent_s, self._silent_s = self._silent_s, 0.0
            raise BrokerUnavailable(f"no broker has answered a fetch for {silent_s:.0f} s")
