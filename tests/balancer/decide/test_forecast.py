"""When a broker is full, and how topics grow."""

import pytest
from tests.balancer.decide.clusters import broker, cluster, partition

from binwright.balancer.decide.forecast import (
    DAY_S,
    RateLine,
    RateSample,
    Shortage,
    forecast,
    future,
    topic_trends,
    trend,
)
from binwright.balancer.decide.loads import balance_limits
from binwright.balancer.decide.model import BrokerId, Topic
from binwright.protocol.errors import BalanceError
from binwright.protocol.model import BytesPerSecond


def samples(*rates: float) -> list[RateSample]:
    """Return one sample a day."""
    return [RateSample(day * DAY_S, BytesPerSecond(rate)) for day, rate in enumerate(rates)]


def test_a_trend_is_the_line_through_the_samples() -> None:
    assert trend(samples(10, 20, 30)) == RateLine(now=30.0, per_day=10.0)


def test_samples_may_come_in_any_order() -> None:
    assert trend(samples(10, 20, 30)[::-1]) == trend(samples(10, 20, 30))


@pytest.mark.parametrize("rates", [(), (10,), (20, 0)])
def test_without_two_times_or_any_rate_there_is_no_trend(rates: tuple[float, ...]) -> None:
    assert trend(samples(*rates)) is None


def test_negative_rates_are_refused() -> None:
    with pytest.raises(BalanceError, match=">= 0"):
        trend(samples(-1, 1))


def test_growth_never_falls_below_nothing() -> None:
    falling = RateLine(now=10.0, per_day=-5.0)
    assert [falling.growth(days) for days in (0, 1, 2, 9)] == [1.0, 0.5, 0.0, 0.0]


def test_rates_grow_on_their_topics_line() -> None:
    found = cluster(
        [broker(1)],
        [
            partition("orders-0", [1], rate=10.0, read=2.0),
            partition("bills-0", [1], rate=10.0, read=2.0),
        ],
        [Topic("orders", 1, compacted=True), Topic("bills", 1, compacted=True)],
    )
    later = future(found, {"orders": RateLine(10.0, 10.0)}, 3.0)
    assert [(each.rate, each.read) for each in later.partitions] == [(40.0, 8.0), (10.0, 2.0)]


def test_what_nothing_deletes_is_kept() -> None:
    found = cluster([broker(1)], [partition("orders-0", [1], rate=1.0, size=100)])
    assert future(found, {}, 2.0).partitions[0].size_bytes == 100 + 2 * DAY_S
    assert (
        future(found, {"orders": RateLine(1.0, 1.0)}, 2.0).partitions[0].size_bytes
        == 100 + 4 * DAY_S
    )


def test_a_disk_without_retention_is_full_when_the_rate_has_filled_it() -> None:
    found = cluster(
        [broker(1, disk=100 + 5 * DAY_S), broker(2)], [partition("orders-0", [1], size=100)]
    )
    (shortage,) = forecast(found, {}, 30.0)
    assert (shortage.broker, shortage.resource) == (1, "disk")
    assert shortage.in_days == pytest.approx(5.0, abs=0.01)


def test_a_network_is_full_when_the_rate_has_grown() -> None:
    topics = [Topic("orders", 1, compacted=True)]
    found = cluster([broker(1, network=40.0)], [partition("orders-0", [1], rate=10.0)], topics)
    (shortage,) = forecast(found, {"orders": RateLine(10.0, 2.0)}, 30.0)
    assert shortage.resource == "network in"
    assert shortage.in_days == pytest.approx(15.0, abs=0.01)


def test_what_is_exceeded_today_comes_first() -> None:
    brokers = [broker(1, disk=50.0), broker(2, disk=100 + DAY_S)]
    found = cluster(brokers, [partition("orders-0", [1]), partition("orders-1", [2])])
    first, second = forecast(found, {}, 30.0)
    assert first == Shortage(found.brokers[0].id, "disk", 0.0)
    assert second.broker == 2


def test_nothing_is_full_within_too_short_a_time() -> None:
    found = cluster([broker(1, disk=100 + 5 * DAY_S)], [partition("orders-0", [1])])
    assert forecast(found, {}, 4.0) == ()


def test_a_broker_above_its_limit_at_a_steady_load_is_full_now() -> None:
    found = cluster([broker(1, disk=50)], [partition("orders-0", [1])], [Topic("orders", 1, 60.0)])
    assert forecast(found, {}, 7.0) == (Shortage(BrokerId(1), "disk", 0.0),)


def test_a_forecast_can_be_about_balance() -> None:
    topics = [Topic("orders", 1, compacted=True), Topic("bills", 1, compacted=True)]
    partitions = [
        partition(f"{name}-{n}", [b], size=0)
        for b, name in ((1, "orders"), (2, "bills"))
        for n in range(100)
    ]
    found = cluster([broker(1, network=1e6), broker(2, network=1e6)], partitions, topics)
    line = {"orders": RateLine(100.0, 10.0)}
    found_shortages = forecast(found, line, 10.0, balance_limits(found, 1.05))
    assert [(s.broker, s.resource) for s in found_shortages] == [(1, "network in")]
    assert found_shortages[0].in_days == pytest.approx(0.5, abs=0.01)


def rows(*orders: float) -> list[dict[str, float]]:
    """Return two rows a day: the rate of orders, by day and by night."""
    return [{"orders": rate * share} for rate in orders for share in (1.5, 0.5)]


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
