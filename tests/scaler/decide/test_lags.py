"""Ends of logs and their rates, and committed offsets beside them."""

import pytest

from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.scaler.decide.lags import (
    BEYOND_S,
    Baseline,
    EndHistory,
    LogEnds,
    TopicTrend,
    Work,
    measured_ends,
    to_be_sized,
    work_of,
)
from binwright.scaler.decide.policy import PartitionLoad

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
KNOWN = {"orders": LogEnds(100.0, {0: 500, 1: 70}, {0: 10.0, 1: 1.0}, 2)}
BOTH = {P0: 200, P1: 70}


def test_measured_logs_are_those_that_are_not_stale() -> None:
    fresh = PartitionRate(0, BytesPerSecond(5_000.0), 30.0, 700, 40, 500.0, 10.0)
    rows = (
        fresh,
        fresh._replace(partition=1, records_per_s=None),
        fresh._replace(partition=2, quality="stale"),
    )
    measurement = Measurement(
        topic="orders",
        at_ms=0,
        monitor="m",
        number=1,
        interval_s=1.0,
        count=3,
        partitions=rows,
    )

    measured = LogEnds(9.0, {0: 700, 1: 700}, {0: 10.0}, 3, starts={0: 40, 1: 40})
    assert measured_ends(measurement, 9.0) == measured


def test_lag_is_what_lies_between_a_commit_and_the_end() -> None:
    work, _ = work_of(BOTH, ["orders"], KNOWN, Baseline(), 90)

    assert work.loads == {P0: PartitionLoad(10, 300), P1: PartitionLoad(1, 0)}
    assert (work.lag, work.rate, work.missing, work.oldest_s) == (300, 11, 0, 100)


def test_a_commit_beyond_the_end_is_no_lag() -> None:
    """The end was looked up before the commit."""
    work, _ = work_of({P0: 600, P1: 70}, ["orders"], KNOWN, Baseline(), 90)

    assert work.lag == 0


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


def logs(
    ends: dict[int, int],
    starts: dict[int, int] | None = None,
    *,
    at_s: float = 100.0,
    topic_id: str = "a",
) -> dict[str, LogEnds]:
    """Return what is known of the topic orders, with rates of 0."""
    rates = dict.fromkeys(ends, 0.0)
    return {"orders": LogEnds(at_s, ends, rates, len(ends), starts=starts or {}, topic_id=topic_id)}


def lags(work: Work) -> list[float]:
    return [work.loads[partition].lag for partition in sorted(work.loads)]


NONE = {"orders": LogEnds(100.0, {}, {}, 0)}


def test_records_that_were_deleted_are_no_lag() -> None:
    kept = logs({0: 5_100, 1: 5_100}, {0: 5_100, 1: 5_000})
    work, _ = work_of({P0: 100, P1: 100}, ["orders"], kept, Baseline(), 90)

    assert (lags(work), work.lost) == ([0, 100], 9_900)


def test_a_group_that_starts_at_the_earliest_record_has_all_records_to_read() -> None:
    kept = logs({0: 500, 1: 70}, {0: 100})
    work, baseline = work_of({}, ["orders"], kept, Baseline(), 90, starts_at="earliest")
    assert (lags(work), work.uncommitted, work.is_new) == ([400, 70], 0, True)

    less = logs({0: 500, 1: 70}, {0: 300})
    work, _ = work_of({}, ["orders"], less, baseline, 90, starts_at="earliest")
    assert (lags(work), work.lost) == ([200, 70], 200)


def test_without_a_commit_records_that_are_there_may_wait() -> None:
    kept = logs({0: 500, 1: 70}, {0: 500, 1: 0})
    work, baseline = work_of({}, ["orders"], kept, Baseline(), 90)
    assert (lags(work), work.uncommitted, work.is_new) == ([0, 0], 1, True)

    later, _ = work_of({}, ["orders"], logs({0: 600, 1: 70}, {0: 500}), baseline, 90)
    assert (lags(later), later.uncommitted) == ([100, 0], 1), "the rest was seen to arrive"
    deleted, _ = work_of({}, ["orders"], logs({0: 500, 1: 70}, {0: 500, 1: 70}), baseline, 90)
    assert deleted.uncommitted == 0
    committed, _ = work_of({P1: 30}, ["orders"], kept, baseline, 90)
    assert (lags(committed), committed.uncommitted, committed.is_new) == ([0, 40], 0, False)


def test_where_a_group_starts_may_be_reported_later() -> None:
    _, baseline = work_of({}, ["orders"], logs({0: 500}), Baseline(), 90)
    work, _ = work_of({}, ["orders"], logs({0: 500}), baseline, 90, starts_at="earliest")

    assert lags(work) == [500]


def test_offsets_that_kafka_has_deleted_count_on_from_the_last_commit() -> None:
    _, baseline = work_of(BOTH, ["orders"], KNOWN, Baseline(), 90)
    assert baseline.topics_of({}) == {"orders"}
    work, _ = work_of({}, baseline.topics_of({}), KNOWN, baseline, 90)

    assert (lags(work), work.uncommitted, work.is_new) == ([300, 0], 0, False)


