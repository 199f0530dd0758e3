"""The simulated load, and the rates that are measured of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.lab.simulation.fluid.arrivals import FluidLoad, arrivals
from binwright.monitor.decide.estimator import TopicRates
from binwright.protocol.errors import StreamError
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import LogSample

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)


def samples(load: FluidLoad, now: float) -> dict[int, LogSample | None]:
    """Return what a monitor finds in the partitions' logs."""
    written = load.written(np.array([now]))[0] - load.written(np.array([load.edges[0] - 60.0]))[0]
    return {
        p.partition: LogSample(leader=1, start=0, end=round(size), size=round(size))
        for p, size in zip(load.partitions, written.tolist(), strict=True)
    }


@given(
    rates=st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), min_size=2, max_size=6),
    row_s=st.sampled_from([1.0, 7.0, 30.0]),
    window_s=st.sampled_from([8.0, 30.0]),
)
def test_rates_are_those_that_the_monitors_estimator_gives(
    rates: list[tuple[int, int]], row_s: float, window_s: float
) -> None:
    """Sampled each second, as a monitor does, from before the load begins until after it."""
    load = arrivals([{P: float(p), Q: float(q)} for p, q in rates], row_s, warm_up_s=5.0)
    estimator = TopicRates(window_s)
    begin, end = round(load.edges[0] - window_s), round(load.ends_at)

    for now in range(begin, end + 1):
        found = estimator.feed(float(now), samples(load, now))
        if now >= load.edges[0]:
            simulated = load.measured(np.array([float(now)]), window_s)[0].tolist()
            assert [one.rate for one in found] == simulated


def test_a_window_that_begins_before_the_load_is_full_of_its_first_row() -> None:
    load = arrivals([{P: 10.0}, {P: 40.0}], 30.0)

    assert load.measured(np.array([0.0, 30.0, 40.0, 60.0]), 30.0).ravel().tolist() == [
        *(10.0, 10.0, 20.0, 40.0)
    ]


def test_an_idle_warm_up_has_the_window_fill_up() -> None:
    load = arrivals([{P: 30.0}], 60.0, warm_up_s=10.0, idle_before=True)

    assert load.measured(np.array([-10.0, 0.0, 15.0, 30.0]), 30.0).ravel().tolist() == [
        *(0.0, 0.0, 15.0, 30.0)
    ]


def test_a_partition_that_a_row_lacks_is_not_written_in_it() -> None:
    load = arrivals([{P: 10.0}, {Q: 20.0}], 30.0)

    assert load.partitions == (P, Q)
    assert load.rows == [[10.0, 0.0], [0.0, 20.0]]


def test_an_edge_belongs_to_the_row_that_begins_there() -> None:
    load = arrivals([{P: 1.0}, {P: 2.0}], 30.0, warm_up_s=10.0)

    assert [load.row_at(time) for time in (-20.0, -10.0, 0.0, 29.9, 30.0, 99.0)] == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]


@pytest.mark.parametrize("row_s", [0.0, -1.0, float("inf"), float("nan")])
def test_a_row_must_last(row_s: float) -> None:
    with pytest.raises(StreamError, match="a row must last finite seconds > 0"):
        arrivals([{P: 1.0}], row_s)


def test_a_load_without_partitions_is_refused() -> None:
    with pytest.raises(StreamError, match="at least one row with one partition"):
        arrivals([{}], 30.0)
