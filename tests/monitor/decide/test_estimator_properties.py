"""Properties of rates for any samples and any disturbance of a log."""

from collections.abc import Iterator
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.monitor.decide.logs import Log, feed, speed

from binwright.monitor.decide.estimator import TopicRates
from binwright.protocol.ports.kafka import LogSample

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
