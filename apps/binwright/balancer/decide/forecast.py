"""When a broker is full: the linear trend of each topic over the days behind, carried on."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import mean
from typing import NamedTuple

from binwright.balancer.decide.loads import LoadLimits, broker_loads, exceeds, hard_limits
from binwright.balancer.decide.model import (
    RESOURCES,
    Amounts,
    BrokerId,
    Cluster,
    Partition,
    Resource,
    Topic,
    current,
)
from binwright.protocol.errors import BalanceError
from binwright.protocol.model import BytesPerSecond

DAY_S = 86_400.0


MONTH_DAYS = 30
LEAST_DAYS = 3
"""Whole days below which there is no trend: within a day a load rises and falls by itself."""


class RateSample(NamedTuple):
    """The rate of a topic at one time."""

    at_s: float  # any clock that all samples share
    rate: BytesPerSecond  # of all its partitions


@dataclass(frozen=True, slots=True)
class RateLine:
    """A straight line through the samples.

    Attributes:
        now: The rate at the last sample on the line, bytes/s, > 0.
        per_day: By how much it grows in a day, bytes/s.
    """

    now: float
    per_day: float

    def growth(self, days: float) -> float:
        """Return the rate after so many days in units of today's, never below 0."""
        return max(0.0, 1.0 + days * self.per_day / self.now)


def trend(samples: Sequence[RateSample]) -> RateLine | None:
    """Return the least-squares line through samples; None: too few times, or no rate.

    Args:
        samples: In any order; whole days or weeks, where the load has a period.

    Raises:
        BalanceError: A rate is negative.
    """
    if any(sample.rate < 0 for sample in samples):
        raise BalanceError("rates of a forecast must be >= 0")
    if len({sample.at_s for sample in samples}) < len(("begin", "end")):
        return None
    count = len(samples)
    mean_at = sum(sample.at_s for sample in samples) / count
    mean = sum(sample.rate for sample in samples) / count
    spread = sum((sample.at_s - mean_at) ** 2 for sample in samples)
    slope = sum((s.at_s - mean_at) * (s.rate - mean) for s in samples) / spread
    now = mean + slope * (max(sample.at_s for sample in samples) - mean_at)
    return RateLine(now, slope * DAY_S) if now > 0 else None


@dataclass(frozen=True, slots=True)
class Shortage:
    """A limit that a broker will exceed if the load grows as it did.

    Attributes:
        broker: Which.
        resource: Of which.
        in_days: From the last sample on; 0: it is exceeded already.
    """

    broker: BrokerId
    resource: Resource
    in_days: float


def future(cluster: Cluster, lines: Mapping[str, RateLine], days: float) -> Cluster:
    """Return the cluster as it will be: rates on their lines, and what nothing deletes kept.

    Args:
        cluster: As it is today.
        lines: By topic; a topic without one stays as it is.
        days: From the last sample on, >= 0.
    """
    partitions = tuple(
        _later(each, cluster.topics[each.id.topic], lines.get(each.id.topic), days)
        for each in cluster.partitions
    )
    return replace(cluster, partitions=partitions)


def _later(partition: Partition, topic: Topic, line: RateLine | None, days: float) -> Partition:
    """Return a partition after so many days."""
    begin, end = (1.0, 1.0) if line is None else (line.growth(0.0), line.growth(days))
    written = partition.disk_rate * (begin + end) / 2 * days * DAY_S
    kept = partition.size_bytes + (int(written) if topic.keeps_all else 0)
    return partition.grown(end, kept)


def forecast(
    cluster: Cluster,
    lines: Mapping[str, RateLine],
    within_days: float,
    limits: LoadLimits | None = None,
) -> tuple[Shortage, ...]:
    """Return what will exceed a limit within so many days, the first first.

    Looks at the ends of spans that double (1, 2, 4, ... days); within one, loads change linearly.

    Args:
        cluster: As it is today; its placement stays.
        lines: By topic.
        within_days: How far to look, >= 0.
        limits: Of each broker; by default the capacity less the headroom.
    """
    within = hard_limits(cluster) if limits is None else limits
    shortages: dict[tuple[BrokerId, int], float] = {}
    begin, before = 0.0, _loads(cluster, lines, 0.0)
    for place in _exceeded(before, within):
        shortages[place] = 0.0
    for end in _ends(within_days):
        after = _loads(cluster, lines, end)
        for place in _exceeded(after, within):
            if place in shortages:
                continue
            low, high, limit = (table[place[0]][place[1]] for table in (before, after, within))
            shortages[place] = begin + (end - begin) * (limit - low) / (high - low)
        begin, before = end, after
    order = sorted(shortages, key=lambda place: (shortages[place], place))
    return tuple(Shortage(b, RESOURCES[place], shortages[b, place]) for b, place in order)


def _ends(within_days: float) -> Iterator[float]:
    """Yield the ends of spans: 1, 3, 7, ... days, at last the end of all."""
    end, length = 0.0, 1.0
    while end < within_days:
        end = min(within_days, end + length)
        yield end
        length *= 2


def _loads(cluster: Cluster, lines: Mapping[str, RateLine], days: float) -> dict[BrokerId, Amounts]:
    later = future(cluster, lines, days)
    return {b: load.amounts for b, load in broker_loads(later, current(later)).items()}


def _exceeded(
    loads: Mapping[BrokerId, Amounts], limits: LoadLimits
) -> Iterator[tuple[BrokerId, int]]:
    """Yield broker and place of each resource above its limit."""
    for broker, amounts in loads.items():
        for place, (load, limit) in enumerate(zip(amounts, limits[broker], strict=True)):
            if exceeds(load, limit):
                yield broker, place


def topic_trends(rows: Iterable[Mapping[str, float]], every_s: float) -> dict[str, RateLine]:
    """Return the line of each topic; none for a recording of fewer than `LEAST_DAYS` whole days.

    Args:
        rows: The rate of each topic, bytes/s, at equal intervals.
        every_s: The interval, s.
    """
    days: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    count = 0
    for count, row in enumerate(rows, 1):
        for topic, rate in row.items():
            days[topic][int((count - 1) * every_s // DAY_S)].append(rate)
    whole = int(count * every_s // DAY_S)
    if whole < LEAST_DAYS:
        return {}
    lines = {
        topic: trend(
            [
                RateSample(day * DAY_S, BytesPerSecond(mean(rates)))
                for day, rates in sorted(by_day.items())
                if day < whole
            ]
        )
        for topic, by_day in sorted(days.items())
    }
    return {topic: line for topic, line in lines.items() if line is not None}
