"""Rates from samples, against logs whose true load is known."""

from math import inf, nan

import pytest

from binwright.core.messages import PartitionRate
from binwright.core.rate import TopicRates

from .logs import Log, after, feed, speed, taken


def test_one_sample_says_nothing_about_speed() -> None:
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


def test_a_short_window_says_how_short() -> None:
    measured = after(3, TopicRates(), Log())
    assert (speed(measured), measured.window_s) == (1000, 3)


def test_a_full_window_slides() -> None:
    measured = after(100, TopicRates(), Log())
    assert (speed(measured), measured.window_s, measured.bytes_per_record) == (1000, 30, 100)


def test_an_idle_partition_is_known_to_be_idle() -> None:
    assert speed(after(5, TopicRates(), Log(), records=0)) == 0


def test_a_pass_slower_than_the_window_counts_for_the_window() -> None:
    rates, log = TopicRates(window_s=2), Log()
    feed(rates, 0, log)
    measured = feed(rates, 10, log.write(100))
    assert (speed(measured), measured.window_s) == (1000, 2)


def test_after_a_gap_the_window_does_not_shrink_to_the_last_pass() -> None:
    """What piled up in an outage comes in one burst: measured alone, it would frighten."""
    rates, log = TopicRates(window_s=10), Log()
    after(10, rates, log)
    feed(rates, 24, log)
    measured = feed(rates, 25, log.write(150))
    assert (speed(measured), measured.window_s) == (1500, 10)


def test_retention_is_priced_at_recent_bytes_per_record() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    assert speed(feed(rates, 11, log.write(10).retain(90))) == 1000


def test_compaction_shrinks_the_log_without_moving_its_start() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    log.size -= 5000
    assert speed(feed(rates, 11, log.write(10))) == 1000


def test_a_leader_move_is_no_burst() -> None:
    """Replicas of one log differ in size: each cleans when it likes."""
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    log.leader, log.size, log.start = 2, log.size * 3, 50
    assert speed(feed(rates, 11, log.write(10))) == 1000
    log.leader, log.size, log.start = 1, log.size * 3, 0  # back: its start may be older
    assert speed(feed(rates, 12, log.write(10))) == 1000


def test_records_that_were_never_weighed_have_no_rate() -> None:
    rates, log = TopicRates(), Log().write(50)
    feed(rates, 0, log)
    measured = feed(rates, 1, log.write(10).retain(20))
    assert (speed(measured), measured.window_s, measured.bytes_per_record) == (None, 1, None)


def test_the_first_clean_interval_prices_those_before_it() -> None:
    rates, log = TopicRates(), Log().write(50)
    feed(rates, 0, log)
    feed(rates, 1, log.write(10).retain(20))
    assert speed(feed(rates, 2, log.write(10))) == 1000


def test_retention_of_an_idle_log_is_no_write() -> None:
    rates, log = TopicRates(), Log().write(50)
    feed(rates, 0, log)
    assert speed(feed(rates, 1, log.retain(20))) == 0


def test_the_price_is_remembered_when_no_clean_interval_is_left() -> None:
    rates, log = TopicRates(window_s=3), Log()
    after(5, rates, log)
    for now in range(6, 20):
        measured = feed(rates, now, log.write(10).retain(10))
    assert (speed(measured), measured.bytes_per_record) == (1000, 100)


def test_the_price_follows_the_records_size() -> None:
    """The lifetime average was up to 560 % off here."""
    rates, log = TopicRates(), Log()
    for now in range(1000):
        feed(rates, now, log.write(10, record_bytes=1000))
    for now in range(1000, 1031):
        feed(rates, now, log.write(10, record_bytes=100))
    measured = feed(rates, 1031, log.write(10, record_bytes=100).retain(500, record_bytes=1000))
    assert speed(measured) == 1000


def test_a_price_is_averaged_unless_it_leaps() -> None:
    rates, log = TopicRates(), Log()
    feed(rates, 0, log)
    prices = [
        feed(rates, now, log.write(10, size)).bytes_per_record
        for now, size in enumerate((100, 100, 150, 5000, 50), 1)
    ]
    assert prices == [100, 100, 125, 5000, 50]


def test_a_missing_size_counts_as_not_clean() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    log.told = False
    assert speed(feed(rates, 11, log.write(10))) == 1000
    log.told = True
    assert speed(feed(rates, 12, log.write(10))) == 1000


def test_without_any_size_there_is_no_rate() -> None:
    log = Log()
    log.told = False
    assert after(40, TopicRates(), log).rate is None


