"""From marks to pauses: for how long no consumer got new records of a partition.

Only progress counts: what was read before, by whomever, ends no gap. A gap is counted as a pause
when it is longer than `NOISE_S` above the longest usual one (the 99.9th percentile of the quiet
time, of the same system); its length is what exceeds the usual distance of two polls, the median.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from bench.handover.marks import Mark

NOISE_S = 0.05


@dataclass(frozen=True, slots=True)
class Gap:
    """Between two marks that brought something new of one partition."""

    partition: int
    begins: float
    length_s: float
    changed_reader: bool  # another process read it before

    @property
    def ends(self) -> float:
        """When something new came."""
        return self.begins + self.length_s


@dataclass(frozen=True, slots=True)
class Baseline:
    """Gaps while nothing happens."""

    median_s: float
    longest_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbance:
    """What one phase cost."""

    events: int  # bounces, or members added
    disturbed: int  # partitions that paused or changed hands, each once an event at most
    changed_hands: int
    pauses: int
    paused_s: float  # partition-seconds, of all pauses
    handed_over_s: float  # partition-seconds from reader to reader, however short
    longest_gap_s: float


def gaps(marks: Sequence[Mark]) -> list[Gap]:
    """Return the gaps of every partition, in order of time.

    Args:
        marks: In order of time.
    """
    last: dict[int, tuple[int, float, int]] = {}  # -> highest offset, when, by whom
    result = []
    for mark in marks:
        known = last.get(mark.partition)
        if known is None:
            last[mark.partition] = (mark.last, mark.at, mark.reader)
            continue
        highest, at, reader = known
        if mark.last > highest:
            result.append(Gap(mark.partition, at, mark.at - at, reader != mark.reader))
            last[mark.partition] = (mark.last, mark.at, mark.reader)
    return result


def baseline(calm: Sequence[Gap]) -> Baseline:
    """Return what gaps are like; raise `ValueError` without any."""
    lengths = sorted(gap.length_s for gap in calm)
    if not lengths:
        raise ValueError("nothing was read while nothing happened")
    return Baseline(lengths[len(lengths) // 2], lengths[ceil(0.999 * len(lengths)) - 1])


def gaps_between(every_gap: Sequence[Gap], begin: float, end: float) -> list[Gap]:
    """Return the gaps that begin in this time."""
    return [gap for gap in every_gap if begin <= gap.begins < end]


def disturbance(in_phase: Sequence[Gap], starts: Sequence[float], steady: Baseline) -> Disturbance:
    """Count what happened since the first of `starts`.

    Args:
        in_phase: The phase's gaps.
        starts: When each event began, in order; what follows it is its doing.
        steady: What is usual.
    """
    pauses = [gap for gap in in_phase if gap.length_s > steady.longest_s + NOISE_S]
    passed = [gap for gap in in_phase if gap.changed_reader]
    marked = {(_event(gap, starts), gap.partition) for gap in (*pauses, *passed)}
    return Disturbance(
        events=len(starts),
        disturbed=len(marked),
        changed_hands=len(passed),
        pauses=len(pauses),
        paused_s=sum(gap.length_s - steady.median_s for gap in pauses),
        handed_over_s=sum(max(0.0, gap.length_s - steady.median_s) for gap in passed),
        longest_gap_s=max((gap.length_s for gap in in_phase), default=0.0),
    )


def _event(gap: Gap, starts: Sequence[float]) -> int:
    return sum(gap.ends >= start for start in starts)
