"""A forecast is compared at equal cost, and says what it is taken to say."""

from math import isclose

import numpy as np
import pytest
from bench.prediction import MEASURED, SEER, TREND, front, gain, scenario

from binwright.lab.simulation.fluid.arrivals import FluidLoad, arrivals
from binwright.protocol.model import TopicPartition


def stepped() -> FluidLoad:
    """Return a load that rises by 100 bytes/s each second from 100 to 6,000 and is then 0."""
    partition = TopicPartition("t", 0)
    rows = [{partition: 100.0 * (second + 1)} for second in range(60)]
    return arrivals([*rows, {partition: 0.0}], 1.0, warm_up_s=60.0)


@pytest.mark.parametrize(
    ("kind", "rate"),
    [
        (MEASURED, 3_500.0),  # the mean of the window, which began at 20.0
        (TREND, 5_850.0),  # it rose by 2,800 in a window, and goes on for 25 s
        (SEER, 5_800.0),  # the highest mean of 5 s that ends within 10 s
    ],
)
def test_the_controller_is_given_what_it_is_to_know(kind: str, rate: float) -> None:
    made = scenario(stepped(), 0.8, start_up_s=10.0, kind=kind)
    (found,) = made.measured_at(50.0)
    assert isclose(found, rate, rel_tol=0.01)


def test_a_trend_does_not_end_below_zero() -> None:
    made = scenario(stepped(), 0.8, start_up_s=60.0, kind=TREND)
    assert made.measured(np.arange(61.0, 80.0)).min() == 0.0


def test_what_costs_more_and_gives_less_does_not_count() -> None:
    assert front([(3.0, 90.0), (1.0, 50.0), (2.0, 95.0)]) == {1.0: 50.0, 2.0: 95.0, 3.0: 95.0}


def test_a_gain_is_that_at_equal_cost() -> None:
    plain = [(10.0, 90.0), (20.0, 100.0)]
    assert gain(plain, plain) == 0.0
    assert gain(plain, [(15.0, 97.0), (20.0, 102.0)]) == pytest.approx(2.0)


def test_there_is_no_gain_where_nothing_costs_the_same() -> None:
    assert gain([(1.0, 90.0), (2.0, 99.0)], [(3.0, 100.0), (4.0, 100.0)]) is None
