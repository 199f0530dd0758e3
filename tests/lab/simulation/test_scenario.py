"""What a scenario's controllers know of its load."""

import numpy as np
import pytest
from tests.lab.simulation.builders import scenario

from binwright.lab.simulation.scenario import BLOCK, KnownRates, Timing

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
