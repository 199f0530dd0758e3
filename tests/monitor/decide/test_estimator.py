"""Rates from samples, against logs whose true load is known."""

from collections.abc import Iterator
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.monitor.decide.logs import Log, after, feed, sample_at, speed

from binwright.monitor.decide.estimator import TopicRates
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.ports.kafka import LogSample


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


# --- Rates of partitions whose sizes are sampled in turns, or never ------------------------------


def turn(rates: TopicRates, now: float, log: Log, every: int) -> PartitionRate:
    log.size_known = now % every == 0
    return feed(rates, now, log)


def test_rates_are_exact_at_each_size() -> None:
    rates, log = TopicRates(window_s=12), Log()
    for now in range(25):
        record_bytes = 100 if now < 13 else 1000
        measured = turn(rates, now, log.write(10, record_bytes), every=6)
    assert (speed(measured), measured.quality) == (10_000, "measured")
    assert measured.bytes_per_record == 1000


def test_between_two_sizes_records_are_estimated() -> None:
    rates, log = TopicRates(window_s=12), Log()
    for now in range(17):
        measured = turn(rates, now, log.write(10), every=6)
    assert (speed(measured), measured.quality, measured.size) == (1000, "estimated", 13_000)


def test_sizes_further_apart_than_the_window_still_give_bytes_per_record() -> None:
    rates, log = TopicRates(window_s=4), Log()
    for now in range(61):
        measured = turn(rates, now, log.write(10), every=20)
    assert (speed(measured), measured.window_s) == (1000, 4)


def test_retention_between_two_sizes_leaves_bytes_per_record() -> None:
    rates, log = TopicRates(), Log()
    for now in range(25):
        if now == 15:
            log.retain(30)
        measured = turn(rates, now, log.write(10), every=6)
    assert speed(measured) == 1000


def test_the_bytes_of_a_burst_are_distributed_by_its_records() -> None:
    rates, log = TopicRates(window_s=10), Log()
    for now in range(7):
        turn(rates, now, log.write(90 if now == 1 else 2), every=6)
    for now in range(7, 13):
        measured = turn(rates, now, log, every=6)
    assert speed(measured) == 4 * 200 / 10


def test_size_without_records_counts_once() -> None:
    """The end was sampled just before the size: bytes show first, their records a pass later."""
    rates, log = TopicRates(), Log()
    feed(rates, 0, log)
    log.size += 1000
    assert speed(feed(rates, 1, log)) == 1000


def test_partitions_without_sizes_lack_them_longest_due_first() -> None:
    rates = TopicRates(window_s=8)
    first, second, idle = Log(), Log(), Log()
    first.size_known = second.size_known = idle.size_known = False
    rates.feed(0, {0: idle.sample, 2: first.sample})
    rates.feed(1, {0: idle.sample, 2: first.write(5).sample, 1: second.sample})
    rates.feed(2, {0: idle.sample, 2: first.write(5).sample, 1: second.write(5).sample})
    assert rates.lacking_sizes() == (2, 1)


def test_batches_give_bytes_per_record_where_sizes_are_unknown() -> None:
    rates, log = TopicRates(window_s=8), Log()
    log.size_known = False
    for now in range(20):
        price = 100.0 if rates.lacking_sizes() else None
        measured = rates.feed(now, {0: sample_at(log.write(10), now, price)})[0]
    assert (speed(measured), measured.quality, measured.size) == (1000, "estimated", None)
    assert measured.bytes_per_record == 100


def test_a_first_sample_may_have_a_batch() -> None:
    rates, log = TopicRates(), Log()
    log.size_known = False
    rates.feed(0, {0: sample_at(log.write(10), 0, 100.0)})
    assert speed(rates.feed(1, {0: sample_at(log.write(10), 1)})[0]) == 1000


def test_partitions_with_clean_sizes_lack_none() -> None:
    rates, log = TopicRates(window_s=8), Log()
    for now in range(20):
        feed(rates, now, log.write(10))
        assert now == 0 or not rates.lacking_sizes()


def test_with_retention_in_every_pass_sizes_are_lacking_after_a_while() -> None:
    """Without it a change of the records' size would stay undetected during retention."""
    rates, log = TopicRates(window_s=30), Log()
    after(10, rates, log)
    blind = []
    for now in range(11, 15):
        feed(rates, now, log.write(10).retain(20))
        blind.append(rates.lacking_sizes())
    assert blind == [(), (), (), (0,)]


# --- Properties of rates for any samples and any disturbance of a log ----------------------------

