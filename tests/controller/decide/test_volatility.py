"""How much rates change."""

import pytest

from binwright.controller.decide.volatility import PERIOD_S, WEIGHT, RateVolatility
from binwright.protocol.model import BytesPerSecond, TopicPartition

A, B, C = (TopicPartition("orders", number) for number in range(3))


def rates(a: float, b: float) -> dict[TopicPartition, BytesPerSecond]:
    return {A: BytesPerSecond(a), B: BytesPerSecond(b)}


def test_the_volatility_is_unknown_until_a_period_has_passed() -> None:
    begun = RateVolatility().observe(rates(10, 20), 100.0)

    assert begun.mean_square is None
    assert begun.observe(rates(50, 50), 100.0 + PERIOD_S - 1) is begun


def test_the_mean_is_of_squares_over_all_partitions() -> None:
    later = RateVolatility().observe(rates(10, 20), 0.0).observe(rates(13, 19), PERIOD_S)

    assert later.mean_square == pytest.approx((9 + 1) / 2)


def test_recent_changes_count_more() -> None:
    first = RateVolatility().observe(rates(0, 0), 0.0).observe(rates(4, 4), PERIOD_S)
    second = first.observe(rates(4, 4), 2 * PERIOD_S)

    assert second.mean_square == pytest.approx(16 * (1 - WEIGHT))


def test_partitions_that_are_added_or_removed_do_not_count() -> None:
    before = RateVolatility().observe(rates(10, 20), 0.0)

    assert before.observe({C: BytesPerSecond(90)}, PERIOD_S).mean_square is None
    assert before.observe({A: BytesPerSecond(12), C: BytesPerSecond(90)}, PERIOD_S).mean_square == 4


def test_the_order_of_the_partitions_does_not_matter() -> None:
    """Else another order of topics, as after a restart, gives other plans in close cases."""
    begun = {p: BytesPerSecond(0) for p in (A, B, C)}
    changed = {A: BytesPerSecond(1e8), B: BytesPerSecond(1), C: BytesPerSecond(1)}
    turned = dict(reversed(changed.items()))
    before = RateVolatility().observe(begun, 0.0)

    assert before.observe(changed, PERIOD_S) == before.observe(turned, PERIOD_S)
