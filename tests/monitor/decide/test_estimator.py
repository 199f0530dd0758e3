"""Rates from samples, against logs whose true load is known."""

from math import inf, nan

import pytest
from tests.monitor.decide.logs import Log, after, feed, sample_at, speed

from binwright.monitor.decide.estimator import TopicRates
from binwright.protocol.metrics import PartitionRate


def test_one_sample_gives_no_rate() -> None:
    assert feed(TopicRates(), 0, Log().write(7)) == PartitionRate(
        partition=0,
        rate=None,
        window_s=0,
        end=7,
        start=0,
        bytes_per_record=None,
        size=700,
        quality="warming",
        leader=1,
    )


def test_a_short_window_has_its_length() -> None:
    measured = after(3, TopicRates(), Log())
    assert (speed(measured), measured.window_s) == (1000, 3)


def test_a_full_window_slides() -> None:
    measured = after(100, TopicRates(), Log())
    assert (speed(measured), measured.window_s, measured.bytes_per_record) == (1000, 30, 100)


def test_an_idle_partition_has_the_rate_0() -> None:
    assert speed(after(5, TopicRates(), Log(), records=0)) == 0


def test_an_interval_longer_than_the_window_counts_in_part() -> None:
    rates, log = TopicRates(window_s=2), Log()
    feed(rates, 0, log)
    measured = feed(rates, 10, log.write(100))
    assert (speed(measured), measured.window_s) == (1000, 2)


def test_after_a_gap_the_window_covers_the_gap() -> None:
    """Records that piled up in an outage arrive in one burst, whose own rate would be too high."""
    rates, log = TopicRates(window_s=10), Log()
    after(10, rates, log)
    feed(rates, 24, log)
    measured = feed(rates, 25, log.write(150))
    assert (speed(measured), measured.window_s) == (1500, 10)


def test_during_retention_records_count_with_recent_bytes_per_record() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    assert speed(feed(rates, 11, log.write(10).retain(90))) == 1000


def test_compaction_is_detected_by_a_falling_size() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    log.size -= 5000
    assert speed(feed(rates, 11, log.write(10))) == 1000


def test_a_new_leader_does_not_look_like_a_burst() -> None:
    """Replicas of one log differ in size, because each is cleaned at its own time."""
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    log.leader, log.size, log.start = 2, log.size * 3, 50
    assert speed(feed(rates, 11, log.write(10))) == 1000
    log.leader, log.size, log.start = 1, log.size * 3, 0  # back: its start may be older
    assert speed(feed(rates, 12, log.write(10))) == 1000


def test_without_bytes_per_record_there_is_no_rate() -> None:
    rates, log = TopicRates(), Log().write(50)
    feed(rates, 0, log)
    measured = feed(rates, 1, log.write(10).retain(20))
    assert (speed(measured), measured.window_s, measured.bytes_per_record) == (None, 1, None)


def test_the_first_clean_interval_gives_bytes_per_record_to_earlier_ones() -> None:
    rates, log = TopicRates(), Log().write(50)
    feed(rates, 0, log)
    feed(rates, 1, log.write(10).retain(20))
    assert speed(feed(rates, 2, log.write(10))) == 1000


def test_retention_of_an_idle_log_is_not_a_write() -> None:
    rates, log = TopicRates(), Log().write(50)
    feed(rates, 0, log)
    assert speed(feed(rates, 1, log.retain(20))) == 0


def test_bytes_per_record_outlast_the_clean_intervals() -> None:
    rates, log = TopicRates(window_s=3), Log()
    after(5, rates, log)
    for now in range(6, 20):
        measured = feed(rates, now, log.write(10).retain(10))
    assert (speed(measured), measured.bytes_per_record) == (1000, 100)


def test_bytes_per_record_follow_the_records_size() -> None:
    """The lifetime average was up to 560 % off here."""
    rates, log = TopicRates(), Log()
    for now in range(1000):
        feed(rates, now, log.write(10, record_bytes=1000))
    for now in range(1000, 1031):
        feed(rates, now, log.write(10, record_bytes=100))
    measured = feed(rates, 1031, log.write(10, record_bytes=100).retain(500, record_bytes=1000))
    assert speed(measured) == 1000


def test_bytes_per_record_are_averaged_unless_they_change_by_the_factor() -> None:
    rates, log = TopicRates(), Log()
    feed(rates, 0, log)
    prices = [
        feed(rates, now, log.write(10, size)).bytes_per_record
        for now, size in enumerate((100, 100, 150, 5000, 50), 1)
    ]
    assert prices == [100, 100, 125, 5000, 50]


def test_an_interval_without_a_size_is_not_clean() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    log.size_known = False
    assert speed(feed(rates, 11, log.write(10))) == 1000
    log.size_known = True
    assert speed(feed(rates, 12, log.write(10))) == 1000


def test_without_any_size_there_is_no_rate() -> None:
    log = Log()
    log.size_known = False
    assert after(40, TopicRates(), log).rate is None


