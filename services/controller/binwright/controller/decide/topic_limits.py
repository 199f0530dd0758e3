"""Which topics each group of a namespace may read, if the namespace may not have all of them.

Groups stand in order of age: what an older one reads counts before what a younger one reads.
Within a group a topic that it reads already stands before one that is new.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from binwright.group.group import Group
from binwright.protocol.metrics import Measurement


class Usage(NamedTuple):
    """How much is read."""

    topics: int = 0
    partitions: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of both."""
        return Usage(self.topics + other.topics, self.partitions + other.partitions)

    def without(self, other: "Usage") -> "Usage":
        """Return the difference of both."""
        return Usage(self.topics - other.topics, self.partitions - other.partitions)

    def within(self, limit: "Usage") -> bool:
        """Whether neither number exceeds that of the limit."""
        return self.topics <= limit.topics and self.partitions <= limit.partitions


NOTHING = Usage()


@dataclass(slots=True)
class _GroupTopics:
    read: dict[str, int] = field(default_factory=dict)  # topic -> partitions, the oldest first
    refused: dict[str, int] = field(default_factory=dict)  # topic -> partitions that are not read
    usage: Usage = NOTHING  # the sum of `read`

    def before(self, topic: str) -> Usage:
        """Return the sum of what has been read for longer than `topic`."""
        numbers = list(self.read.values())[: list(self.read).index(topic)]
        return Usage(len(numbers), sum(numbers))

    def put(self, topic: str, count: int, wanted: int) -> None:
        """Note that so many of the topic's `wanted` partitions are read."""
        self.usage = self.usage.without(_usage(self.read.get(topic, 0))).plus(_usage(count))
        if count:
            self.read[topic] = count
        else:
            self.read.pop(topic, None)
        if wanted > count:
            self.refused[topic] = wanted - count
        else:
            self.refused.pop(topic, None)


def _usage(partitions: int) -> Usage:
    return Usage(1, partitions) if partitions else NOTHING


class NamespaceTopics:
    """The topics of all groups of one namespace, each group by a name that is unique there."""

    def __init__(self, limit: Usage) -> None:
        """Allow all groups together what `limit` has."""
        self.limit = limit
        self._groups: dict[str, _GroupTopics] = {}  # the oldest first

    def order(self, groups: Iterable[str]) -> None:
        """Take over which groups there are, the oldest first; others free what they read."""
        self._groups = {name: self._groups.get(name, _GroupTopics()) for name in groups}

    def refused(self, group: str) -> Mapping[str, int]:
        """Return the topics that a group would read, each with the partitions that it may not."""
        return self._groups[group].refused

    def older(self, group: str) -> Usage:
        """Return what older groups read."""
        older = NOTHING
        for name, other in self._groups.items():
            if name == group:
                break
            older = older.plus(other.usage)
        return older

    def hold(self, group: str, topics: Mapping[str, int]) -> None:
        """Take over which topics a group reads, each with its partitions; forget all others."""
        own = self._groups[group]
        known = [topic for topic in own.read if topic in topics]  # in order of age
        held = _GroupTopics()
        for topic in [*known, *sorted(topics.keys() - own.read.keys())]:
            held.put(topic, topics[topic], topics[topic])
        self._groups[group] = held

    def allow(self, group: str, topic: str, count: int) -> int:
        """Return how many of a topic's `count` partitions a group may read.

        All, if they fit beside what older groups and this one read; else none of a new topic, and
        of one that it reads no more than before, until older groups take its place.
        """
        own, older = self._groups[group], self.older(group)
        had = min(own.read.get(topic, 0), count)
        others = older.plus(own.usage.without(_usage(own.read.get(topic, 0))))
        if others.plus(_usage(count)).within(self.limit):
            allowed = count
        elif had and older.plus(own.before(topic)).plus(_usage(had)).within(self.limit):
            allowed = had
        else:
            allowed = 0
        own.put(topic, allowed, count)
        return allowed


@dataclass(slots=True)
class TopicShare:
    """What one group may read, in one leadership."""

    namespace: NamespaceTopics
    group: str  # its name in the namespace
    begun: bool = False

    def limited(self, measurement: Measurement, group: Group) -> Measurement:
        """Return the measurement without partitions that the group may not read.

        Args:
            measurement: Of a topic that the group selects.
            group: As its machine has it, synchronized: it knows what the group reads.
        """
        if not self.begun:
            self.namespace.hold(self.group, _held(group))
            self.begun = True
        count = self.namespace.allow(self.group, measurement.topic, measurement.count)
        if count == measurement.count:
            return measurement
        partitions = tuple(each for each in measurement.partitions if each.partition < count)
        return replace(measurement, count=count, partitions=partitions)


def _held(group: Group) -> dict[str, int]:
    """Return each topic that the group reads, or would by its last plan, with its partitions."""
    numbers = {topic: highest + 1 for topic, highest in group.members.partitions.highest()}
    for topic, number in group.people.last_plan:
        numbers[topic] = max(numbers.get(topic, 0), number + 1)
    return {topic: number for topic, number in numbers.items() if group.config.includes(topic)}
