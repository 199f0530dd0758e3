"""What monitors say, as a board: partitions and topics by rate, with what each was lately."""

import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from binwright.core.messages import Measurement, PartitionRate, Quality
from binwright.core.monitors import Monitors, take

HISTORY = 60
"""Passes remembered of each partition."""
WORST: tuple[Quality, ...] = ("stale", "warming", "estimated", "measured")
BARS = "▁▂▃▄▅▆▇█"

Key = Literal["rate", "name", "records", "size", "age"]


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the board: a partition, or a topic as the sum of its partitions."""

    name: str
    topic: str
    partition: int | None  # None: a whole topic
    rate: float | None  # bytes/s
    history: tuple[float, ...]  # bytes/s, oldest first
    records_per_s: float | None
    bytes_per_record: float | None
    size: int | None  # bytes
    quality: Quality  # of a topic its worst
    age_s: float  # of a topic the highest
    leader: int | None

    def facts(self) -> dict[str, Any]:
        """Return the row for programs."""
        return {name: getattr(self, name) for name in self.__slots__}


_ORDER: Mapping[Key, Callable[[Row], Any]] = {
    "rate": lambda row: (-(row.rate or 0.0), row.topic, row.partition or 0),
    "name": lambda row: (row.topic, row.partition or 0),
    "records": lambda row: (-(row.records_per_s or 0.0), row.topic, row.partition or 0),
    "size": lambda row: (-(row.size or 0), row.topic, row.partition or 0),
    "age": lambda row: (-row.age_s, row.topic, row.partition or 0),
}


@dataclass(slots=True)
class Board:
    """Everything heard, folded. Of two monitors one is followed, as by a controller."""

    heard_at: float | None = None  # s, when anything counted last
    passes: int = 0
    _monitors: Monitors = field(default_factory=Monitors)
    _last: dict[str, dict[int, PartitionRate]] = field(default_factory=dict)
    _past: dict[tuple[str, int], deque[float]] = field(default_factory=dict)

    def measured(self, now: float, said: Measurement) -> None:
        """Take what was said at `now`, seconds."""
        self._monitors, counts, _ = take(self._monitors, now, said)
        if not counts:
            return
        self.heard_at, self.passes = now, self.passes + 1
        known = self._last.setdefault(said.topic, {})
        for found in said.partitions:
            known[found.partition] = found
            past = self._past.setdefault(
                (said.topic, found.partition), deque[float](maxlen=HISTORY)
            )
            past.append(found.rate or 0.0)
        for partition in [p for p in known if p >= said.count]:
            del known[partition], self._past[said.topic, partition]
        if not known:
            del self._last[said.topic]

    def rows(self, sort: Key, pattern: re.Pattern[str] | None, *, topics: bool) -> list[Row]:
        """Return the lines whose name holds `pattern`, in order; ties by name."""
        found = self._topics() if topics else self._partitions()
        fitting = (row for row in found if pattern is None or pattern.search(row.name))
        return sorted(fitting, key=_ORDER[sort])

    def total(self) -> float:
        """Return the bytes/s of everything."""
        return sum(p.rate or 0.0 for known in self._last.values() for p in known.values())

    def _partitions(self) -> Iterator[Row]:
        for topic, known in self._last.items():
            for number, found in known.items():
                yield Row(
                    name=f"{topic}-{number}",
                    topic=topic,
                    partition=number,
                    rate=found.rate,
                    history=tuple(self._past[topic, number]),
                    records_per_s=found.records_per_s,
                    bytes_per_record=found.bytes_per_record,
                    size=found.size,
                    quality=found.quality,
                    age_s=found.age_s,
                    leader=found.leader,
                )

    def _topics(self) -> Iterator[Row]:
        for topic, known in self._last.items():
            all_of_it = list(known.values())
            rate = sum(p.rate or 0.0 for p in all_of_it)
            records = sum(p.records_per_s or 0.0 for p in all_of_it)
            yield Row(
                name=topic,
                topic=topic,
                partition=None,
                rate=rate,
                history=_summed([self._past[topic, number] for number in known]),
                records_per_s=records,
                bytes_per_record=rate / records if records else None,
                size=sum(p.size or 0 for p in all_of_it),
                quality=min((p.quality for p in all_of_it), key=WORST.index),
                age_s=max(p.age_s for p in all_of_it),
                leader=None,
            )


def _summed(pasts: list[deque[float]]) -> tuple[float, ...]:
    """Add histories up, by their ends: some partitions are younger."""
    length = max(map(len, pasts))
    sums = [0.0] * length
    for past in pasts:
        for index, rate in enumerate(past, length - len(past)):
            sums[index] += rate
    return tuple(sums)


def sparkline(values: tuple[float, ...], width: int) -> str:
    """Return the last `width` values as bars, the highest of them as a full one."""
    shown = values[-width:]
    highest = max(shown, default=0.0)
    if not highest:
        return BARS[0] * len(shown)
    return "".join(BARS[min(int(value / highest * len(BARS)), len(BARS) - 1)] for value in shown)
