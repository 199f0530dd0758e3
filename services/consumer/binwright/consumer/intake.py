"""Data partitions read with aiokafka: what is returned, and what to do where something is wrong."""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Self

import structlog
from aiokafka import ConsumerRecord
from aiokafka.errors import KafkaError, OffsetOutOfRangeError, TopicAuthorizationFailedError

from binwright.consumer.assigned import Assigned
from binwright.consumer.offsets import GroupOffsets
from binwright.consumer.places import DataTopics
from binwright.consumer.resting import Resting
from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.core.ports import GroupOffset, Record
from binwright.shell.broker import Cluster, translated
from binwright.shell.settings import KafkaSettings

log = structlog.get_logger()

WARM_S = 2.0  # for connecting to leaders before there is anything to read: a help, no condition
MOST_RECORDS = 5_000
"""Of one `fetch`: about 20 ms in which the loop does nothing else."""
TIDY_S = 10.0  # from one look for topics that are gone to the next
TRIES = 5
"""How often a batch that cannot be decoded is fetched before it is passed over."""


class KafkaIntake:
    """An `Intake` over Kafka; an async context manager.

    Broker restarts and leader moves pass silently; `fetch` raises once all brokers together have
    been silent for the request timeout, and goes on when called again.

    Attributes:
        undecodable: How many offsets were passed over, because nobody can decode what is there.
    """

    def __init__(self, kafka: KafkaSettings, group: str, isolation: str = "read_committed") -> None:
        self.undecodable = 0
        self._kafka = kafka
        self._cluster = Cluster(kafka)
        self._topics = DataTopics(self._cluster)
        self._offsets = GroupOffsets(self._cluster, group, kafka.request_timeout_s)
        self._read = Assigned(kafka, isolation)
        self._orders: dict[TopicPartition, object] = {}  # the start of each that is to be obeyed
        self._resting = Resting()
        self._lost: dict[TopicPartition, tuple[int, int]] = {}
        self._tries: dict[TopicPartition, tuple[int, int]] = {}  # -> offset, how often
        self._record_bytes = 1_000.0  # of late
        self._silent_s, self._tidied_at = 0.0, 0.0

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            BrokerUnavailable: Kafka cannot be reached; says why and what to check.
        """
        try:
            await asyncio.gather(self._cluster.__aenter__(), self._read.open())
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of connections."""
        await self._read.close()
        await self._cluster.close()

    async def cluster_id(self) -> str:
        """Return what tells this Kafka cluster from all others; raise `BrokerUnavailable`."""
        return await self._cluster.cluster_id()

    async def warm_up(self, topics: Collection[str]) -> None:
        """Connect to the leaders of topics that will be read: their first fetch need not wait."""
        with contextlib.suppress(KafkaError, BrokerUnavailable, TimeoutError):
            async with asyncio.timeout(WARM_S):
                there = await self._topics.found(topics)
                self._assign(self._read.partitions | there)
                await self._read.connect()

    # --- the port --------------------------------------------------------------------------------

    async def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch from `offset` on; see `Intake.start`. A stop that comes meanwhile wins.

        Raises:
            BrokerUnavailable: It is new to us, and Kafka does not say what there is.
            TopicMissing: There is no such partition.
        """
        order = self._orders[partition] = object()
        if partition not in self._read.partitions:
            existing = await self._topics.existing([partition.topic])
            if partition not in existing:
                raise TopicMissing(f"no such partition: {partition}")
            if self._orders.get(partition) is not order:
                return
            if partition not in self._read.partitions:
                self._assign(self._read.partitions | existing)
        self._resting.forget(partition)
        self._read.start(partition, offset)

    def stop(self, partition: TopicPartition) -> None:
        """Stop fetching at once; nothing of it is returned any more."""
        self._orders.pop(partition, None)
        self._tries.pop(partition, None)
        self._resting.forget(partition)
        self._read.stop(partition)

    async def fetch(
        self, max_bytes: int, timeout_s: float
    ) -> Mapping[TopicPartition, Sequence[Record]]:
        """Return what came; see `Intake.fetch`. Cancel it at any time: nothing is lost by that."""
        begun, answered = self._now(), self._read.answered()
        await self._look_after()
        came: Mapping[TopicPartition, Sequence[ConsumerRecord]] = {}
        with translated("fetch"):
            try:
                most = min(max(round(max_bytes / self._record_bytes), 1), MOST_RECORDS)
                came = await self._read.records(timeout_s, most)
            except OffsetOutOfRangeError as exc:
                await self._realign({TopicPartition(*theirs) for theirs in exc.args[0]})
            except TopicAuthorizationFailedError as exc:
                self._rest_topic(str(exc.args[0]))
            except KafkaError:
                self._read.rewind()
                raise
        if came or not self._read.next or self._read.answered() != answered:
            self._silent_s = 0.0
        else:
            self._complain(self._now() - begun)
        for partition in came:
            self._resting.forget(partition)
        self._pass_over()
        return {partition: self._taken(records) for partition, records in came.items()}

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return (first offset kept, end offset); see `Intake.bounds`.

        Asked on connections of their own: behind a fetch an answer waits until that has data.
        """
        return await self._topics.bounds(partitions)

    async def partitions(self, topic: str) -> Collection[TopicPartition]:
        """Return what partitions the topic has; see `Intake.partitions`."""
        return await self._topics.existing([topic])

    async def topic_id(self, topic: str) -> str | None:
        """Return which topic of this name it is; see `Intake.topic_id`."""
        return await self._topics.topic_id(topic)

    async def committed(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, GroupOffset]:
        """Return our own among the group's offsets; raise `BrokerUnavailable`, `TopicMissing`."""
        if not partitions:
            return {}
        return await self._offsets.read(partitions, await self._topics.broker(partitions))

    async def commit(self, offsets: Mapping[TopicPartition, GroupOffset]) -> None:
        """Commit offsets under the group's name; raise `BrokerUnavailable`, `TopicMissing`."""
        if offsets:
            await self._offsets.write(offsets, await self._topics.broker(offsets))

    def lost(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return jumps since the last call: partition -> (wanted, first offset there was).

        Where more was wanted than there was, the log was cut, or made anew: the partition is
        stopped, because only a new start can tell where to go on.
        """
        lost, self._lost = self._lost, {}
        return lost

    # --- where something is wrong ----------------------------------------------------------------

    async def _look_after(self) -> None:
        """Replace a client that fetches nothing any more, wake who rests, drop topics gone."""
        if self._read.broken:
            log.error("fetcher.died", then="another client goes on where it was")
            await self._read.renew()
            self._read.pause(self._resting.partitions)
        self._read.resume([p for p in self._resting.over(self._now()) if p in self._read.next])
        if self._now() - self._tidied_at > TIDY_S:
            self._tidied_at = self._now()
            if gone := self._read.missing():
                self._assign(self._read.partitions - gone)

    def _assign(self, partitions: Collection[TopicPartition]) -> None:
        self._read.assign(partitions)
        self._read.pause(self._resting.partitions)

    def _rest(self, partitions: Collection[TopicPartition]) -> None:
        """Leave started partitions alone for a while that grows: others must not wait for them."""
        for partition in partitions:
            self._resting.add(partition, self._now())
        self._read.pause(partitions)

    def _rest_topic(self, topic: str) -> None:
        resting = set(self._resting.partitions)
        concerned = [p for p in self._read.next if p.topic == topic and p not in resting]
        if any(self._resting.new(p) for p in concerned):
            log.error("topic.refused", topic=topic, reason="we may not read it", then="tried again")
        self._rest(concerned)

    def _pass_over(self) -> None:
        """Report what could not be decoded; go past a batch that stays so, and its offsets only."""
        for partition, watch in self._read.faults().items():
            told = log.bind(partition=str(partition))
            for offset in watch.escaped:
                told.warning("record.undecodable", offset=offset, what="header key", then="escaped")
            watch.escaped.clear()
            fault, watch.fault = watch.fault, None
            if fault is None or fault.offset != self._read.next[partition]:
                continue  # it was stopped, or started elsewhere meanwhile
            at, tries = self._tries.get(partition, (fault.offset, 0))
            tries = tries + 1 if at == fault.offset else 1
            self._tries[partition] = (fault.offset, tries)
            if tries < TRIES:
                self._rest([partition])
                continue
            self.undecodable += fault.next - fault.offset
            told.error(
                "record.undecodable",
                offset=fault.offset,
                offsets=fault.next - fault.offset,
                reason=fault.reason,
                then="passed over",
            )
            self._resting.forget(partition)
            self._read.start(partition, fault.next)

    async def _realign(self, partitions: Collection[TopicPartition]) -> None:
        """Go on where there is something: our place is outside of the log."""
        try:
            bounds = await self.bounds([p for p in partitions if p in self._read.next])
        except TopicMissing as exc:
            raise BrokerUnavailable(str(exc)) from exc  # being made anew, perhaps
        for partition, (begin, end) in bounds.items():
            wanted = self._read.next.get(partition)
            if wanted is None or begin <= wanted <= end:
                continue  # stopped meanwhile, or started anew, or a broker that lagged behind
            self._lost[partition] = (wanted, begin)
            if wanted < begin:
                self._read.seek(partition, begin)
            else:
                self.stop(partition)

    # --- inside ----------------------------------------------------------------------------------

    def _taken(self, came: Sequence[ConsumerRecord]) -> list[Record]:
        size = sum(len(r.key or b"") + len(r.value or b"") for r in came) / len(came)
        self._record_bytes += (max(size, 1.0) - self._record_bytes) / 4
        return [
            Record(r.offset, r.timestamp, r.key, r.value, r.timestamp_type, r.headers) for r in came
        ]

    def _complain(self, waited_s: float) -> None:
        self._silent_s += waited_s
        if self._silent_s >= self._kafka.request_timeout_s:
            silent_s, self._silent_s = self._silent_s, 0.0
            raise BrokerUnavailable(f"no broker has answered a fetch for {silent_s:.0f} s")

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
