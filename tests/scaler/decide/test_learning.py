"""What a group shows of itself, with its confidence."""

from collections.abc import Sequence

import pytest

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.lags import Work
from binwright.scaler.decide.learning import KEPT, Estimate, Learnt, batch_gap_s
from binwright.scaler.decide.policy import PartitionLoad


@pytest.mark.parametrize(
    ("samples", "confidence", "known"),
    [
        ((), 0.0, 9.0),
        ((2.0,), 1 / 3, 9.0),
        ((2.0, 2.0), 0.5, 2.0),
        ((2.0, 2.0, 2.0), 0.6, 2.0),
        ((1.0, 2.0, 3.0), 0.3, 9.0),  # they differ by half of the median
        ((0.0, 0.0, 0.0), 0.6, 0.0),
        ((0.0, 0.0, 1.0, 1.0, 0.0), 5 / 7, 0.0),
        ((0.0, 1.0), 0.0, 9.0),
    ],
)
def test_a_value_counts_from_a_few_samples_that_agree(
    samples: tuple[float, ...], confidence: float, known: float
) -> None:
    estimate = Estimate(samples)
    assert estimate.confidence == pytest.approx(confidence)
    assert (estimate.known(9.0), bool(estimate)) == (known, bool(samples))


def test_only_the_last_samples_are_kept() -> None:
    estimate = Estimate((1.0,) * KEPT).with_samples(*(5.0,) * (KEPT // 2 + 1))
    assert (len(estimate.samples), estimate.value) == (KEPT, 5.0)


P, Q = TopicPartition("t", 0), TopicPartition("t", 1)


def seen(committed: dict[TopicPartition, int], lag: float) -> Work:
    return Work(
        loads={P: PartitionLoad(10.0, lag), Q: PartitionLoad(0.0, 0.0)}, committed=committed
    )


def commits(every_s: float, look_s: float, looks: int, *, lag: float = 5.0) -> Estimate:
    """Return what is learnt of a partition that is committed every so often."""
    learnt = Learnt()
    for number in range(looks):
        at_s = number * look_s
        learnt = learnt.with_commits(at_s, seen({P: int(at_s // every_s)}, lag))
    return learnt.commit_interval_s


def test_the_commit_interval_is_what_records_wait_for_a_commit() -> None:
    assert commits(5.0, 1.0, 40).known(0.0) == 5.0


def test_a_group_that_commits_often_commits_at_each_look() -> None:
    assert commits(0.2, 2.0, 20).known(0.0) == 2.0


def test_where_no_record_waits_nothing_is_learnt_of_commits() -> None:
    assert not commits(5.0, 1.0, 40, lag=0.0)


def test_a_group_that_commits_no_more_teaches_no_long_interval() -> None:
    assert not commits(1e9, 1.0, 40)


def grown(*, reading: int) -> Learnt:
    return Learnt().with_order(10.0, 1, 3).with_readers(14.0, reading)


def test_a_start_ends_when_all_that_were_ordered_read() -> None:
    assert grown(reading=2).start_s == Estimate()
    assert grown(reading=3).start_s == Estimate((4.0,))
    assert grown(reading=3).with_readers(20.0, 3).start_s == Estimate((4.0,))


def test_fewer_replicas_start_nothing() -> None:
    learnt = Learnt().with_order(10.0, 1, 3).with_order(11.0, 3, 2)
    assert learnt.with_readers(14.0, 3).start_s == Estimate()


def test_rebalances_are_timed() -> None:
    assert Learnt().with_rebalance(0.6).rebalance_s == Estimate((0.6,))


def looks(came: Sequence[int], every_s: float = 0.1) -> list[tuple[float, int]]:
    """Return looks between which so many records come."""
    ends = [sum(came[:number]) for number in range(len(came) + 1)]
    return [(number * every_s, end) for number, end in enumerate(ends)]


@pytest.mark.parametrize(
    ("came", "gap_s"),
    [
        ([90, *[0] * 9] * 6, 1.0),
        ([50, 40, *[0] * 8] * 6, 1.0),  # a batch in two looks
        ([1] * 60, 0.0),
        ([1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1], 0.0),  # few, irregular
        ([*[0] * 30, 90, *[0] * 29], None),
        ([0] * 60, None),
    ],
)
def test_batches_differ_from_single_records(came: list[int], gap_s: float | None) -> None:
    found = batch_gap_s(looks(came))
    assert found == (None if gap_s is None else pytest.approx(gap_s))


def test_a_close_look_counts_where_it_shows_something() -> None:
    assert Learnt().with_arrivals(looks([0] * 60)) == Learnt()
    assert Learnt().with_arrivals(looks([1] * 60)).burst_s == Estimate((0.0,))
