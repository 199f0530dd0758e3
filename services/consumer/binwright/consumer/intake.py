"""Data partitions read with aiokafka: assigned by hand, all of them, and paused unless started.

`assign` with a changed list throws away everybody's buffers and requests under way. So the list is
changed only when the topics grow; starting is to seek and resume, stopping is to pause.
"""

import asyncio
import contextlib
from collections.abc import Collection, Mapping, Sequence
from typing import Self

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRecord
from aiokafka import TopicPartition as Theirs
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from binwright.consumer.hints import GroupHints
from binwright.consumer.places import DataTopics
from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.core.ports import Hint, Record
from binwright.shell.broker import (
    Cluster,
    client_options,
    stop_client,
    translated,
    unreachable,
)
from binwright.shell.settings import KafkaSettings

log = structlog.get_logger()

FETCH_BYTES = 8 << 20  # of one answer of one broker, compressed: larger ones are no faster
PARTITION_BYTES = 1 << 20
FETCH_WAIT_MS = 100
"""A partition is fetched, once started, when its broker has answered the fetch under way."""
WARM_S = 2.0  # for connecting to leaders before there is anything to read: a help, no condition
MOST_RECORDS = 5_000
"""Of one `fetch`: about 20 ms in which the loop does nothing else."""


class KafkaIntake:
    """An `Intake` over Kafka; an async context manager.

    Broker restarts and leader moves pass silently; `fetch` raises once all brokers together have
    been silent for the request timeout, and goes on when called again.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        group: str,
        topics: Sequence[str],
        isolation: str = "read_committed",
    ) -> None:
        self._kafka, self._names = kafka, topics
        self._cluster = Cluster(kafka)
        self._topics = DataTopics(self._cluster)
        self._hints = GroupHints(self._cluster, group, kafka.request_timeout_s)
        self._consumer = AIOKafkaConsumer(
            **client_options(kafka),
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level=isolation,
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=PARTITION_BYTES,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        self._assigned: set[TopicPartition] = set()
        self._next: dict[TopicPartition, int] = {}  # started -> what to return next
        self._lost: dict[TopicPartition, tuple[int, int]] = {}
        self._record_bytes = 1_000.0  # of late
        self._silent_s = 0.0

    async def __aenter__(self) -> Self:
        """Connect, and learn the topics' partitions.

        Raises:
            BrokerUnavailable: Kafka cannot be reached; says why and what to check.
            TopicMissing: Some of the topics do not exist; names them.
        """
        try:
            await self._cluster.__aenter__()
            await self._start_consumer()
            self._assign(await self._topics.existing(self._names))
            await self._warm_up()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Let go of connections."""
        await stop_client(self._consumer)
        await self._cluster.close()

    async def start(self, partition: TopicPartition, offset: int) -> None:
        """Fetch from `offset` on; see `Intake.start`.

        Raises:
            BrokerUnavailable: It is new to us, and Kafka does not say what there is.
            TopicMissing: There is no such partition.
        """
        if partition not in self._assigned:
            existing = await self._topics.existing([partition.topic])
            if partition not in existing:
                raise TopicMissing(f"no such partition: {partition}")
            self._assign(self._assigned | existing)
        self._go(partition, offset)
        self._consumer.resume(_theirs(partition))

    def stop(self, partition: TopicPartition) -> None:
        """Quit fetching at once; nothing of it is returned any more."""
        if self._next.pop(partition, None) is not None:
            self._consumer.pause(_theirs(partition))

    async def fetch(
        self, max_bytes: int, timeout_s: float
    ) -> Mapping[TopicPartition, Sequence[Record]]:
        """Return what came; see `Intake.fetch`. Cancel it at any time: nothing is lost by that."""
        loop = asyncio.get_running_loop()
        begun, answered = loop.time(), self._answered()
        came: dict[Theirs, list[ConsumerRecord]] = {}
        with translated("fetch"):
            try:
                # Nothing may wait between the taking of records and their return: a caller that
                # is cancelled there would lose them.
                came = await self._consumer.getmany(
                    timeout_ms=max(round(timeout_s * 1000), 1),
                    max_records=min(max(round(max_bytes / self._record_bytes), 1), MOST_RECORDS),
                )
            except OffsetOutOfRangeError as exc:
                await self._realign({_ours(theirs) for theirs in exc.args[0]})
            except KafkaError:
                self._rewind()
                raise
        if came or not self._next or self._answered() != answered:
            self._silent_s = 0.0
        else:
            self._complain(loop.time() - begun)
        return {_ours(theirs): self._taken(_ours(theirs), some) for theirs, some in came.items()}

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return (first offset kept, end offset); see `Intake.bounds`.

        Asked on connections of their own: behind a fetch an answer waits until that has data.
        """
        return await self._topics.bounds(partitions)

    async def topic_id(self, topic: str) -> str | None:
        """Return which topic of this name it is; see `Intake.topic_id`."""
        return await self._cluster.topic_id(topic)

    async def hints(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Hint]:
        """Return the readable hints among the group's offsets; raise `BrokerUnavailable`."""
        if not partitions:
            return {}
        return await self._hints.read(partitions, await self._topics.broker(partitions))

    async def hint(self, hints: Mapping[TopicPartition, Hint]) -> None:
        """Commit offsets under the group's name; raise `BrokerUnavailable`."""
        if hints:
            await self._hints.write(hints, await self._topics.broker(hints))

    def lost(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Return holes met since the last call: partition -> (wanted, first offset there was).

        Where more was wanted than there was, the log was cut, or made anew: the partition is
        stopped, because only a new start can tell where to go on.
        """
        lost, self._lost = self._lost, {}
        return lost

    # --- what is assigned, and where we are in it ------------------------------------------------

    async def _start_consumer(self) -> None:
        try:
            await self._consumer.start()
        except (KafkaError, OSError) as exc:
            raise await unreachable(self._kafka, exc) from exc

    async def _warm_up(self) -> None:
        """Connect to every leader: the first partition that we are given shall not wait for it."""
        with contextlib.suppress(KafkaError, TimeoutError):
            async with asyncio.timeout(WARM_S):
                await self._consumer.end_offsets([_theirs(p) for p in self._assigned])

    def _assign(self, partitions: set[TopicPartition]) -> None:
        """Assign these, each at its place; what is not started needs a place, too."""
        self._assigned = partitions
        self._consumer.assign([_theirs(p) for p in sorted(partitions)])
        self._consumer.pause(*[_theirs(p) for p in partitions if p not in self._next])
        for partition in partitions:
            self._consumer.seek(_theirs(partition), self._next.get(partition, 0))

    def _go(self, partition: TopicPartition, offset: int) -> None:
        self._next[partition] = offset
        self._consumer.seek(_theirs(partition), offset)

    def _taken(self, partition: TopicPartition, came: Sequence[ConsumerRecord]) -> list[Record]:
        self._next[partition] = came[-1].offset + 1
        size = sum(len(r.key or b"") + len(r.value or b"") for r in came) / len(came)
        self._record_bytes += (max(size, 1.0) - self._record_bytes) / 4
        return [
            Record(r.offset, r.timestamp, r.key, r.value, r.timestamp_type, r.headers) for r in came
        ]

    def _rewind(self) -> None:
        """Go back to what was returned last: an error may have swallowed what came with it."""
        for partition, offset in self._next.items():
            self._go(partition, offset)

    async def _realign(self, partitions: Collection[TopicPartition]) -> None:
        """Go on where there is something: our place is outside of the log."""
        try:
            bounds = await self.bounds([p for p in partitions if p in self._next])
        except TopicMissing as exc:
            raise BrokerUnavailable(str(exc)) from exc  # being made anew, perhaps
        for partition, (begin, end) in bounds.items():
            wanted = self._next.get(partition)
            if wanted is None or begin <= wanted <= end:
                continue  # stopped meanwhile, or started anew, or a broker that lagged behind
            self._lost[partition] = (wanted, begin)
            told = log.bind(partition=str(partition), wanted=wanted, begin=begin, end=end)
            if wanted < begin:
                told.error("partition.overtaken", by="retention", records=begin - wanted)
                self._go(partition, begin)
            else:
                told.error("partition.cut", then="stopped, until started anew")
                self.stop(partition)

    # --- whether anybody is there ----------------------------------------------------------------

    def _answered(self) -> int:
        """Return when a broker last answered a fetch, ms: they do several times a second."""
        polls = (self._consumer.last_poll_timestamp(_theirs(p)) for p in self._next)
        return max((when for when in polls if when is not None), default=0)

    def _complain(self, waited_s: float) -> None:
        self._silent_s += waited_s
        if self._silent_s >= self._kafka.request_timeout_s:
            silent_s, self._silent_s = self._silent_s, 0.0
            raise BrokerUnavailable(f"no broker has answered a fetch for {silent_s:.0f} s")


def _theirs(partition: TopicPartition) -> Theirs:
    return Theirs(*partition)


def _ours(theirs: Theirs) -> TopicPartition:
    return TopicPartition(theirs.topic, theirs.partition)