def test_a_topic_that_the_group_has_left_is_not_remembered() -> None:
    _, baseline = work_of(BOTH, ["orders"], KNOWN, Baseline(), 90)

    assert baseline.topics_of({TopicPartition("clicks", 0): 5}) == {"clicks"}


@pytest.mark.parametrize("offsets", [{}, {P0: 100}], ids=["deleted", "not deleted yet"])
def test_commits_are_void_in_a_topic_that_was_recreated(
    offsets: dict[TopicPartition, int],
) -> None:
    _, baseline = work_of({P0: 100}, ["orders"], logs({0: 100}), Baseline(), 90)
    work, baseline = work_of(offsets, ["orders"], logs({0: 120}, topic_id="b"), baseline, 90)
    assert (lags(work), work.committed) == ([120], {})
    assert baseline.topics_of({TopicPartition("clicks", 0): 5}) == {"clicks", "orders"}

    work, baseline = work_of(offsets, ["orders"], logs({0: 130}, topic_id="b"), baseline, 90)
    assert lags(work) == [130]
    work, baseline = work_of({P0: 110}, ["orders"], logs({0: 130}, topic_id="b"), baseline, 90)
    assert (lags(work), work.committed) == ([20], {P0: 110})
    assert baseline.topics_of({TopicPartition("clicks", 0): 5}) == {"clicks"}


def test_a_topic_that_was_absent_is_another_one_also_without_ids() -> None:
    _, baseline = work_of({P0: 100}, ["orders"], logs({0: 100}, topic_id=""), Baseline(), 90)
    work, baseline = work_of({P0: 100}, ["orders"], NONE, baseline, 90)
    assert (work.absent, work.missing, work.loads) == (("orders",), 0, {})

    work, _ = work_of({P0: 100}, ["orders"], logs({0: 120}, topic_id=""), baseline, 90)
    assert lags(work) == [120]


def test_what_is_not_seen_for_a_while_is_remembered() -> None:
    """A broker that is late must not make an old commit count again."""
    _, baseline = work_of({P0: 100}, ["orders"], logs({0: 100, 1: 9}), Baseline(), 90)
    _, baseline = work_of({P0: 100}, ["orders"], logs({0: 120, 1: 9}, topic_id="b"), baseline, 90)
    refused = {"orders": LogEnds(100.0, {}, {}, 0, refused="no right")}
    half = {"orders": LogEnds(100.0, {1: 9}, {}, 2, topic_id="b")}
    for known in ({}, refused, half):
        work, baseline = work_of({P0: 100}, ["orders"], known, baseline, 90)
        assert work.missing
    work, _ = work_of({P0: 100}, ["orders"], logs({0: 120, 1: 9}, topic_id="b"), baseline, 90)

    assert lags(work) == [120, 9]


def test_guesses_and_commits_beyond_the_end_are_remembered_as_well() -> None:
    seen = logs({0: 50, 1: 70})
    _, baseline = work_of({P0: 60}, ["orders"], seen, Baseline(), 90)
    _, baseline = work_of({P0: 60}, ["orders"], {}, baseline, 90)
    later = logs({0: 50, 1: 70}, at_s=100.0 + BEYOND_S)
    work, _ = work_of({P0: 60}, ["orders"], later, baseline, 90)

    assert (lags(work), work.uncommitted) == ([50, 0], 1)


def test_a_topic_that_kafka_does_not_describe_is_not_known() -> None:
    refused = {"orders": LogEnds(100.0, {}, {}, 0, refused="no right")}
    work, _ = work_of(BOTH, ["orders"], refused, Baseline(), 90)

    assert (work.missing, work.absent, work.refused) == (2, (), ("topic orders: no right",))


def test_a_commit_that_stays_beyond_the_end_is_of_another_log() -> None:
    """The log was cut, or the topic made anew while nobody looked."""
    _, baseline = work_of({P0: 100}, ["orders"], logs({0: 60}), Baseline(), 90)
    early, baseline = work_of({P0: 100}, ["orders"], logs({0: 60}, at_s=105.0), baseline, 90)
    assert lags(early) == [0]
    work, baseline = work_of({P0: 100}, ["orders"], logs({0: 60}, at_s=110.0), baseline, 90)
    assert lags(work) == [60]
    work, _ = work_of({P0: 100}, ["orders"], logs({0: 150}, at_s=120.0), baseline, 90)
    assert lags(work) == [150]


def test_records_wait_where_some_arrive_or_more_are_left_than_stay_anyway() -> None:
    still = Work(loads={P0: PartitionLoad(0, 1), P1: PartitionLoad(0, 1)})

    assert still.waits(0)
    assert not still.waits(1)
    assert Work(loads={P0: PartitionLoad(0.1, 0)}).waits(1)
