"""Rates of partitions hour by hour: what a plan counts with, instead of the rate of a moment."""

from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import ceil, isnan, nan

from binwright.protocol.model import BytesPerSecond, Rates, TopicPartition

HOUR_S = 3_600.0
WEEK_HOURS = 7 * 24
"""What the metrics topic keeps, and one period of a load with a weekly one."""
BUSY_SHARE = 0.95
"""Share of the hours in which a partition's network load is at most what a plan counts with."""


class RateHistory:
    """A rate of each partition for each hour, the oldest first.

    Rows are arrays by topic: a week of 30,000 partitions is 40 MB.
    """

    def __init__(self, rows: Iterable[Rates] = (), *, hours: int | None = None) -> None:
        """Take these hours, and at most the last `hours` of all; None: all."""
        self._rows: deque[dict[str, array[float]]] = deque(maxlen=hours)
        for row in rows:
            self.append(row)

    def append(self, rates: Rates) -> None:
        """Add an hour; hours before the first rate are left out."""
        row: dict[str, array[float]] = {}
        for (topic, number), rate in rates.items():
            of_topic = row.setdefault(topic, array("d"))
            of_topic.extend([nan] * (number + 1 - len(of_topic)))
            of_topic[number] = rate
        if row or self._rows:
            self._rows.append(row)

    def of(self, partition: TopicPartition) -> list[float]:
        """Return the rates that are known of a partition, bytes/s."""
        topic, number = partition
        rows = (row[topic] for row in self._rows if topic in row)
        return [row[number] for row in rows if number < len(row) and not isnan(row[number])]

    def last(self) -> Rates:
        """Return the rates of the last hour."""
        rows = self._rows[-1] if self._rows else {}
        return {
            TopicPartition(topic, number): BytesPerSecond(rate)
            for topic, rates in rows.items()
            for number, rate in enumerate(rates)
            if not isnan(rate)
        }

    def topics(self) -> Iterator[dict[str, float]]:
        """Yield the rate of each topic, bytes/s, hour by hour."""
        for row in self._rows:
            yield {t: sum(rate for rate in rates if not isnan(rate)) for t, rates in row.items()}


def busy_rate(rates: Sequence[float]) -> BytesPerSecond:
    """Return the rate that `BUSY_SHARE` of these, at least one, do not exceed."""
    return BytesPerSecond(sorted(rates)[ceil(BUSY_SHARE * len(rates)) - 1])


def kept_rate(rates: Sequence[float], retention_s: float | None) -> BytesPerSecond:
    """Return the largest mean over as many hours as retention keeps, of at least one rate.

    Times the retention it is what a replica holds when it is fullest. Where retention is longer
    than what is known, that is the mean of all.
    """
    wanted = len(rates) if retention_s is None else round(retention_s / HOUR_S)
    hours = max(1, min(len(rates), wanted))
    sums = [0.0, *accumulate(rates)]
    windows = zip(sums, sums[hours:], strict=False)
    return BytesPerSecond(max(after - before for before, after in windows) / hours)
