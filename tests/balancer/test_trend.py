"""Lines through the days of a recording."""

import pytest

from binwright.balancer.trend import topic_trends
from binwright.protocol.model import BytesPerSecond, TopicPartition

DAY_S = 86_400.0


def rows(*orders: float) -> list[dict[TopicPartition, BytesPerSecond]]:
    """Return two rows a day: the rate of two partitions of orders, by day and by night."""
    return [
        {TopicPartition("orders", n): BytesPerSecond(rate * share / 2) for n in range(2)}
        for rate in orders
        for share in (1.5, 0.5)
    ]


def test_a_topic_grows_as_the_means_of_its_days_do() -> None:
    line = topic_trends(rows(100, 110, 120, 130), DAY_S / 2)["orders"]
    assert line.growth(0) == pytest.approx(1)
    assert line.growth(13) == pytest.approx(2)


def test_two_days_have_no_trend() -> None:
    assert topic_trends(rows(100, 200), DAY_S / 2) == {}


def test_a_day_that_is_not_whole_does_not_count() -> None:
    begun = rows(100, 100, 100, 100)[:-1]
    assert topic_trends(begun, DAY_S / 2)["orders"].growth(30) == pytest.approx(1)


def test_a_topic_without_load_has_no_trend() -> None:
    assert topic_trends(rows(0, 0, 0), DAY_S / 2) == {}
