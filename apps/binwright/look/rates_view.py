"""Rates of partitions and topics, folded from the metrics topic, with their recent history."""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from binwright.protocol.metrics import Measurement, PartitionRate, Quality
from binwright.protocol.monitors import Monitors, accept_measurement

HISTORY = 60
"""Passes kept of each partition."""
WORST: tuple[Quality, ...] = ("stale", "warming", "estimated", "measured")

SortKey = Literal["rate", "name", "records", "size", "age"]


@dataclass(frozen=True, slots=True)
class RateRow:
    """A row: a partition, or a topic as the sum of its partitions."""

    name: str
    topic: str
    partition: int | None  # None: a whole topic
    rate: float | None  # bytes/s
    history: tuple[float, ...]  # bytes/s, oldest first
    records_per_s: float | None
    bytes_per_record: float | None
    size: int | None  # bytes
    quality: Quality  # of a topic the worst of its partitions
    age_s: float  # of a topic the highest of its partitions
    leader: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the row for programs."""
        return {name: getattr(self, name) for name in self.__slots__}


_ORDER: Mapping[SortKey, Callable[[RateRow], Any]] = {
    "rate": lambda row: (-(row.rate or 0.0), row.topic, row.partition or 0),
    "name": lambda row: (row.topic, row.partition or 0),
    "records": lambda row: (-(row.records_per_s or 0.0), row.topic, row.partition or 0),
    "size": lambda row: (-(row.size or 0), row.topic, row.partition or 0),
    "age": lambda row: (-row.age_s, row.topic, row.partition or 0),
}


@dataclass(slots=True)
class RatesView:
    """The latest rates. Of two monitors one is followed, as by a controller."""

    seen_at: float | None = None  # s, when a measurement of a followed monitor arrived last
    passes: int = 0
    _monitors: Monitors = field(default_factory=Monitors)
    _last: dict[str, dict[int, PartitionRate]] = field(default_factory=dict)
    _histories: dict[tuple[str, int], deque[float]] = field(default_factory=dict)

    def apply_measurement(self, now: float, measurement: Measurement) -> None:
        """Apply a measurement that arrived at `now`, seconds."""
        self._monitors, counts, _ = accept_measurement(self._monitors, now, measurement)
        if not counts:
            return
        self.seen_at, self.passes = now, self.passes + 1
        known = self._last.setdefault(measurement.topic, {})
        for rate in measurement.partitions:
            known[rate.partition] = rate
            history = self._histories.setdefault(
                (measurement.topic, rate.partition), deque[float](maxlen=HISTORY)
            )
            history.append(rate.rate or 0.0)
        for partition in [p for p in known if p >= measurement.count]:
            del known[partition], self._histories[measurement.topic, partition]
        if not known:
            del self._last[measurement.topic]

    def rows(
        self, sort: SortKey, pattern: re.Pattern[str] | None, *, topics: bool
    ) -> list[RateRow]:
        """Return the rows whose name contains `pattern`, in order; ties by name."""
        rows = self._topics() if topics else self._partitions()
        matching = (row for row in rows if pattern is None or pattern.search(row.name))
        return sorted(matching, key=_ORDER[sort])

    def total(self) -> float:
        """Return the rate of all partitions, bytes/s."""
        return sum(p.rate or 0.0 for known in self._last.values() for p in known.values())

    def _partitions(self) -> Iterator[RateRow]:
        for topic, known in self._last.items():
            for number, latest in known.items():
                yield RateRow(
                    name=f"{topic}-{number}",
                    topic=topic,
                    partition=number,
                    rate=latest.rate,
                    history=tuple(self._histories[topic, number]),
                    records_per_s=latest.records_per_s,
                    bytes_per_record=latest.bytes_per_record,
                    size=latest.size,
                    quality=latest.quality,
                    age_s=latest.age_s,
                    leader=latest.leader,
                )

    def _topics(self) -> Iterator[RateRow]:
        for topic, known in self._last.items():
            partitions = list(known.values())
            rate = sum(p.rate or 0.0 for p in partitions)
            records = sum(p.records_per_s or 0.0 for p in partitions)
            yield RateRow(
                name=topic,
                topic=topic,
                partition=None,
                rate=rate,
                history=_summed([self._histories[topic, number] for number in known]),
                records_per_s=records,
                bytes_per_record=rate / records if records else None,
                size=sum(p.size or 0 for p in partitions),
                quality=min((p.quality for p in partitions), key=WORST.index),
                age_s=max(p.age_s for p in partitions),
                leader=None,
            )


def _summed(histories: list[deque[float]]) -> tuple[float, ...]:
    """Add histories, aligned at their ends: some partitions are younger."""
    length = max(map(len, histories))
    sums = [0.0] * length
    for history in histories:
        for index, rate in enumerate(history, length - len(history)):
            sums[index] += rate
    return tuple(sums)
