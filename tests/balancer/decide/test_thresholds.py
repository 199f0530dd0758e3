"""When a plan for brokers is proposed."""

from dataclasses import replace
from math import inf

from binwright.balancer.decide.forecast import RateLine
from binwright.balancer.decide.model import (
    UNLIMITED,
    Amounts,
    Broker,
    BrokerId,
    Cluster,
    Partition,
    Topic,
)
from binwright.balancer.decide.thresholds import Thresholds, crossings
from binwright.protocol.model import BytesPerSecond, TopicPartition

THRESHOLDS = Thresholds(imbalance=1.3, within_days=7.0)
ONE, TWO = BrokerId(1), BrokerId(2)
KNOWN = {broker: Amounts(800.0, inf, inf, inf) for broker in (ONE, TWO)}


def cluster(*leaders: BrokerId, rate: float = 1.0) -> Cluster:
    """Return brokers 1 and 2, and a partition of 100 bytes on each of these brokers."""
    room = Amounts(1_000.0, 100.0, 100.0, inf)
    partitions = tuple(
        Partition(
            id=TopicPartition("orders", number),
            rate=BytesPerSecond(rate),
            size_bytes=100,
            replicas=(leader,),
            read=BytesPerSecond(rate),
        )
        for number, leader in enumerate(leaders)
    )
    brokers = (Broker(ONE, room), Broker(TWO, room))
    return Cluster(brokers, {"orders": Topic("orders", replication=1)}, partitions)


def texts(seen: Cluster, trends: dict[str, RateLine], limits: dict[BrokerId, Amounts]) -> list[str]:
    return [each.text for each in crossings(seen, trends, THRESHOLDS, limits)]


def test_an_even_cluster_crosses_no_line() -> None:
    assert texts(cluster(ONE, TWO), {}, KNOWN) == []


def test_an_uneven_cluster_crosses_a_line_for_each_resource() -> None:
    assert texts(cluster(ONE, ONE), {}, KNOWN) == [
        "disk of broker 1 is 2.00 of the mean",
        "network in of broker 1 is 2.00 of the mean",
        "network out of broker 1 is 2.00 of the mean",
    ]


def test_the_network_of_an_idle_cluster_counts_as_even() -> None:
    """Two bytes/s on one of two brokers are one a broker; the disk counts all the same."""
    for least, count in ((1.0, 3), (1.1, 1)):
        thresholds = replace(THRESHOLDS, least_network=least)
        assert len([*crossings(cluster(ONE, ONE), {}, thresholds, KNOWN)]) == count


def test_a_broker_that_will_be_full_crosses_a_line() -> None:
    """700 of 800 bytes are free for a partition of 0.002 bytes/s that nothing deletes."""
    trends = {"orders": RateLine(0.004, 0.0)}
    found = texts(cluster(ONE, TWO, rate=0.002), trends, KNOWN)
    assert found == [f"disk of broker {b} is full in 4.1 days" for b in (1, 2)]


def test_a_broker_whose_capacity_is_not_known_is_never_full() -> None:
    trends = {"orders": RateLine(4.0, 100.0)}
    assert texts(cluster(ONE, TWO), trends, dict.fromkeys((ONE, TWO), UNLIMITED)) == []


def test_no_line_is_crossed_while_a_broker_is_down() -> None:
    seen = cluster(ONE, ONE)
    down = replace(seen, brokers=(seen.brokers[0], replace(seen.brokers[1], state="down")))
    assert texts(down, {}, KNOWN) == []


def test_a_line_stays_the_same_while_only_its_numbers_change() -> None:
    few, many = (
        [each.key for each in crossings(seen, {}, THRESHOLDS, KNOWN)]
        for seen in (cluster(ONE, ONE), cluster(ONE, ONE, ONE, ONE, TWO))
    )
    assert few == many
