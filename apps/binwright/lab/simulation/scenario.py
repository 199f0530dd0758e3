"""What is simulated: the load, what consumers sustain, and how long their changes take."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor
from typing import TypeVar

import numpy as np

from binwright.group.config import GroupConfig
from binwright.lab.simulation.fluid.arrivals import Floats, FluidLoad
from binwright.lab.simulation.outcome import CountSteps
from binwright.protocol.model import BytesPerSecond, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """How long things take, seconds."""

    start_up_s: float = 5.0  # from the request for a consumer until it can read
    hand_over_s: float = 0.1  # from a partition's stop until its new owner reads it
    rebalance_s: float | None = None  # what a change pauses under other policies; None: by policy
    interval_s: float = 1.0  # between measurements
    window_s: float = 30.0  # over which a rate is measured
    measured_age_s: float = 0.5  # of the newest sample in a measurement, when it is looked at
    report_s: float = 1.0  # between the reports of a consumer


T = TypeVar("T", float, Floats)

TICK_S = 1.0
"""Seconds between the ticks of a controller."""
NEAR_S = 10.0
"""A start of the same slot within this time is the one that was measured."""
ROUNDING = 1e-9
"""Of a quotient of times that should be whole."""
BLOCK = 2048
"""Measurements that are computed at once: a few hundred kilobytes."""


@dataclass(frozen=True, slots=True)
class PublishedRates:
    """What a monitor has published: it is taken as it is, instead of measuring the load."""

    times: Floats  # seconds, ascending: when each measurement can be read
    rates: Floats  # bytes/s, times x partitions


@dataclass(frozen=True, slots=True)
class StartUp:
    """How long one consumer took to start, in a run that is simulated afterwards."""

    slot: Slot
    at: float  # when it was asked for, seconds
    seconds: float  # until it could read


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One load and its circumstances, the same for every policy.

    Attributes:
        load: With its warm-up, at negative times, in which the group settles; not counted.
        config: Of the controller. `limit` is what its plans take a consumer to sustain.
        sustained: What a consumer really sustains, bytes/s; None: its limit.
        timing: Of consumers and measurements.
        published: Measurements that are taken instead of those of the load.
        start_ups: What consumers of the product's controller took to start where that was measured;
            every other one takes what `timing` says.
        members: That a recorded group had; None: that is not known.
    """

    load: FluidLoad
    config: GroupConfig
    sustained: BytesPerSecond | None = None
    timing: Timing = Timing()
    published: PublishedRates | None = None
    start_ups: Sequence[StartUp] = ()
    members: CountSteps | None = None

    def start_up_s(self, slot: Slot, now: float) -> float:
        """Return how long a consumer that is asked for now takes to start, seconds."""
        known = [one for one in self.start_ups if one.slot == slot]
        if (
            known
            and abs((best := min(known, key=lambda one: abs(one.at - now))).at - now) <= NEAR_S
        ):
            return best.seconds
        return self.timing.start_up_s

    def capacity(self, slot: Slot) -> float:
        """Return what the consumer of a slot really sustains, bytes/s."""
        return self.config.limits.for_slot(slot) if self.sustained is None else self.sustained

    def measured(self, ticks: Floats) -> Floats:
        """Return the rates that are known at these times, bytes/s, times x partitions.

        Those of the last measurement, on a grid of intervals from the beginning on.
        """
        if self.published is not None:
            last = np.searchsorted(self.published.times, ticks, side="right") - 1
            known: Floats = self.published.rates[np.maximum(last, 0)]
            return known
        numbers: Floats = np.floor(self._number(ticks))
        return self._known.of(numbers)

    def measured_at(self, time: float) -> list[BytesPerSecond]:
        """Return the rates that are known at a time, one for each partition."""
        if self.published is None:
            return self._known.at(floor(self._number(time)))
        rates: list[BytesPerSecond] = self.measured(np.array([time]))[0].tolist()
        return rates

    def _number(self, time: T) -> T:
        """Return the number of the last measurement at a time (or times), not rounded down."""
        return (time - self.begin) / self.timing.interval_s + ROUNDING

    def sampled(self, numbers: Floats) -> Floats:
        """Return what measurements of these numbers hold, bytes/s, numbers x partitions."""
        timing = self.timing
        sampled_at = self.begin + numbers * timing.interval_s - timing.measured_age_s
        return self.load.measured(sampled_at, timing.window_s)

    @cached_property
    def _known(self) -> "KnownRates":
        return KnownRates(self.sampled)

    @property
    def largest_capacity(self) -> float:
        """Return the most that any consumer sustains, bytes/s."""
        return self.config.limits.largest if self.sustained is None else self.sustained

    @property
    def begin(self) -> float:
        """Return when the warm-up begins, seconds, <= 0."""
        return self.load.edges[0]


class KnownRates:
    """Measurements by their numbers, computed a block at a time: whoever asks goes forward."""

    def __init__(self, sampled: Callable[[Floats], Floats]) -> None:
        """Take what `Scenario.sampled` gives."""
        self._sampled = sampled
        self._begin = 0
        self._block: Floats = np.empty((0, 0))

    def of(self, numbers: Floats) -> Floats:
        """Return the rates of measurements whose numbers ascend, at least one, as `sampled`."""
        first, last = int(numbers[0]), int(numbers[-1])
        if last - first >= BLOCK:
            return self._sampled(numbers)
        self._cover(first, last)
        rates: Floats = self._block[numbers.astype(np.intp) - self._begin]
        return rates

    def at(self, number: int) -> list[BytesPerSecond]:
        """Return the rates of one measurement."""
        self._cover(number, number)
        rates: list[BytesPerSecond] = self._block[number - self._begin].tolist()
        return rates

    def _cover(self, first: int, last: int) -> None:
        """Have the block hold these measurements, fewer than `BLOCK`."""
        if not self._begin <= first <= last < self._begin + len(self._block):
            self._begin = first
            self._block = self._sampled(np.arange(first, first + BLOCK, dtype=np.float64))


def warm_up_s(config: GroupConfig, timing: Timing) -> float:
    """Return how long a group takes to settle: to start, and to look twice at what it runs."""
    return float(
        ceil(2 * (timing.start_up_s + config.settings.replan_interval_s) + timing.window_s + 10)
    )


CLOSE = 1 - 1e-9
"""A load above this share of the limit may be an overload: sums differ in their last digits."""
CHUNK = 512  # seconds that are looked at in one go


def first_overload(
    scenario: Scenario,
    owned: Mapping[Slot, Sequence[int]],
    limits: Mapping[Slot, float],
    now: float,
    last: float,
) -> float:
    """Return the first tick after `now` at which a consumer may be overloaded, at most `last`.

    Args:
        scenario: Gives the rates that are measured.
        owned: The indices of the partitions that each consumer reads.
        limits: Of the same consumers, bytes/s.
        now: Of a tick; ticks are `TICK_S` apart.
        last: Of a tick.
    """
    if not owned:
        return last
    reads = np.zeros((len(scenario.load.partitions), len(owned)))
    for column, indices in enumerate(owned.values()):
        reads[list(indices), column] = 1.0
    most = np.array([limits[slot] for slot in owned]) * CLOSE
    begin = now
    while begin < last:
        count = min(CHUNK, round((last - begin) / TICK_S))
        ticks: Floats = begin + TICK_S * np.arange(1, count + 1, dtype=np.float64)
        over = (scenario.measured(ticks) @ reads > most).any(axis=1)
        if over.any():
            return float(ticks[int(np.argmax(over))])
        begin = float(ticks[-1])
    return last
