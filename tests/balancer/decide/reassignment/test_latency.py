"""The gate that closes while producers wait longer than before."""

from binwright.balancer.decide.reassignment.latency import LatencyGate


def gate(*measured: float) -> LatencyGate:
    found = LatencyGate()
    for latency_s in measured:
        found = found.measured(latency_s)
    return found


CALM = [0.01] * 5


def test_nothing_is_known_before_the_baseline() -> None:
    found = gate(0.01, 0.02)
    assert (found.baseline_s, found.limit_s, found.closed) == (None, None, False)
    assert LatencyGate().latency_s is None


def test_the_limit_is_a_tenth_of_a_second_above_a_short_baseline() -> None:
    assert gate(*CALM).limit_s == 0.11


def test_the_limit_is_three_times_a_long_baseline() -> None:
    assert gate(*[1.0] * 5).limit_s == 3.0


def test_one_slow_request_does_not_close_it() -> None:
    assert not gate(*CALM, 5.0).closed


def test_it_closes_when_the_median_of_the_last_is_above_the_limit() -> None:
    found = gate(*CALM, 5.0, 5.0)
    assert found.closed
    assert found.latency_s == 5.0


def test_it_stays_closed_between_the_limit_and_half_the_way_to_the_baseline() -> None:
    assert gate(*CALM, 5.0, 5.0, 0.1, 0.1).closed


def test_it_opens_below_half_the_way() -> None:
    assert not gate(*CALM, 5.0, 5.0, 0.02, 0.02).closed
