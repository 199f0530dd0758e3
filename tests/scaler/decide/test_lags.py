"""Ends of logs and their rates, and committed offsets beside them."""

import pytest

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import (
    Baseline,
    EndHistory,
    LogEnds,
    TopicTrend,
    Work,
    to_be_sized,
    work_of,
)
from binwright.scaler.decide.policy import PartitionLoad

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
KNOWN = {"orders": LogEnds(100.0, {0: 500, 1: 70}, {0: 10.0, 1: 1.0}, 2)}
BOTH = {P0: 200, P1: 70}


def test_lag_is_what_lies_between_a_commit_and_the_end() -> None:
    work, _ = work_of(BOTH, ["orders"], KNOWN, Baseline(), 90)

    assert work.loads == {P0: PartitionLoad(10, 300), P1: PartitionLoad(1, 0)}
    assert (work.lag, work.rate, work.missing, work.oldest_s) == (300, 11, 0, 100)


def test_a_commit_beyond_the_end_is_no_lag() -> None:
    """The end was looked up before the commit."""
    work, _ = work_of({P0: 600, P1: 70}, ["orders"], KNOWN, Baseline(), 90)

    assert work.lag == 0


def test_without_a_commit_lag_counts_from_the_first_end_that_was_seen() -> None:
    first, baseline = work_of({P0: 200}, ["orders"], KNOWN, Baseline(), 90)
    later = {"orders": LogEnds(130.0, {0: 500, 1: 75}, {0: 10.0, 1: 1.0}, 2)}
    second, _ = work_of({P0: 200}, ["orders"], later, baseline, 90)

    assert first.loads[P1].lag == 0
    assert second.loads[P1].lag == 5


def test_ends_that_are_out_of_date_are_used_and_counted() -> None:
    work, _ = work_of(BOTH, ["orders"], KNOWN, Baseline(), 101)

    assert (work.lag, work.missing) == (300, 2)


def test_partitions_without_end_or_rate_are_counted() -> None:
    known = {"orders": LogEnds(100.0, {0: 500, 1: 70}, {0: 10.0}, 3)}
    work, _ = work_of(BOTH, ["orders"], known, Baseline(), 90)

    assert set(work.loads) == {P0, P1}
    assert work.missing == 2


def test_a_topic_without_ends_counts_its_committed_partitions_at_least_one() -> None:
    work, _ = work_of(BOTH, ["audit", "orders"], {}, Baseline(), 90)

    assert (work.loads, work.missing) == ({}, 3)


def test_lag_that_waits_for_a_commit_is_nothing_to_catch_up() -> None:
    loads = {P0: PartitionLoad(10, 300), P1: PartitionLoad(10, 40)}

    assert to_be_sized(loads, 5) == {P0: PartitionLoad(10, 250), P1: PartitionLoad(10, 0)}


def test_no_work_is_known_at_first() -> None:
    assert (Work().lag, Work().rate, Work().missing) == (0, 0, 0)


def test_rates_are_those_to_be_expected_when_a_replica_reads() -> None:
    known = {"orders": LogEnds(100.0, {0: 500, 1: 70}, {0: 10.0, 1: 1.0}, 2, TopicTrend(10, 0.02))}
    work, _ = work_of(BOTH, ["orders"], known, Baseline(), 90)

    assert work.expected(0) == work.loads
    assert work.expected(15) == {P0: PartitionLoad(15, 300), P1: PartitionLoad(1.5, 0)}
    assert Work(loads=work.loads).expected(15) == work.loads


def test_a_rate_is_what_arrived_since_the_first_look_up() -> None:
    history = EndHistory().with_ends(0, {0: 100}).with_ends(30, {0: 400})

    assert history.latest(1).rates == {0: 10}


def test_a_single_look_up_gives_no_rate() -> None:
    found = EndHistory().with_ends(5, {0: 100}).latest(2)

    assert (found.rates, found.ends, found.at_s, found.count) == ({}, {0: 100}, 5, 2)


def test_look_ups_older_than_the_window_are_forgotten() -> None:
    history = EndHistory()
    for at_s in range(0, 150, 30):
        history = history.with_ends(at_s, {0: at_s * at_s})

    assert [at for at, _ in history.looked_up] == [60, 90, 120]


def test_a_rate_reaches_back_over_look_ups_that_are_far_apart() -> None:
    history = EndHistory().with_ends(0, {0: 0}).with_ends(200, {0: 400})

    assert history.latest(1).rates == {0: 2}


def test_a_new_partition_has_no_rate_yet_and_a_truncated_one_none_at_all() -> None:
    history = EndHistory().with_ends(0, {0: 100}).with_ends(10, {0: 50, 1: 70})

    assert history.latest(2).rates == {0: 0}


def test_the_window_may_be_shorter() -> None:
    history = EndHistory(window_s=20)
    for at_s in range(0, 50, 10):
        history = history.with_ends(at_s, {0: at_s * at_s})

    assert [at for at, _ in history.looked_up] == [20, 30, 40]


def test_a_trend_is_the_difference_between_the_halves_of_the_time() -> None:
    """10/s, then 30/s: it grows by 2/s each second, a tenth of the mean, 10 s after the middle."""
    history = EndHistory().with_ends(0, {0: 0, 1: 0}).with_ends(10, {0: 60, 1: 40})
    history = history.with_ends(20, {0: 260, 1: 140})

    assert history.latest(2).trend == TopicTrend(10, 0.1)


def test_a_trend_takes_the_look_up_next_to_the_middle() -> None:
    history = EndHistory().with_ends(0, {0: 0}).with_ends(4, {0: 40}).with_ends(19, {0: 190})

    trend = history.with_ends(20, {0: 200}).latest(1).trend
    assert trend.age_s == 10
    assert trend.growth == pytest.approx(0)


def test_without_two_halves_or_without_records_there_is_no_trend() -> None:
    two = EndHistory().with_ends(0, {0: 0}).with_ends(10, {0: 50})
    none = two.with_ends(20, {1: 50})
    still = EndHistory().with_ends(0, {0: 5}).with_ends(10, {0: 5}).with_ends(20, {0: 5})

    assert two.latest(1).trend == none.latest(2).trend == still.latest(1).trend == TopicTrend()


def test_a_rising_rate_is_that_when_a_new_replica_reads() -> None:
    assert TopicTrend(10, 0.02).factor(5) == pytest.approx(1.3)
    assert TopicTrend(30, 0.1).factor(60) == 2


def test_a_falling_rate_is_that_of_the_later_half() -> None:
    """From 30/s to 10/s at once: more of a fall is not to be expected."""
    history = EndHistory().with_ends(0, {0: 0}).with_ends(10, {0: 300}).with_ends(20, {0: 400})
    found = history.latest(1)

    assert found.rates[0] * found.trend.factor(5) == pytest.approx(10)


def test_a_rate_is_never_negative() -> None:
    """Nothing arrives any more, and no look-up lies in the very middle."""
    history = EndHistory().with_ends(0, {0: 0}).with_ends(9, {0: 300}).with_ends(20, {0: 300})

    assert history.latest(1).trend.factor(5) == 0