def test_a_truncated_log_begins_anew() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    log.end -= 30
    log.size -= 3000
    assert feed(rates, 11, log).rate is None
    assert speed(feed(rates, 12, log.write(10))) == 1000


def test_a_recreated_partition_that_outgrew_the_old_one_begins_anew() -> None:
    rates, log = TopicRates(), Log().write(50).retain(50)
    after(10, rates, log)
    assert feed(rates, 11, Log().write(500, record_bytes=7)).rate is None


def test_a_partition_without_sample_keeps_its_rate_while_the_window_holds_some() -> None:
    rates, log = TopicRates(), Log()
    after(30, rates, log)
    held = [feed(rates, now, None) for now in (31, 59, 60, 61)]
    assert [(speed(m), m.window_s) for m in held] == [(1000, 29), (1000, 1), (None, 0), (None, 0)]


def test_the_next_sample_bridges_a_gap() -> None:
    rates, log = TopicRates(), Log()
    after(10, rates, log)
    feed(rates, 14, None)
    measured = feed(rates, 15, log.write(50))
    assert (speed(measured), measured.window_s) == (1000, 15)


def test_a_partition_that_nobody_leads_yet_is_listed_without_rate() -> None:
    assert feed(TopicRates(), 0, None) == PartitionRate(
        partition=0,
        rate=None,
        window_s=0,
        end=0,
        start=0,
        bytes_per_record=None,
        quality="stale",
    )


def test_partitions_appear_in_order_and_vanish() -> None:
    rates, log = TopicRates(), Log()
    rates.feed(0, {2: log.sample, 0: log.sample})
    measured = rates.feed(1, {1: log.sample, 2: log.sample})
    assert [(m.partition, speed(m)) for m in measured] == [(1, None), (2, 0)]
    assert rates.feed(2, {0: log.sample})[0].rate is None


@pytest.mark.parametrize("now", [0.0, -1.0])
def test_time_must_pass(now: float) -> None:
    rates = TopicRates()
    feed(rates, 0, Log())
    with pytest.raises(ValueError, match="time must pass"):
        feed(rates, now, Log())


@pytest.mark.parametrize("window_s", [0.0, -1.0, inf, nan])
def test_a_window_must_have_a_length(window_s: float) -> None:
    with pytest.raises(ValueError, match="window_s"):
        TopicRates(window_s)


# --- how far it can be trusted -----------------------------------------------------------------


def test_half_a_window_is_warm_enough() -> None:
    qualities = [after(passes, TopicRates(), Log()).quality for passes in (0, 14, 15, 40)]
    assert qualities == ["warming", "warming", "measured", "measured"]


def test_records_and_size_are_told_beside_the_rate() -> None:
    measured = after(40, TopicRates(), Log())
    assert (measured.records_per_s, measured.size, measured.leader) == (10, 40_000, 1)


def test_a_partition_without_sample_is_stale_and_says_for_how_long() -> None:
    rates, log = TopicRates(), Log()
    after(30, rates, log)
    held = [feed(rates, now, None) for now in (31, 45)]
    assert [(m.quality, m.age_s) for m in held] == [("stale", 1), ("stale", 15)]
    assert feed(rates, 46, log.write(160)).quality == "measured"


def test_a_few_priced_records_do_not_make_an_estimate_and_many_do() -> None:
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


# --- when samples were taken, and by whom ------------------------------------------------------


def test_a_sample_counts_from_when_it_was_taken() -> None:
    """One slow broker must not bend the rates of what the others told before."""
    rates, log = TopicRates(), Log()
    rates.feed(2, {0: taken(log, 0)})
    measured = rates.feed(11, {0: taken(log.write(100), 10)})[0]
    assert (speed(measured), measured.window_s, measured.age_s) == (1000, 10, 1)


def test_a_sample_that_is_not_newer_counts_as_none() -> None:
    rates, log = TopicRates(), Log()
    rates.feed(1, {0: taken(log, 1)})
    rates.feed(2, {0: taken(log.write(10), 2)})
    measured = rates.feed(3, {0: taken(log.write(50), 2)})[0]
    assert (speed(measured), measured.quality, measured.end) == (1000, "stale", 10)


def test_a_clock_that_runs_ahead_is_cut_to_now() -> None:
    rates, log = TopicRates(), Log()
    rates.feed(1, {0: taken(log, 9)})
    assert speed(rates.feed(2, {0: taken(log.write(10), 10)})[0]) == 1000
