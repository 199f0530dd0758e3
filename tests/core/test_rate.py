"""Rates from samples, against logs whose true load is known."""

from collections.abc import Iterator
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binwright.core.messages import PartitionRate
from binwright.core.ports import LogSample
from binwright.core.rate import TopicRates


class Log:
    """A log that is written, cut and moved by hand."""

    def __init__(self, leader: int = 1) -> None:
        self.leader, self.start, self.end, self.size = leader, 0, 0, 0
        self.told = True

    def write(self, records: int, record_bytes: int = 100) -> "Log":
        self.end += records
        self.size += records * record_bytes
        return self

    def retain(self, records: int, record_bytes: int = 100) -> "Log":
        records = min(records, self.end - self.start)
        self.start += records
        self.size -= records * record_bytes
        return self

    @property
    def sample(self) -> LogSample:
        return LogSample(self.leader, self.start, self.end, self.size if self.told else None)


def feed(rates: TopicRates, now: float, log: Log | None) -> PartitionRate:
    return rates.feed(now, {0: log.sample if log else None})[0]


def speed(measured: PartitionRate) -> float | None:
    return measured.rate


def after(passes: int, rates: TopicRates, log: Log, records: int = 10) -> PartitionRate:
    """Sample at 0, 1, ... `passes` s, with `records` of 100 bytes written in each second."""
    measured = feed(rates, 0, log)
    for now in range(1, passes + 1):
        measured = feed(rates, now, log.write(records))
    return measured


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


def taken(log: Log, at: float, price: float | None = None) -> LogSample:
    sample = log.sample
    return LogSample(sample.leader, sample.start, sample.end, sample.size, at, price)


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


# --- sizes in turns, or never ------------------------------------------------------------------


def turn(rates: TopicRates, now: float, log: Log, every: int) -> PartitionRate:
    log.told = now % every == 0
    return feed(rates, now, log)


def test_sizes_in_turns_are_exact_when_the_turn_comes() -> None:
    rates, log = TopicRates(window_s=12), Log()
    for now in range(25):
        record_bytes = 100 if now < 13 else 1000
        measured = turn(rates, now, log.write(10, record_bytes), every=6)
    assert (speed(measured), measured.quality) == (10_000, "measured")
    assert measured.bytes_per_record == 1000


def test_between_two_turns_records_are_priced() -> None:
    rates, log = TopicRates(window_s=12), Log()
    for now in range(17):
        measured = turn(rates, now, log.write(10), every=6)
    assert (speed(measured), measured.quality, measured.size) == (1000, "estimated", 13_000)


def test_a_turn_longer_than_the_window_still_tells_the_price() -> None:
    rates, log = TopicRates(window_s=4), Log()
    for now in range(61):
        measured = turn(rates, now, log.write(10), every=20)
    assert (speed(measured), measured.window_s) == (1000, 4)


def test_between_two_turns_retention_leaves_the_price() -> None:
    rates, log = TopicRates(), Log()
    for now in range(25):
        if now == 15:
            log.retain(30)
        measured = turn(rates, now, log.write(10), every=6)
    assert speed(measured) == 1000


def test_the_bytes_of_a_burst_go_where_its_records_went() -> None:
    rates, log = TopicRates(window_s=10), Log()
    for now in range(7):
        turn(rates, now, log.write(90 if now == 1 else 2), every=6)
    for now in range(7, 13):
        measured = turn(rates, now, log, every=6)
    assert speed(measured) == 4 * 200 / 10


def test_size_without_records_counts_once() -> None:
    """The end was asked just before the size: bytes come first, their records a pass later."""
    rates, log = TopicRates(), Log()
    feed(rates, 0, log)
    log.size += 1000
    assert speed(feed(rates, 1, log)) == 1000


def test_what_is_never_weighed_is_blind_and_longest_due_first() -> None:
    rates = TopicRates(window_s=8)
    first, second, idle = Log(), Log(), Log()
    first.told = second.told = idle.told = False
    rates.feed(0, {0: idle.sample, 2: first.sample})
    rates.feed(1, {0: idle.sample, 2: first.write(5).sample, 1: second.sample})
    rates.feed(2, {0: idle.sample, 2: first.write(5).sample, 1: second.write(5).sample})
    assert rates.blind() == (2, 1)


def test_batches_give_a_price_where_sizes_are_kept_secret() -> None:
    rates, log = TopicRates(window_s=8), Log()
    log.told = False
    for now in range(20):
        price = 100.0 if rates.blind() else None
        measured = rates.feed(now, {0: taken(log.write(10), now, price)})[0]
    assert (speed(measured), measured.quality, measured.size) == (1000, "estimated", None)
    assert measured.bytes_per_record == 100


def test_a_first_sample_may_bring_its_price() -> None:
    rates, log = TopicRates(), Log()
    log.told = False
    rates.feed(0, {0: taken(log.write(10), 0, 100.0)})
    assert speed(rates.feed(1, {0: taken(log.write(10), 1)})[0]) == 1000


def test_clean_sizes_leave_nothing_blind() -> None:
    rates, log = TopicRates(window_s=8), Log()
    for now in range(20):
        feed(rates, now, log.write(10))
        assert now == 0 or not rates.blind()


def test_retention_in_every_pass_is_blind_after_a_while() -> None:
    """Or a change of the records' size would not be noticed as long as it lasts."""
    rates, log = TopicRates(window_s=30), Log()
    after(10, rates, log)
    blind = []
    for now in range(11, 15):
        feed(rates, now, log.write(10).retain(20))
        blind.append(rates.blind())
    assert blind == [(), (), (), (0,)]


# --- properties --------------------------------------------------------------------------------


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
def test_whatever_brokers_say_no_rate_is_negative(
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
    """Do to a log of 100-byte records what happens to logs; None when nobody answers."""
    match disturbance:
        case "retain", records:
            log.retain(records)
        case "compact", records:
            shrunk = log.size - records * 100
            # One that frees less than was written since cannot be seen; the module says so.
            log.size = shrunk if 0 <= shrunk < (last.size or 0) else log.size
        case "move", number:
            log.leader += number
            log.size += number * 1000  # each replica cleans for itself
        case "hide", number:
            log.told = bool(number % 2)
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
def test_late_passes_do_not_bend_the_rate(gaps: list[float], load: int) -> None:
    """What counts is when the samples were taken, not how many there are."""
    rates, now = TopicRates(), 0.0
    for gap in gaps:
        now += gap
        measured = rates.feed(now, {0: LogSample(1, 0, int(now * load), int(now * load) * 10)})[0]
    assert speed(measured) == pytest.approx(load * 10, rel=0.01, abs=20)
    assert measured.window_s == pytest.approx(30)


@given(st.lists(st.integers(0, 2**40), min_size=61, max_size=61))
def test_a_burst_leaves_nothing_behind(sizes: list[int]) -> None:
    """The sums are integers: once a burst has left the window the rate is exactly 0 again."""
    rates, log = TopicRates(), Log()
    for now, size in enumerate(sizes):
        feed(rates, now, log.write(1, size))
    for now in range(61, 91):
        measured = feed(rates, now, log)
    assert speed(measured) == 0
