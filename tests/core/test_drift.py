"""How much rates change."""

import pytest

from binwright.core.drift import PERIOD_S, WEIGHT, Drift
from binwright.core.model import BytesPerSecond, TopicPartition

A, B, C = (TopicPartition("orders", number) for number in range(3))


def rates(a: float, b: float) -> dict[TopicPartition, BytesPerSecond]:
    return {A: BytesPerSecond(a), B: BytesPerSecond(b)}


def test_nothing_is_known_until_a_period_has_passed() -> None:
    begun = Drift().observe(rates(10, 20), 100.0)

    assert begun.squared is None
    assert begun.observe(rates(50, 50), 100.0 + PERIOD_S - 1) is begun


def test_the_mean_is_of_squares_over_all_partitions() -> None:
    later = Drift().observe(rates(10, 20), 0.0).observe(rates(13, 19), PERIOD_S)

    assert later.squared == pytest.approx((9 + 1) / 2)


def test_recent_changes_count_more() -> None:
    first = Drift().observe(rates(0, 0), 0.0).observe(rates(4, 4), PERIOD_S)
    second = first.observe(rates(4, 4), 2 * PERIOD_S)

    assert second.squared == pytest.approx(16 * (1 - WEIGHT))


def test_partitions_that_come_or_go_have_not_changed() -> None:
    before = Drift().observe(rates(10, 20), 0.0)

    assert before.observe({C: BytesPerSecond(90)}, PERIOD_S).squared is None
    assert before.observe({A: BytesPerSecond(12), C: BytesPerSecond(90)}, PERIOD_S).squared == 4
