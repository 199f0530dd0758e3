"""Committed offsets beside the ends of logs."""

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import Baseline, Work, to_be_sized, work_of
from binwright.scaler.decide.log_ends import LogEnds, Trend
from binwright.scaler.decide.policies.policy import PartitionLoad

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
    known = {"orders": LogEnds(100.0, {0: 500, 1: 70}, {0: 10.0, 1: 1.0}, 2, Trend(10, 0.02))}
    work, _ = work_of(BOTH, ["orders"], known, Baseline(), 90)

    assert work.expected(0) == work.loads
    assert work.expected(15) == {P0: PartitionLoad(15, 300), P1: PartitionLoad(1.5, 0)}
    assert Work(loads=work.loads).expected(15) == work.loads
