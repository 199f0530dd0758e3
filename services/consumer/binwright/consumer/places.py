"""What there is of the data topics: partitions, who leads them, where their logs begin and end."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping

from binwright.core.errors import BrokerUnavailable, TopicMissing
from binwright.core.model import TopicPartition
from binwright.shell.broker import EARLIEST, LATEST, NOBODY, Cluster

Led = Mapping[int, Mapping[str, Collection[int]]]
"""Partitions by the broker that leads them, and topic."""


class DataTopics:
    """Questions about topics. All raise `BrokerUnavailable`, and `TopicMissing` with the names."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def existing(self, topics: Collection[str]) -> set[TopicPartition]:
        """Return all partitions of these topics."""
        leaders = await self._leaders(topics)
        return {TopicPartition(t, number) for t, numbers in leaders.items() for number in numbers}

    async def found(self, topics: Collection[str]) -> set[TopicPartition]:
        """Return the partitions of those of these topics that there are, and that we may know."""
        leaders = (await self._cluster.topics(topics)).leaders
        return {TopicPartition(t, number) for t, numbers in leaders.items() for number in numbers}

    async def topic_id(self, topic: str) -> str | None:
        """Return the topic's id, as the leaders of its partitions know it.

        Another broker may lag behind, and tell the id of a topic that is no more while a leader
        serves records of the one that was made after it.
        """
        leaders = (await self._leaders([topic]))[topic]
        alive = sorted(set(leaders.values()) - {NOBODY})
        if not alive:
            raise BrokerUnavailable(f"no partition of topic {topic} has a leader")
        told = await asyncio.gather(*(self._cluster.topic_id(topic, broker) for broker in alive))
        if len(set(told)) > 1:
            raise BrokerUnavailable(f"leaders do not agree which topic {topic} is: {set(told)}")
        return told[0]

    async def broker(self, partitions: Collection[TopicPartition]) -> int:
        """Return a broker that leads some partition of these topics, always the same one."""
        leaders = await self._leaders({p.topic for p in partitions})
        alive = {leader for some in leaders.values() for leader in some.values()} - {NOBODY}
        if not alive:
            raise BrokerUnavailable("no partition of these topics has a leader")
        return min(alive)

    async def bounds(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, tuple[int, int]]:
        """Return (first offset kept, end offset) of each."""
        led = await self._led(partitions)
        begins, ends = await asyncio.gather(self._edges(led, EARLIEST), self._edges(led, LATEST))
        if moved := [p for p in partitions if p not in begins or p not in ends]:
            raise BrokerUnavailable(f"another broker leads now: {_named(moved)}")
        return {p: (begins[p], ends[p]) for p in partitions}

    async def _edges(self, led: Led, when: int) -> dict[TopicPartition, int]:
        asked = [self._cluster.offsets(broker, topics, when) for broker, topics in led.items()]
        told = await asyncio.gather(*asked)
        return {TopicPartition(*where): offset for part in told for where, offset in part.items()}

    async def _led(self, partitions: Collection[TopicPartition]) -> Led:
        leaders = await self._leaders({p.topic for p in partitions})
        if missing := [p for p in partitions if p.partition not in leaders[p.topic]]:
            raise TopicMissing(f"no such partitions: {_named(missing)}")
        if unled := [p for p in partitions if leaders[p.topic][p.partition] == NOBODY]:
            raise BrokerUnavailable(f"no broker leads {_named(unled)}")
        led: defaultdict[int, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for topic, number in partitions:
            led[leaders[topic][number]][topic].add(number)
        return led

    async def _leaders(self, topics: Collection[str]) -> Mapping[str, Mapping[int, int]]:
        found = await self._cluster.topics(topics)
        if found.refused:
            raise BrokerUnavailable(f"Kafka tells nothing about some topics: {found.refused}")
        if missing := sorted(set(topics) - set(found.leaders)):
            raise TopicMissing(f"no such topics: {', '.join(missing)}")
        return found.leaders


def _named(partitions: Collection[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions)))