def test_a_truncated_log_gets_a_new_window() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    log.end -= 30
    log.size -= 3000
    assert feed(rates, 11, log).rate is None
    assert speed(feed(rates, 12, log.write(10))) == 1000


def test_a_recreated_partition_that_is_longer_than_before_gets_a_new_window() -> None:
    rates, log = TopicRates(), Log().write(50).retain(50)
    after(10, rates, log)
    assert feed(rates, 11, Log().write(500, record_bytes=7)).rate is None


def test_a_partition_without_a_sample_keeps_its_rate_within_the_window() -> None:
    rates, log = TopicRates(), Log()
    after(30, rates, log)
    held = [feed(rates, now, None) for now in (31, 59, 60, 61)]
    assert [(speed(m), m.window_s) for m in held] == [(1000, 29), (1000, 1), (None, 0), (None, 0)]


def test_the_next_sample_covers_a_gap() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    feed(rates, 14, None)
    measured = feed(rates, 15, log.write(50))
    assert (speed(measured), measured.window_s) == (1000, 15)


def test_a_partition_without_a_leader_is_listed_without_a_rate() -> None:
    assert feed(TopicRates(), 0, None) == PartitionRate(
        partition=0,
        rate=None,
        window_s=0,
        end=0,
        start=0,
        bytes_per_record=None,
        quality="stale",
    )


def test_partitions_are_listed_in_order_until_they_vanish() -> None:
    rates, log = TopicRates(), Log()
    rates.feed(0, {2: log.sample, 0: log.sample})
    measured = rates.feed(1, {1: log.sample, 2: log.sample})
    assert [(m.partition, speed(m)) for m in measured] == [(1, None), (2, 0)]
    assert rates.feed(2, {0: log.sample})[0].rate is None


@pytest.mark.parametrize("now", [0.0, -1.0])
def test_time_must_increase(now: float) -> None:
    rates = TopicRates()
    feed(rates, 0, Log())
    with pytest.raises(ValueError, match="time must pass"):
        feed(rates, now, Log())


@pytest.mark.parametrize("window_s", [0.0, -1.0, inf, nan])
def test_the_window_must_be_positive_and_finite(window_s: float) -> None:
    with pytest.raises(ValueError, match="window_s"):
        TopicRates(window_s)


# --- quality -----------------------------------------------------------------------------------


def test_the_quality_is_warming_below_half_a_window() -> None:
    qualities = [after(passes, TopicRates(), Log()).quality for passes in (0, 14, 15, 40)]
    assert qualities == ["warming", "warming", "measured", "measured"]


def test_records_and_size_are_returned_with_the_rate() -> None:
    measured = after(40, TopicRates(), Log())
    assert (measured.records_per_s, measured.size, measured.leader) == (10, 40_000, 1)


def test_a_partition_without_a_sample_is_stale_and_has_its_age() -> None:
    rates, log = TopicRates(), Log()
    after(30, rates, log)
    held = [feed(rates, now, None) for now in (31, 45)]
    assert [(m.quality, m.age_s) for m in held] == [("stale", 1), ("stale", 15)]
    assert feed(rates, 46, log.write(160)).quality == "measured"


def test_the_quality_is_estimated_above_a_share_of_estimated_bytes() -> None:
    rates, log = TopicRates(), Log()
    after(30, rates, log)
    qualities = [feed(rates, now, log.write(10).retain(200)).quality for now in range(31, 41)]
    assert qualities == ["measured"] * 3 + ["estimated"] * 7


def test_an_estimate_ends_when_its_intervals_have_left_the_window() -> None:
    rates, log = TopicRates(window_s=10), Log()
    after(10, rates, log)
    for now in range(11, 15):
        feed(rates, now, log.write(10).retain(20))
    qualities = [feed(rates, now, log.write(10)).quality for now in range(15, 25)]
    assert qualities == ["estimated"] * 8 + ["measured"] * 2


# --- the times of samples ----------------------------------------------------------------------


def test_a_sample_counts_at_the_time_when_it_was_taken() -> None:
    """A slow broker must not distort the rates of partitions on other brokers."""
    rates, log = TopicRates(), Log()
    rates.feed(2, {0: sample_at(log, 0)})
    measured = rates.feed(11, {0: sample_at(log.write(100), 10)})[0]
    assert (speed(measured), measured.window_s, measured.age_s) == (1000, 10, 1)


def test_a_sample_that_is_not_newer_counts_as_none() -> None:
    rates, log = TopicRates(), Log()
    rates.feed(1, {0: sample_at(log, 1)})
    rates.feed(2, {0: sample_at(log.write(10), 2)})
    measured = rates.feed(3, {0: sample_at(log.write(50), 2)})[0]
    assert (speed(measured), measured.quality, measured.end) == (1000, "stale", 10)


def test_a_sample_from_the_future_counts_as_of_now() -> None:
    rates, log = TopicRates(), Log()
    rates.feed(1, {0: sample_at(log, 9)})
    assert speed(rates.feed(2, {0: sample_at(log.write(10), 10)})[0]) == 1000
