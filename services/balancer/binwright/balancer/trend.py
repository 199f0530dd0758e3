"""How the topics of a recording grow: a line through the means of its days."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import mean

from binwright.balancer.decide.forecast import DAY_S, Sample, Trend, trend
from binwright.protocol.model import BytesPerSecond, TopicPartition

MONTH_DAYS = 30
LEAST_DAYS = 3
"""Whole days below which there is no trend: within a day a load rises and falls by itself."""


def topic_trends(
    rows: Iterable[Mapping[TopicPartition, BytesPerSecond]], every_s: float
) -> dict[str, Trend]:
    """Return the line of each topic; none for a recording of fewer than `LEAST_DAYS` whole days.

    Args:
        rows: All rates, at equal intervals.
        every_s: The interval, s.
    """
    days: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    count = 0
    for count, row in enumerate(rows, 1):
        for topic, rate in _by_topic(row).items():
            days[topic][int((count - 1) * every_s // DAY_S)].append(rate)
    whole = int(count * every_s // DAY_S)
    if whole < LEAST_DAYS:
        return {}
    lines = {
        topic: trend(
            [
                Sample(day * DAY_S, BytesPerSecond(mean(found)))
                for day, found in sorted(by_day.items())
                if day < whole
            ]
        )
        for topic, by_day in sorted(days.items())
    }
    return {topic: line for topic, line in lines.items() if line is not None}


def _by_topic(row: Mapping[TopicPartition, BytesPerSecond]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for partition, rate in row.items():
        sums[partition.topic] += rate
    return sums
