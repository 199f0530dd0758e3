"""What monitors tell of topics: how many partitions each has, and how fast they are written."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, overload

from immutables import Map

from binwright.core.model import BytesPerSecond, TopicPartition

D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class _Topic:
    count: int  # of its partitions
    rates: Mapping[int, BytesPerSecond]  # of those whose rate was ever known


@dataclass(frozen=True, slots=True, eq=False)
class Topics(Mapping[TopicPartition, BytesPerSecond]):
    """The last known rate of each partition that is there, bytes/s; persistent.

    What is told of a topic costs by that topic's size, however many others there are.
    """

    _topics: Map[str, _Topic] = field(default_factory=Map)

    def __getitem__(self, partition: TopicPartition) -> BytesPerSecond:
        """Return the rate of one partition; raise `KeyError` if it is not known."""
        return self._topics[partition.topic].rates[partition.partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        """Iterate over the partitions whose rate is known, in no order that means anything."""
        return (TopicPartition(name, n) for name, at in self._topics.items() for n in at.rates)

    def __len__(self) -> int:
        """Return of how many partitions the rate is known."""
        return sum(len(topic.rates) for topic in self._topics.values())

    @overload
    def get(self, key: TopicPartition, /) -> BytesPerSecond | None: ...
    @overload
    def get(self, key: TopicPartition, default: D, /) -> BytesPerSecond | D: ...
    def get(self, key: TopicPartition, default: object = None, /) -> object:
        """Return the rate of one partition; it is there for speed."""
        topic = self._topics.get(key.topic)
        return default if topic is None else topic.rates.get(key.partition, default)

    @property
    def names(self) -> Collection[str]:
        """Return the topics that were measured."""
        return self._topics.keys()

    def count(self, topic: str) -> int | None:
        """Return how many partitions a topic has; None: it was not measured yet."""
        found = self._topics.get(topic)
        return None if found is None else found.count

    def told(self, topic: str, count: int, rates: Mapping[int, BytesPerSecond]) -> "Topics":
        """Return what is known with a topic's measurement.

        A partition whose rate is not known at the moment keeps its last one.
        """
        before = self._topics.get(topic)
        known = {**before.rates, **rates} if before is not None else dict(rates)
        if before is not None and count < before.count:
            known = {number: rate for number, rate in known.items() if number < count}
        return Topics(self._topics.set(topic, _Topic(count, known)))
