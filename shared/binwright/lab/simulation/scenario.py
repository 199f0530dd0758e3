"""What is simulated: the load, what consumers sustain, and how long their changes take."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from binwright.core.controller.config import ControllerConfig
from binwright.core.model import BytesPerSecond, Slot
from binwright.lab.simulation.flow.arrivals import Arrivals, Floats


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


TICK_S = 1.0
"""Seconds between the ticks of a controller."""
ROUNDING = 1e-9
"""Of a quotient of times that should be whole."""


@dataclass(frozen=True, slots=True)
class MeasuredRates:
    """What a monitor has published: it is taken as it is, instead of measuring the load."""

    times: Floats  # seconds, ascending: when each measurement can be read
    rates: Floats  # bytes/s, times x partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One load and its circumstances, the same for every policy.

    Attributes:
        load: With its warm-up, at negative times, in which the group settles; not counted.
        config: Of the controller. `limit` is what its plans take a consumer to sustain.
        sustained: What a consumer really sustains, bytes/s; None: its limit.
        timing: Of consumers and measurements.
        published: Measurements that are taken instead of those of the load.
    """

    load: Arrivals
    config: ControllerConfig
    sustained: BytesPerSecond | None = None
    timing: Timing = Timing()
    published: MeasuredRates | None = None

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
        timing, begin = self.timing, self.begin
        passes = np.floor((ticks - begin) / timing.interval_s + ROUNDING)
        sampled_at = begin + passes * timing.interval_s - timing.measured_age_s
        return self.load.measured(sampled_at, timing.window_s)

    @property
    def largest_capacity(self) -> float:
        """Return the most that any consumer sustains, bytes/s."""
        return self.config.limits.largest if self.sustained is None else self.sustained

    @property
    def begin(self) -> float:
        """Return when the warm-up begins, seconds, <= 0."""
        return self.load.edges[0]


def warm_up_s(config: ControllerConfig, timing: Timing) -> float:
    """Return how long a group takes to settle: to start, and to look twice at what it runs."""
    return float(ceil(2 * (timing.start_up_s + config.look_again_s) + timing.window_s + 10))
