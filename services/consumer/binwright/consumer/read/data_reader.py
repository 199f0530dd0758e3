"""Reads data partitions with aiokafka, and handles its failures: a `DataReader`."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from aiokafka.errors import KafkaError, OffsetOutOfRangeError, TopicAuthorizationFailedError

from binwright.consumer.read.aiokafka_consumer import AssignedConsumer
from binwright.consumer.read.data_topics import DataTopics
from binwright.consumer.read.group_offsets import GroupOffsets
from binwright.consumer.read.retry_delays import RetryDelays
from binwright.kafka.batches import INFLATED_BYTES, LARGE_BYTES, Limits
from binwright.kafka.client import ClusterClient, translate_errors
from binwright.kafka.decoding import DecodeFault
from binwright.kafka.readers import FETCHER_DIED
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.log_events import LogEvent
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import (
    GroupOffset,
    ReadProgress,
    Records,
    TopicState,
    UndecodableBatch,
)
from binwright.runtime.clock import loop_s
from binwright.runtime.logs import log
from binwright.runtime.settings.kafka import KafkaSettings

TOPIC_REFUSED = LogEvent.error("topic.refused", "The consumer has no right to read a topic.")
RECORD_UNDECODABLE = LogEvent.warning(
    "record.undecodable", "A header key of a record is not UTF-8; it is escaped."
)
BATCH_UNDECODABLE = LogEvent.error(
    "batch.undecodable", "A batch cannot be decoded: its partition stands, it is fetched again."
)

WARM_S = 2.0  # to connect to leaders in advance; optional, so it is short
MOST_RECORDS = 5_000
"""Per `fetch`: decoding them blocks the event loop for about 20 ms."""
CLEANUP_S = 10.0  # between checks for deleted topics
GIVE_UP_S = 300.0
"""How long a batch that cannot be decoded is fetched again: another replica may have it intact."""


@dataclass(frozen=True, slots=True)
class _Fault:
    offset: int
    reason: str
    since: float


class KafkaDataReader:
    """A `DataReader` over Kafka; an async context manager.

    Broker restarts and leader moves raise nothing. `fetch` raises when no broker has responded for
    the request timeout, and continues when called again.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        group: str,
        isolation: str = "read_committed",
        inflated_bytes: int = INFLATED_BYTES,
        zone: str | None = None,
        *,
        large_bytes: int = LARGE_BYTES,
    ) -> None:
        """Read with the group's name.

        Args:
            kafka: How to connect.
            group: Whose offsets are read and committed.
            isolation: Kafka's `isolation.level`.
            inflated_bytes: Limit of a compressed batch's inflated size.
            zone: Where this process runs: it reads from a replica there, if brokers allow that.
            large_bytes: Inflated size above which a batch is only decoded after `allow_large`.
        """
        self._kafka = kafka
        self._cluster = ClusterClient(kafka)
        self._topics = DataTopics(self._cluster, stable=isolation == "read_committed")
        self._offsets = GroupOffsets(self._cluster, group, kafka.request_timeout_s)
        self._assigned = AssignedConsumer(
            kafka, isolation, Limits(inflated_bytes, large_bytes), zone
        )
        self._starts: dict[TopicPartition, object] = {}  # the latest start of each, by identity
        self._delays = RetryDelays()
        self._jumps: dict[TopicPartition, tuple[int, int]] = {}
        self._faults: dict[TopicPartition, _Fault] = {}
        self._given_up: dict[TopicPartition, UndecodableBatch] = {}
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
                existing = await self._topics.partitions(topics)
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
        self._faults.pop(partition, None)
        self._assigned.start(partition, offset)

    def stop(self, partition: TopicPartition) -> None:
        """Stop fetching at once; no more of its records are returned."""
        self._starts.pop(partition, None)
        self._faults.pop(partition, None)
        self._given_up.pop(partition, None)
        self._delays.forget(partition)
        self._assigned.stop(partition)

    async def fetch(self, max_bytes: int, timeout_s: float) -> Mapping[TopicPartition, Records]:
        """Return fetched records; see `DataReader.fetch`. A cancelled call loses nothing."""
        begun, last_response_ms = loop_s(), self._assigned.last_response_ms()
        await self._maintain()
        polled: Mapping[TopicPartition, Records] = {}
        with translate_errors("fetch"):
            try:
                polled = await self._assigned.poll(timeout_s, max_bytes, MOST_RECORDS)
            except OffsetOutOfRangeError as exc:
                await self._realign({TopicPartition(*p) for p in exc.args[0]})
            except TopicAuthorizationFailedError as exc:
                self._delay_refused_topic(str(exc.args[0]))
            except KafkaError:
                self._assigned.rewind()
                raise
        if (
            polled
            or self._assigned.positions.keys() <= set(self._delays.partitions)
            or self._assigned.last_response_ms() != last_response_ms
        ):
            self._silent_s = 0.0
        else:
            self._check_silence(loop_s() - begun)
        for partition in polled:
            self._delays.forget(partition)
            self._faults.pop(partition, None)
        self._handle_undecodable()
        return polled

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return first and end offsets; see `DataReader.bounds`.

        Uses connections of its own: behind a fetch, a reply would wait until the fetch has data.
        """
        return await self._topics.bounds(partitions)

    async def offsets_at(
        self, partitions: Collection[TopicPartition], at_ms: int
    ) -> Mapping[TopicPartition, int]:
        """Return the first offsets of a time or later; see `DataReader.offsets_at`."""
        return await self._topics.offsets_at(partitions, at_ms)

    async def topic_states(self, topics: Collection[str]) -> Mapping[str, TopicState | None]:
        """Return what Kafka has of these topics; see `DataReader.topic_states`."""
        return await self._topics.states(topics)

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

    def progress(self) -> ReadProgress:
        """Return what was read so far; see `DataReader.progress`."""
        return ReadProgress(self._assigned.stored_bytes, self._assigned.offsets())

    def passed(self) -> Mapping[TopicPartition, int]:
        """Return positions behind offsets without a record; see `DataReader.passed`."""
        return self._assigned.take_passed()

    def undecodable(self) -> Mapping[TopicPartition, UndecodableBatch]:
        """Return batches that were given up; see `DataReader.undecodable`."""
        given_up, self._given_up = self._given_up, {}
        return given_up

    def allow_large(self, partition: TopicPartition, before: int) -> None:
        """Decode large batches before this offset; see `DataReader.allow_large`."""
        self._assigned.allow_large(partition, before)

    def stuck(self) -> Mapping[TopicPartition, str]:
        """Return partitions that do not get on; see `DataReader.stuck`."""
        positions = self._assigned.positions
        return {
            p: fault.reason for p, fault in self._faults.items() if positions.get(p) == fault.offset
        }

    # --- failures --------------------------------------------------------------------------------

    async def _maintain(self) -> None:
        """Replace a dead client, resume partitions after their delay, unassign deleted topics."""
        if self._assigned.broken:
            log(FETCHER_DIED, then="a new client continues at its positions")
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
            log(TOPIC_REFUSED, topic=topic, reason="this user may not read it", then="tried again")
        self._delay(partitions)

    def _handle_undecodable(self) -> None:
        """Fetch what could not be decoded again, later and later; in the end give it up."""
        for partition, watched in self._assigned.decode_issues().items():
            name = str(partition)
            for offset in watched.escaped:
                log(
                    RECORD_UNDECODABLE,
                    partition=name,
                    offset=offset,
                    what="header key",
                    then="escaped",
                )
            watched.escaped.clear()
            fault, watched.fault = watched.fault, None
            if fault is None or fault.offset != self._assigned.positions[partition]:
                continue  # stopped, or started elsewhere since
            if fault.large:
                self._give_up(partition, fault)
                continue
            before = self._faults.get(partition)
            if before is None or before.offset != fault.offset:
                log(
                    BATCH_UNDECODABLE,
                    partition=name,
                    offset=fault.offset,
                    next=fault.next,
                    reason=fault.reason,
                    then=f"fetched again for {GIVE_UP_S:.0f} s; other partitions are read",
                )
                self._faults[partition] = _Fault(fault.offset, fault.reason, loop_s())
            elif loop_s() - before.since >= GIVE_UP_S and not fault.out_of_memory:
                self._give_up(partition, fault)
                continue
            self._delay([partition])

    def _give_up(self, partition: TopicPartition, fault: DecodeFault) -> None:
        self.stop(partition)
        self._given_up[partition] = UndecodableBatch(
            fault.offset, fault.next, fault.reason, fault.stored, fault.large
        )

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

    def _check_silence(self, waited_s: float) -> None:
        self._silent_s += waited_s
        if self._silent_s >= self._kafka.request_timeout_s:
            silent_s, self._silent_s = self._silent_s, 0.0
            raise BrokerUnavailable(f"no broker has answered a fetch for {silent_s:.0f} s")
