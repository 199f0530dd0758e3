"""What a plan counts with, of rates hour by hour."""

import pytest

from binwright.balancer.decide.rate_history import HOUR_S, RateHistory, busy_rate, kept_rate
from binwright.protocol.model import BytesPerSecond, TopicPartition

P0, P2 = TopicPartition("orders", 0), TopicPartition("orders", 2)
BILLS = TopicPartition("bills", 0)


def row(*rates: float, of: TopicPartition = P0) -> dict[TopicPartition, BytesPerSecond]:
    return {TopicPartition(of.topic, n): BytesPerSecond(rate) for n, rate in enumerate(rates)}


def test_a_partition_has_the_rates_of_the_hours_in_which_it_was_measured() -> None:
    history = RateHistory([row(1.0), {P2: BytesPerSecond(5.0)}, row(3.0, of=BILLS)])
    assert history.of(P0) == [1.0]
    assert history.of(P2) == [5.0]
    assert history.of(TopicPartition("orders", 1)) == []


def test_the_last_hour_has_the_partitions_that_it_measured() -> None:
    assert RateHistory([row(1.0), {P2: BytesPerSecond(5.0)}]).last() == {P2: 5.0}
    assert RateHistory().last() == {}


def test_topics_have_the_sums_of_their_partitions() -> None:
    history = RateHistory([{}, row(1.0, 2.0), {P2: BytesPerSecond(5.0)}, {}])
    assert list(history.topics()) == [{"orders": 3.0}, {"orders": 5.0}, {}]


def test_hours_beyond_the_limit_are_forgotten() -> None:
    history = RateHistory([row(float(n)) for n in range(5)], hours=2)
    assert history.of(P0) == [3.0, 4.0]


def test_a_busy_rate_is_exceeded_in_a_twentieth_of_the_hours() -> None:
    assert busy_rate([float(n) for n in range(1, 101)]) == 95.0
    assert busy_rate([100.0] * 5 + [1.0] * 95) == 1.0
    assert busy_rate([7.0]) == 7.0


@pytest.mark.parametrize(
    ("hours", "rate"), [(None, 2.5), (100, 2.5), (4, 2.5), (2, 4.0), (1, 6.0), (0.1, 6.0)]
)
def test_what_is_kept_is_the_largest_mean_over_the_retention(
    hours: float | None, rate: float
) -> None:
    retention_s = None if hours is None else hours * HOUR_S
    assert kept_rate([1.0, 2.0, 6.0, 1.0], retention_s) == rate
