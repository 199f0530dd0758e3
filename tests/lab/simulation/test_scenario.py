"""What a scenario's controllers know of its load."""

from dataclasses import replace

import numpy as np
import pytest
from tests.lab.simulation.builders import TIMING, outcome, scenario

from binwright.lab.simulation.scenario import BLOCK, KnownRates, StartUp, Timing
from binwright.protocol.model import Slot

RISING = scenario([[10.0 * row, 5.0] for row in range(300)], timing=Timing(interval_s=2.0))


def test_rates_are_those_of_the_last_measurement() -> None:
    """One is made every two seconds, from the beginning on."""
    even, odd, next_ = (RISING.measured_at(RISING.begin + at) for at in (300.0, 301.0, 302.0))

    assert even == odd
    assert next_[0] > odd[0]


@pytest.mark.parametrize("first", [0, BLOCK - 2, 3 * BLOCK + 1])
@pytest.mark.parametrize("count", [1, 5, BLOCK + 1])
def test_rates_do_not_depend_on_what_was_asked_before(first: int, count: int) -> None:
    numbers = np.arange(first, first + count, dtype=np.float64)
    known = KnownRates(RISING.sampled)
    known.of(np.array([float(BLOCK // 2)]))

    assert np.array_equal(known.of(numbers), RISING.sampled(numbers))


def test_a_start_takes_what_it_took_in_the_run_that_is_simulated() -> None:
    """The nearest of the same slot; any other start takes the usual time."""
    starts = [StartUp(Slot(1), 10.0, 7.0), StartUp(Slot(1), 16.0, 2.0), StartUp(Slot(2), 50.0, 9.0)]
    found = replace(scenario([[60.0]]), start_ups=starts)

    assert found.start_up_s(Slot(1), 12.0) == 7.0
    assert found.start_up_s(Slot(1), 14.0) == 2.0
    assert found.start_up_s(Slot(1), 50.0) == found.timing.start_up_s
    assert found.start_up_s(Slot(3), 12.0) == found.timing.start_up_s


def test_the_products_consumers_start_as_they_did_in_the_run_that_is_simulated() -> None:
    grows = scenario([[30.0, 10.0], *[[30.0, 100.0]] * 3])
    usual = outcome(grows).ready
    late = replace(grows, start_ups=[StartUp(Slot(1), usual.times[1] - TIMING.start_up_s, 9.0)])

    assert outcome(late).ready.times[1] == usual.times[1] - TIMING.start_up_s + 9.0
