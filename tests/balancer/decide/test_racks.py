"""Replicas are in as many racks as there are, evenly."""

import pytest
from tests.balancer.decide.clusters import broker, cluster, ids

from binwright.balancer.decide.cluster import Topic
from binwright.balancer.decide.racks import most_in_a_rack, rack_of


@pytest.mark.parametrize(
    ("racks", "replication", "most"),
    [
        ("abc", 3, 1),
        ("aabb", 3, 2),
        ("abbb", 4, 3),
        ("aaa", 3, 3),
        ("ab", 1, 1),
    ],
)
def test_a_rack_holds_as_few_replicas_as_possible(racks: str, replication: int, most: int) -> None:
    brokers = [broker(number, rack=rack) for number, rack in enumerate(racks)]
    assert most_in_a_rack(cluster(brokers, []), Topic("orders", replication)) == most


def test_racks_of_brokers_that_may_not_hold_the_topic_do_not_count() -> None:
    brokers = [broker(0, rack="a"), broker(1, rack="b"), broker(2, rack="b")]
    topic = Topic("orders", 2, excluded_brokers=frozenset(ids(0)))
    assert most_in_a_rack(cluster(brokers, []), topic) == 2


def test_without_rack_spread_a_rack_may_hold_all() -> None:
    brokers = [broker(0, rack="a"), broker(1, rack="b")]
    assert most_in_a_rack(cluster(brokers, []), Topic("orders", 2, rack_spread=False)) == 2


def test_too_few_brokers_are_not_a_matter_of_racks() -> None:
    assert most_in_a_rack(cluster([broker(0)], []), Topic("orders", 2)) == 2


def test_a_broker_without_a_rack_is_one_of_its_own() -> None:
    assert rack_of(broker(1)) != rack_of(broker(2))
    assert rack_of(broker(1, rack="a")) == rack_of(broker(2, rack="a"))
