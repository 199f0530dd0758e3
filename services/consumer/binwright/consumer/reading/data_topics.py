"""Queries about data topics: partitions, leaders, topic ids, first and end offsets."""

import asyncio
from collections.abc import Collection, Mapping

from binwright.kafka.client import EARLIEST, LATEST, NO_LEADER, ClusterClient
from binwright.kafka.leaders import Leaders, by_leader
from binwright.protocol.errors import BrokerUnavailable, TopicMissing
from binwright.protocol.model import TopicPartition


class DataTopics:
    """Queries about topics. All raise `BrokerUnavailable`, and `TopicMissing` with the names."""

    def __init__(self, cluster: ClusterClient) -> None:
        self._cluster = cluster

    async def existing(self, topics: Collection[str]) -> set[TopicPartition]:
        """Return all partitions of these topics."""
        leaders = await self._leaders(topics)
        return {TopicPartition(t, number) for t, numbers in leaders.items() for number in numbers}

    async def found(self, topics: Collection[str]) -> set[TopicPartition]:
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
        found = await asyncio.gather(
            *(self._bounds(broker, topics) for broker, topics in led.items()),
            return_exceptions=True,
        )
        known: dict[TopicPartition, tuple[int, int]] = {}
        unavailable: BrokerUnavailable | None = None
        for reply in found:
            if isinstance(reply, BrokerUnavailable):
                unavailable = reply
            elif isinstance(reply, BaseException):
                raise reply
            else:
                known |= reply
        if unavailable and not known:
            raise unavailable
        return known

    async def _bounds(
        self, broker: int, topics: Mapping[str, Collection[int]]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return the bounds of those of these partitions that this broker leads."""
        begins, ends = await asyncio.gather(
            self._cluster.offsets(broker, topics, EARLIEST),
            self._cluster.offsets(broker, topics, LATEST),
        )
        return {TopicPartition(*p): (begins[p], ends[p]) for p in begins.keys() & ends.keys()}

    async def _leaders(self, topics: Collection[str]) -> Leaders:
        metadata = await self._cluster.topics(topics)
        if metadata.errors:
            raise BrokerUnavailable(f"Kafka does not describe some topics: {metadata.errors}")
        if missing := sorted(set(topics) - set(metadata.leaders)):
            raise TopicMissing(f"no such topics: {', '.join(missing)}")
        return metadata.leaders


def _joined(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
