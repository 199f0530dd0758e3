"""The rates that a controller plans by: the last known ones, and how much they change."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import TypeVar, overload

from immutables import Map

from binwright.protocol.model import BytesPerSecond, Rates, TopicPartition

D = TypeVar("D")
PERIOD_S = 30.0
"""Changes are measured over this time: the paper's time from one decision to the next."""
WEIGHT = 0.1
"""The weight of the newest change in the mean."""


@dataclass(frozen=True, slots=True)
class _Topic:
    count: int  # of the topic's partitions
    rates: Mapping[int, BytesPerSecond]  # of the partitions whose rate was ever known


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRates(Mapping[TopicPartition, BytesPerSecond]):
    """The last known rate of each existing partition, bytes/s; an immutable mapping.

    Adding a topic's measurement costs O(its partitions), however many other topics there are.
    """

    _topics: Map[str, _Topic] = field(default_factory=Map)

    def __getitem__(self, partition: TopicPartition) -> BytesPerSecond:
        """Return the rate of one partition, bytes/s; raise `KeyError` if it is unknown."""
        return self._topics[partition.topic].rates[partition.partition]

    def __iter__(self) -> Iterator[TopicPartition]:
        """Iterate over the partitions whose rate is known, in arbitrary order."""
        return (TopicPartition(name, n) for name, at in self._topics.items() for n in at.rates)

    def __len__(self) -> int:
        """Return the number of partitions whose rate is known."""
        return sum(len(topic.rates) for topic in self._topics.values())

    @overload
    def get(self, key: TopicPartition, /) -> BytesPerSecond | None: ...
    @overload
    def get(self, key: TopicPartition, default: D, /) -> BytesPerSecond | D: ...
    def get(self, key: TopicPartition, default: object = None, /) -> object:
        """Return the rate of one partition; faster than the inherited method."""
        topic = self._topics.get(key.topic)
        return default if topic is None else topic.rates.get(key.partition, default)

    @property
    def names(self) -> Collection[str]:
        """Return the topics that have a measurement."""
        return self._topics.keys()

    def count(self, topic: str) -> int | None:
        """Return the number of a topic's partitions; None: it has no measurement."""
        measured = self._topics.get(topic)
        return None if measured is None else measured.count

    def above(self, limit: BytesPerSecond) -> Iterator[TopicPartition]:
        """Yield the partitions with a higher rate, bytes/s, in arbitrary order."""
        for name, topic in self._topics.items():
            for number, rate in topic.rates.items():
                if rate > limit:
                    yield TopicPartition(name, number)

    def with_topic(
        self, topic: str, count: int, rates: Mapping[int, BytesPerSecond]
    ) -> "MeasuredRates":
        """Return the rates with a new measurement of a topic.

        A partition whose rate is unknown at present keeps its last one.
        """
        before = self._topics.get(topic)
        known = {**before.rates, **rates} if before is not None else dict(rates)
        if before is not None and count < before.count:
            known = {number: rate for number, rate in known.items() if number < count}
        return MeasuredRates(self._topics.set(topic, _Topic(count, known)))


@dataclass(frozen=True, slots=True)
class RateVolatility:
    """The mean square of rates' changes over a period; recent changes count more."""

    rates: Rates = field(default_factory=dict)  # at the beginning of the period
    since: float | None = None  # seconds, monotonic
    mean_square: float | None = None  # (bytes/s)^2; None: no period has ended yet

    def observe(self, rates: Rates, now: float) -> "RateVolatility":
        """Return the volatility after rates at `now`; unchanged until the period has ended."""
        if self.since is not None and now - self.since < PERIOD_S:
            return self
        before = self.rates.get
        pairs = ((rate, before(p)) for p, rate in rates.items())
        changes = [(rate - old) ** 2 for rate, old in pairs if old is not None]
        if not changes:
            return RateVolatility(rates, now, self.mean_square)
        newest = fsum(changes) / len(changes)  # exact: topics come in another order elsewhere
        mean = newest if self.mean_square is None else self.mean_square
        return RateVolatility(rates, now, mean + WEIGHT * (newest - mean))