LEADERS = st.integers(1, 3)
SAMPLES = st.one_of(
    st.none(),
    st.builds(
        lambda leader, start, kept, size: LogSample(leader, start, start + kept, size),
        LEADERS, st.integers(0, 1000), st.integers(0, 1000), st.none() | st.integers(0, 10**9),
    ),
)  # fmt: skip
GAPS = st.floats(0.01, 100)


@given(st.lists(st.tuples(GAPS, st.dictionaries(st.integers(0, 3), SAMPLES)), max_size=60))
def test_no_rate_is_negative_for_any_samples(
    passes: list[tuple[float, dict[int, LogSample | None]]],
) -> None:
    rates, now = TopicRates(), 0.0
    for gap, samples in passes:
        now += gap
        for measured in rates.feed(now, samples):
            assert measured.rate is None or 0 <= measured.rate < inf
            assert measured.window_s >= 0
            assert measured.bytes_per_record is None or 0 < measured.bytes_per_record < inf


def disturbed(log: Log, disturbance: tuple[str, int], last: LogSample) -> Log | None:
    """Disturb a log of 100-byte records, as brokers do; None: there is no sample."""
    match disturbance:
        case "retain", records:
            log.retain(records)
        case "compact", records:
            shrunk = log.size - records * 100
            # One that frees less than was written since cannot be detected; see the module.
            log.size = shrunk if 0 <= shrunk < (last.size or 0) else log.size
        case "move", number:
            log.leader += number
            log.size += number * 1000  # each replica cleans for itself
        case "hide", number:
            log.size_known = bool(number % 2)
        case "silence", _:
            return None
    return log


KINDS = ["nothing", "nothing", "retain", "compact", "move", "hide", "silence"]
DISTURBANCES = st.tuples(st.sampled_from(KINDS), st.integers(1, 5000))


@given(st.integers(0, 1000), st.lists(DISTURBANCES, max_size=100))
def test_a_constant_load_is_measured_exactly_through_any_disturbance(
    load: int, disturbances: list[tuple[str, int]]
) -> None:
    rates, log = TopicRates(), Log().write(10_000)
    last = log.write(load).sample
    feed(rates, 0, log)
    assert speed(feed(rates, 1, log.write(load))) == load * 100  # so that the price is known
    for now, disturbance in enumerate(disturbances, 2):
        log.write(load)
        seen = disturbed(log, disturbance, last)
        last = seen.sample if seen else last
        measured = feed(rates, now, seen)
        assert measured.rate is not None or not seen
        assert measured.rate is None or speed(measured) == pytest.approx(load * 100)


STEPS = st.tuples(st.integers(0, 5000), st.integers(1, 2000))


def stepped(load: tuple[int, int], log: Log, passes: range, rates: TopicRates) -> Iterator[float]:
    records, record_bytes = load
    for now in passes:
        measured = feed(rates, now / 2, log.write(records, record_bytes))
        yield measured.rate or 0.0


@given(STEPS, STEPS, st.integers(61, 200))
def test_within_a_window_after_a_step_the_rate_is_97_percent_there(
    before: tuple[int, int], then: tuple[int, int], at: int
) -> None:
    rates, log = TopicRates(), Log()
    *_, old = stepped(before, log, range(at), rates)
    *_, new = stepped(then, log, range(at, at + 60), rates)
    target = then[0] * then[1] * 2
    assert abs(new - target) <= 0.03 * abs(old - target) + 1e-6


@given(st.lists(st.floats(0.5, 1.5), min_size=61, max_size=90), st.integers(1, 10**6))
def test_late_passes_do_not_distort_the_rate(gaps: list[float], load: int) -> None:
    """The times of samples count, not their number."""
    rates, now = TopicRates(), 0.0
    for gap in gaps:
        now += gap
        measured = rates.feed(now, {0: LogSample(1, 0, int(now * load), int(now * load) * 10)})[0]
    assert speed(measured) == pytest.approx(load * 10, rel=0.01, abs=20)
    assert measured.window_s == pytest.approx(30)


@given(st.lists(st.integers(0, 2**40), min_size=61, max_size=61))
def test_a_burst_leaves_no_rounding_errors(sizes: list[int]) -> None:
    """The sums are integers: once a burst has left the window the rate is exactly 0 again."""
    rates, log = TopicRates(), Log()
    for now, size in enumerate(sizes):
        feed(rates, now, log.write(1, size))
    for now in range(61, 91):
        measured = feed(rates, now, log)
    assert speed(measured) == 0
