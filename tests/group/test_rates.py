"""The last known rates, from measurement to measurement, and how much they change."""

import pytest
from tests.builders import C, P, Q, topics

from binwright.group.rates import PERIOD_S, WEIGHT, MeasuredRates, RateVolatility
from binwright.protocol.model import BytesPerSecond, TopicPartition


def test_rates_are_a_mapping_of_what_was_measured() -> None:
    known = topics({P: 5.0, Q: 7.0, C: 9.0}, {})
    assert known == {P: 5.0, Q: 7.0, C: 9.0}
    assert len(known) == 3
    assert (known.get(P), known.get(P, 1.0)) == (5.0, 5.0)
    assert (MeasuredRates().get(P), MeasuredRates().get(P, 1.0)) == (None, 1.0)
    assert known.get(P._replace(partition=8), 1.0) == 1.0
    assert set(known.names) == {"orders", "clicks"}


def test_a_topic_that_was_not_measured_has_no_count() -> None:
    known = topics({}, {"orders": 2})
    assert (known.count("orders"), known.count("clicks")) == (2, None)


def test_a_measurement_keeps_the_rates_that_it_does_not_have() -> None:
    known = topics({P: 5.0, Q: 7.0, C: 9.0}, {}).with_topic("orders", 2, {0: BytesPerSecond(6.0)})
    assert known == {P: 6.0, Q: 7.0, C: 9.0}


def test_a_recreated_smaller_topic_loses_the_rates_of_missing_partitions() -> None:
    before = topics({P: 5.0, Q: 7.0}, {"orders": 2})
    assert before.with_topic("orders", 1, {}) == {P: 5.0}
    assert before == {P: 5.0, Q: 7.0}


def rates(a: float, b: float) -> dict[TopicPartition, BytesPerSecond]:
    return {P: BytesPerSecond(a), Q: BytesPerSecond(b)}


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
    assert before.observe({P: BytesPerSecond(12), C: BytesPerSecond(90)}, PERIOD_S).mean_square == 4


def test_the_order_of_the_partitions_does_not_matter() -> None:
    """Else another order of topics, as after a restart, gives other plans in close cases."""
    begun = {p: BytesPerSecond(0) for p in (P, Q, C)}
    changed = {P: BytesPerSecond(1e8), Q: BytesPerSecond(1), C: BytesPerSecond(1)}
    turned = dict(reversed(changed.items()))
    before = RateVolatility().observe(begun, 0.0)

    assert before.observe(changed, PERIOD_S) == before.observe(turned, PERIOD_S)
