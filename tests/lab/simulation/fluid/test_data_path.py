"""Bytes as a fluid: what waits, for how long, and who reads it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.lab.simulation.fluid.arrivals import FluidLoad, arrivals
from binwright.lab.simulation.fluid.data_path import DataPath
from binwright.lab.simulation.fluid.measures import PARTS, LagSeries
from binwright.lab.simulation.fluid.readers import fair_share
from binwright.protocol.model import Slot, TopicPartition

A, B = Slot(0), Slot(1)


def load(*rows: tuple[float, ...], row_s: float = 10.0) -> FluidLoad:
    """Return a load of one topic, a number for each partition in each row."""
    return arrivals(
        [{TopicPartition("t", n): rate for n, rate in enumerate(row)} for row in rows], row_s
    )


def path(found: FluidLoad, *capacities: float) -> DataPath:
    """Return partitions that are read by consumers of these capacities, in turns."""
    data = DataPath(found, 0.0)
    for slot, capacity in enumerate(capacities):
        data.add_consumer(Slot(slot), capacity, 0.0)
    for index in range(len(found.partitions)):
        data.start_reading(index, Slot(index % len(capacities)), 0.0)
    return data


def test_bytes_that_fit_do_not_wait() -> None:
    latencies = path(load((60.0, 40.0)), 100.0).finish(10.0)

    assert (latencies.percentile(1.0), latencies.total) == (0.0, 1_000.0)


def test_an_overloaded_consumer_falls_behind_evenly() -> None:
    """200 bytes/s at 100: after 10 s half of it waits, and the last byte read is 5 s old."""
    data = path(load((200.0,), (0.0,)), 100.0)

    assert data.lags(10.0) == [1_000.0]
    assert data.lag.bytes[[0, 5, 10]].tolist() == [0.0, 500.0, 1_000.0]
    latencies = data.finish(20.0)
    assert latencies.percentile(0.5) == pytest.approx(5.0)
    assert latencies.percentile(1.0) == pytest.approx(10.0)
    assert latencies.share_within(5.0) == pytest.approx(0.5)
    assert data.lag.bytes[[15, 20]].tolist() == [500.0, 0.0]


def test_lag_is_sampled_at_whole_steps_only() -> None:
    """Growing from 0 at 1.5 s to 40 at 3.5 s, then gone: 10 at 2 s and 30 at 3 s."""
    lag = LagSeries(0.0, 5.0)
    lag.add(1.5, 3.5, 0.0, 40.0)
    lag.add(3.6, 3.9, 7.0, 7.0)
    lag.add(4.0, 5.0, 0.0, 5.0)

    assert lag.bytes.tolist() == [0.0, 0.0, 10.0, 30.0, 0.0, 5.0]


def test_lag_is_the_sum_of_all_parts_however_often_one_looks() -> None:
    looked, unlooked = LagSeries(0.0, 9.0), LagSeries(0.0, 9.0)
    for part in range(PARTS + 1):
        for lag in (looked, unlooked):
            lag.add(part % 9, part % 9 + 1.0, 0.0, 2.0)
        if part % 20_000 == 0:
            assert looked.bytes.sum() == 2.0 * (part + 1)

    assert unlooked.bytes.tolist() == looked.bytes.tolist()
    assert unlooked.bytes.sum() == 2.0 * (PARTS + 1)


def test_lag_can_be_forgotten() -> None:
    lag = LagSeries(0.0, 2.0)
    lag.add(0.0, 1.0, 0.0, 4.0)
    assert lag.bytes.tolist() == [0.0, 4.0, 0.0]
    lag.add(1.0, 2.0, 4.0, 8.0)
    lag.clear()

    assert lag.bytes.tolist() == [0.0, 0.0, 0.0]


def test_a_slow_partition_does_not_wait_for_a_fast_one() -> None:
    """Of 100 bytes/s the partition of 10 gets all it needs, the one of 200 gets 90."""
    assert path(load((10.0, 200.0)), 100.0).lags(10.0) == [0.0, 1_100.0]


def test_backlogs_share_what_is_left_equally() -> None:
    data = path(load((200.0, 300.0), (0.0, 0.0)), 100.0)

    assert data.lags(10.0) == [1_500.0, 2_500.0]
    assert data.lags(20.0) == [1_000.0, 2_000.0]


@given(
    capacity=st.floats(1.0, 1e3),
    rates=st.lists(st.floats(0.0, 1e3), max_size=6),
    waiting=st.integers(0, 4),
)
def test_fair_shares_use_the_whole_capacity_and_no_more(
    capacity: float, rates: list[float], waiting: int
) -> None:
    share = fair_share(capacity, rates, waiting)

    used = waiting * share + sum(min(rate, share) for rate in rates)
    assert used == pytest.approx(min(capacity, sum(rates)) if not waiting else capacity)


def test_a_pause_delays_what_is_written_in_it() -> None:
    """2 s without a reader at 50 bytes/s: 100 bytes wait, and are gone 2 s after the start."""
    data = path(load((50.0,)), 100.0, 100.0)
    data.stop_reading(0, A, 3.0)
    data.start_reading(0, B, 5.0)

    assert data.lags(5.0) == [100.0]
    assert data.lags(7.0) == [0.0]
    assert (data.moves.count, data.moves.bytes_per_s, data.moves.paused_s) == (1, 50.0, 2.0)
    latencies = data.finish(10.0)
    assert latencies.percentile(1.0) == pytest.approx(2.0)
    assert latencies.share_within(0.0) == pytest.approx(1 - 4 * 50 / 500)


def test_a_pause_is_as_long_if_backlogs_are_looked_at_meanwhile() -> None:
    data = path(load((50.0,)), 100.0, 100.0)
    data.stop_reading(0, A, 3.0)
    assert data.lags(4.0) == [50.0]
    data.start_reading(0, B, 5.0)

    assert data.lags(5.0) == [100.0]
    assert data.moves.paused_s == 2.0


def test_a_first_reader_and_the_same_reader_again_are_no_moves() -> None:
    data = path(load((50.0,)), 100.0)
    data.stop_reading(0, A, 1.0)
    data.start_reading(0, A, 2.0)

    assert (data.moves.count, data.moves.paused_s) == (0, 1.0)


def test_what_a_removed_consumer_read_waits_for_the_next_one() -> None:
    data = path(load((50.0,)), 100.0, 100.0)
    data.remove_consumer(A, 2.0)

    assert data.lags(4.0) == [100.0]
    data.start_reading(0, B, 6.0)
    assert data.lags(10.0) == [0.0]


def test_what_waits_at_the_end_counts_with_its_age_so_far() -> None:
    data = path(load((50.0,)), 100.0)
    data.stop_reading(0, A, 0.0)

    latencies = data.finish(10.0)
    assert latencies.percentile(1.0) == pytest.approx(10.0)
    assert latencies.percentile(0.5) == pytest.approx(5.0)


def test_neither_the_warm_up_nor_what_waits_of_it_is_counted() -> None:
    found = arrivals([{TopicPartition("t", 0): 50.0}], 10.0, warm_up_s=10.0)
    data = DataPath(found, -10.0)
    data.add_consumer(A, 100.0, -1.0)
    data.start_reading(0, A, -1.0)
    data.begin_counting(0.0)

    latencies = data.finish(10.0)
    assert (latencies.total, latencies.percentile(1.0)) == (500.0, 0.0)


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 300)] * 3), min_size=1, max_size=6),
    capacities=st.lists(st.integers(50, 400), min_size=1, max_size=3),
    moves=st.lists(
        st.tuples(st.floats(0.0, 60.0), st.integers(0, 2), st.integers(0, 2), st.floats(0.0, 9.0)),
        max_size=5,
    ),
)
def test_every_byte_is_read_or_waits(
    rows: list[tuple[int, ...]],
    capacities: list[int],
    moves: list[tuple[float, int, int, float]],
) -> None:
    """Whatever moves when: written = read + waiting, and the latencies are of all bytes."""
    found = load(*(tuple(map(float, row)) for row in rows))
    data, end, now = path(found, *map(float, capacities)), found.ends_at, 0.0
    for gap, index, slot, pause in moves:
        now += gap
        if now + pause > end:
            break
        for owner in range(len(capacities)):
            data.stop_reading(index, Slot(owner), now)
        now += pause
        data.start_reading(index, Slot(slot % len(capacities)), now)

    written = sum(map(sum, rows)) * 10.0
    waiting = sum(data.lags(end))
    read = sum(data.read_by(Slot(slot), end) for slot in range(len(capacities)))
    assert read + waiting == pytest.approx(written, abs=1.0)
    latencies = data.finish(end)
    assert latencies.total == pytest.approx(written, abs=1.0)
    assert latencies.percentile(1.0) <= end
    assert latencies.share_within(end) == pytest.approx(1.0)


def test_times_of_a_week_lose_no_bytes() -> None:
    """The clock resolves 1e-10 s at the end of a week: backlogs end within rounding errors."""
    day = [(2_000_000.0, 2_300_000.1), (1_000_000.3, 1_600_000.7)] * 30
    rows = np.array([(0.0, 0.0), *day])
    edges = (0.0, *(604_000.0 + 10 * row for row in range(len(rows))))
    found = FluidLoad((TopicPartition("t", 0), TopicPartition("t", 1)), edges, rows)
    data = path(found, 3_500_000.0)

    written = sum(map(sum, day)) * 10.0
    assert sum(data.lags(edges[-1])) + data.read_by(A, edges[-1]) == pytest.approx(written, abs=1.0)
    assert data.lags(edges[-1]) == [0.0, 0.0]
    assert 0.0 < data.finish(edges[-1]).percentile(1.0) < 10.0
