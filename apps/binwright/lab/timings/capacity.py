"""What one consumer reads while it never waits for records: Table VI and Figure 13.

The consumer works off a backlog. A staged file holds what was read of its topic since the file
before: its bytes count evenly over that time. The rate of a cycle is the bytes of `CYCLE_S`.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from binwright.lab.timings.distribution import Distribution
from binwright.protocol.metadata import MeasuredCapacity

CYCLE_S, LEAST_CYCLES = 0.5, 4
"""Length of a cycle, less where a backlog would have fewer of them. The paper's took 2.1 s."""
ROUNDING = 1e-6  # of a cycle: the last one is whole
WHOLE_SHARE = 0.9
"""Of the backlog that counts: near its end one partition after the other has nothing to read."""


@dataclass(frozen=True, slots=True)
class StagedBytes:
    """An announcement: its record's time, s since 1970, its topic, bytes of the rows as read."""

    at_s: float
    topic: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCapacity:
    """What came of one condition; rates are bytes/s."""

    name: str  # of the paper's condition
    partitions: int
    tables: int
    bytes: int  # of the backlog that was read
    seconds: float  # from the first file to the last
    cycles: Distribution
    own: MeasuredCapacity | None = None  # what the consumer has measured of itself


def capacity(
    name: str, partitions: int, files: Sequence[StagedBytes], cycle_s: float = CYCLE_S
) -> ReadCapacity | None:
    """Return what a consumer read of a backlog; None: it is one file.

    Args:
        name: Of the condition.
        partitions: That were read.
        files: Every one, in any order.
        cycle_s: Length of a cycle.
    """
    ordered = sorted(files, key=lambda file: (file.at_s, file.topic))
    if not ordered:
        return None
    tables = {file.topic for file in ordered}
    first = max(min(f.at_s for f in ordered if f.topic == topic) for topic in tables)
    last = _reached(ordered, WHOLE_SHARE)
    if last <= first:
        return None
    cycles = _rates(ordered, first, last, min(cycle_s, (last - first) / LEAST_CYCLES))
    return ReadCapacity(
        name=name,
        partitions=partitions,
        tables=len(tables),
        bytes=sum(file.bytes for file in ordered),
        seconds=ordered[-1].at_s - ordered[0].at_s,
        cycles=Distribution(tuple(sorted(cycles))),
    )


def _reached(files: Sequence[StagedBytes], share: float) -> float:
    """Return when this share of the bytes was staged."""
    left = share * sum(file.bytes for file in files)
    for file in files:
        left -= file.bytes
        if left <= 0:
            return file.at_s
    return files[-1].at_s


def _rates(files: Sequence[StagedBytes], first: float, last: float, cycle_s: float) -> list[float]:
    """Return bytes/s of each whole cycle between two times."""
    count = int((last - first) / cycle_s + ROUNDING)
    read = [0.0] * count
    before: dict[str, float] = {}
    pending: defaultdict[str, int] = defaultdict(int)  # of files with the time of the one before
    for file in files:
        begun, size = before.get(file.topic), pending.pop(file.topic, 0) + file.bytes
        before[file.topic] = file.at_s
        if begun is None:
            continue  # since when it was read is not known
        if file.at_s == begun:
            pending[file.topic] = size
            continue
        for number in range(count):
            low, high = first + number * cycle_s, first + (number + 1) * cycle_s
            shared = min(high, file.at_s) - max(low, begun)
            read[number] += size * max(0.0, shared) / (file.at_s - begun)
    return [size / cycle_s for size in read]
