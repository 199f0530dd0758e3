"""Queries about data topics: partitions, leaders, topic ids, first and end offsets."""

import asyncio
from collections.abc import Collection, Coroutine, Iterable, Mapping
from itertools import chain
from typing import Any, TypeVar

from binwright.kafka.client import EARLIEST, LATEST, NO_LEADER, ClusterClient
from binwright.kafka.leaders import Leaders, by_leader
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import TopicState

K = TypeVar("K")
T = TypeVar("T")

NO_OFFSET = -1  # of a log that has no record of a time or later
REPLY_S = 2.5
"""How long one of the brokers that are asked about many topics may take, once another replied."""


class DataTopics:
    """Queries about topics. All raise `BrokerUnavailable`, and `TopicMissing` with the names."""

    def __init__(self, cluster: ClusterClient, *, stable: bool = False) -> None:
        """Ask the cluster; `stable`: only records before open transactions are read."""
        self._cluster, self._stable = cluster, stable

    async def states(self, topics: Collection[str]) -> dict[str, TopicState | None]:
        """Return what is known of these topics: one request for all, and four for each leader.

        None is known of a topic that is not described, that has no leader, or that is recreated
        meanwhile; one that is left out does not exist.

        Raises:
            BrokerUnavailable: No broker answers.
        """
        metadata = await self._cluster.topics(topics)
        leaders = metadata.leaders
        ids = await self._ids(leaders)
        led = by_leader(leaders, {TopicPartition(t, n) for t in ids for n in leaders[t]})
        begins_and_ends, readable = await asyncio.gather(
            _united(self._bounds(*each) for each in led.items()),
            _united(self._ends(*each) for each in led.items() if self._stable),
        )
        ids_after = await self._ids({topic: leaders[topic] for topic in ids})
        states: dict[str, TopicState | None] = dict.fromkeys({*metadata.errors, *leaders})
        for topic, topic_id in ids.items():
            if topic not in ids_after or ids_after[topic] != topic_id:
                continue
            every = [TopicPartition(topic, number) for number in leaders[topic]]
            bounds = {p: begins_and_ends[p] for p in every if p in begins_and_ends}
            states[topic] = TopicState(
                topic_id,
                bounds,
                {p: readable[p] for p in bounds if p in readable},
                frozenset(every) - bounds.keys(),
            )
        return states

    async def _ids(self, leaders: Leaders) -> dict[str, str | None]:
        """Return the ids of topics on which those of their leaders agree that answer."""
        led: dict[int, set[str]] = {}
        for topic, numbers in leaders.items():
            for broker in {*numbers.values()} - {NO_LEADER}:
                led.setdefault(broker, set()).add(topic)
        replies = await _replies(
            self._cluster.topic_ids(topics, broker) for broker, topics in led.items()
        )
        ids_of: dict[str, set[str | None]] = {}
        for reply in replies:
            for topic, topic_id in reply.items():
                ids_of.setdefault(topic, set()).add(topic_id)
        return {topic: next(iter(ids)) for topic, ids in ids_of.items() if len(ids) == 1}

    async def existing(self, topics: Collection[str]) -> set[TopicPartition]:
        """Return all partitions of these topics."""
        leaders = await self._leaders(topics)
        return {TopicPartition(t, number) for t, numbers in leaders.items() for number in numbers}

    async def partitions(self, topics: Collection[str]) -> set[TopicPartition]:
        """Return the partitions of those of these topics that exist and that this user may see."""
        leaders = (await self._cluster.topics(topics)).leaders
        return {TopicPartition(t, number) for t, numbers in leaders.items() for number in numbers}

    async def topic_id(self, topic: str) -> str | None:
        """Return the topic's id, as the leaders of its partitions know it.

        Another broker may lag: it may return the id of a deleted topic while a leader serves the
        records of its successor.
        """
        leaders = (await self._leaders([topic]))[topic]
        alive = sorted(set(leaders.values()) - {NO_LEADER})
        if not alive:
            raise BrokerUnavailable(f"no partition of topic {topic} has a leader")
        ids = await asyncio.gather(*(self._cluster.topic_id(topic, broker) for broker in alive))
        if len(set(ids)) > 1:
            raise BrokerUnavailable(f"leaders do not agree on the id of topic {topic}: {set(ids)}")
        return ids[0]

    async def broker(self, partitions: Collection[TopicPartition]) -> int:
        """Return a leader of some partition of these topics, the one with the lowest id."""
        leaders = await self._leaders({p.topic for p in partitions})
        alive = {leader for some in leaders.values() for leader in some.values()} - {NO_LEADER}
        if not alive:
            raise BrokerUnavailable("no partition of these topics has a leader")
        return min(alive)

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return (first offset kept, end offset) of the partitions whose leader answers."""
        leaders = await self._leaders({p.topic for p in partitions})
        if missing := [p for p in partitions if p.partition not in leaders[p.topic]]:
            raise TopicMissing(f"no such partitions: {_joined(missing)}")
        led = by_leader(leaders, set(partitions))
        replies = await asyncio.gather(
            *(self._bounds(broker, topics) for broker, topics in led.items()),
            return_exceptions=True,
        )
        known: dict[TopicPartition, tuple[int, int]] = {}
        unavailable: BrokerUnavailable | None = None
        for reply in replies:
            if isinstance(reply, BrokerUnavailable):
                unavailable = reply
            elif isinstance(reply, BaseException):
                raise reply
            else:
                known |= reply
        if unavailable and not known:
            raise unavailable
        return known

    async def offsets_at(
        self, partitions: Collection[TopicPartition], at_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the first offsets of this time or later; see `DataReader.offsets_at`."""
        led = by_leader(await self._leaders({p.topic for p in partitions}), set(partitions))
        answers = await asyncio.gather(
            *(self._cluster.offsets(broker, topics, at_ms) for broker, topics in led.items())
        )
        known = dict(chain.from_iterable(each.items() for each in answers))
        offsets = {TopicPartition(*p): offset for p, offset in known.items()}
        if missing := [p for p in partitions if p not in offsets]:
            raise BrokerUnavailable(f"Kafka gives no offset of a time of {_joined(missing)}")
        return {p: offset for p, offset in offsets.items() if offset != NO_OFFSET}

    async def _bounds(
        self, broker: int, topics: Mapping[str, Collection[int]]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return the bounds of those of these partitions that this broker leads."""
        begins, ends = await asyncio.gather(
            self._cluster.offsets(broker, topics, EARLIEST),
            self._cluster.offsets(broker, topics, LATEST),
        )
        return {TopicPartition(*p): (begins[p], ends[p]) for p in begins.keys() & ends.keys()}

    async def _ends(
        self, broker: int, topics: Mapping[str, Collection[int]]
    ) -> dict[TopicPartition, int]:
        """Return up to where those of these partitions that this broker leads can be read."""
        ends = await self._cluster.offsets(broker, topics, LATEST, stable=True)
        return {TopicPartition(*p): end for p, end in ends.items()}

    async def _leaders(self, topics: Collection[str]) -> Leaders:
        metadata = await self._cluster.topics(topics)
        if metadata.errors:
            raise BrokerUnavailable(f"Kafka does not describe some topics: {metadata.errors}")
        if missing := sorted(set(topics) - set(metadata.leaders)):
            raise TopicMissing(f"no such topics: {', '.join(missing)}")
        return metadata.leaders


async def _replies(asked: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return what the brokers reply that are available: one that hangs delays no other for long.

    If all are slow the first reply is waited for: the caller limits that.
    """
    tasks = [asyncio.create_task(each) for each in asked]
    if not tasks:
        return []
    try:
        done, _ = await asyncio.wait(tasks, timeout=REPLY_S)
        if not done:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
    replies = []
    for task in tasks:
        if task in done:
            try:
                replies.append(task.result())
            except BrokerUnavailable:
                continue
    return replies


async def _united(asked: Iterable[Coroutine[Any, Any, Mapping[K, T]]]) -> dict[K, T]:
    return dict(chain.from_iterable(each.items() for each in await _replies(asked)))


def _joined(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
