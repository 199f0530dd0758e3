"""The step test: how long the monitor takes to measure that a partition's rate has changed (Δt1).

A partition that was empty and silent gets records at a constant rate. The rate that the monitor
should find is what the partition's log grew by since its first record: it does not depend on the
monitor's window.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from binwright.protocol.metrics import Measurement, PartitionRate

PAPER_SHARE, WHOLE_SHARE = 0.9, 0.99
"""Of the step that is to be measured: what the paper's controller waited for, and (almost) all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateStep:
    """How a partition's step was measured."""

    partition: int
    begun_s: float  # timestamp of its first record, s since 1970
    rate: float  # bytes/s that the log grew by
    ninety_s: float  # from the first record to the measurement of 90 % of the step
    whole_s: float  # likewise, of 99 %


@dataclass(frozen=True, slots=True)
class Pass:
    """A measurement and the time of its record, s since 1970."""

    at_s: float
    measurement: Measurement


def steps(passes: Sequence[Pass], begun_s: Mapping[int, float]) -> list[RateStep]:
    """Return the steps that were measured, by partition.

    Args:
        passes: Of one topic, in order.
        begun_s: Partition -> timestamp of its first record, s since 1970.
    """
    measured = (_step(passes, number, at_s) for number, at_s in sorted(begun_s.items()))
    return [step for step in measured if step is not None]


def _step(passes: Sequence[Pass], number: int, begun_s: float) -> RateStep | None:
    """Return a partition's step; None: it was not measured to its end."""
    after = [
        (one.at_s, one.measurement.at_ms / 1000, rate)
        for one in passes
        for rate in one.measurement.partitions
        if rate.partition == number and one.at_s >= begun_s
    ]
    # Behind the last growth the load has ended, which is no part of the step.
    growing = [one for one, later in pairwise(after) if (later[2].size or 0) > (one[2].size or 0)]
    if not growing:
        return None
    _, sampled_s, last = growing[-1]
    if not last.size or sampled_s <= begun_s:
        return None
    grown = last.size / (sampled_s - begun_s)
    times = [_first(after, share * grown) for share in (PAPER_SHARE, WHOLE_SHARE)]
    ninety, whole = times
    if ninety is None or whole is None:
        return None
    return RateStep(
        partition=number,
        begun_s=begun_s,
        rate=grown,
        ninety_s=ninety - begun_s,
        whole_s=whole - begun_s,
    )


def _first(rates: Sequence[tuple[float, float, PartitionRate]], rate: float) -> float | None:
    """Return when a rate of at least `rate` was first published."""
    return next((at_s for at_s, _, one in rates if (one.rate or 0.0) >= rate), None)
