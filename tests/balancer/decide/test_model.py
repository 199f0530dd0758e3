"""What a cluster may be, and how many replicas a rack may hold."""

from math import inf, nan

import pytest
from tests.balancer.decide.clusters import broker, cluster, ids, partition

from binwright.balancer.decide.model import (
    NOTHING,
    Amounts,
    Broker,
    BrokerId,
    Cluster,
    Partition,
    Topic,
    current,
    most_in_a_rack,
    rack_of,
)
from binwright.protocol.errors import BalanceError
from binwright.protocol.model import BytesPerSecond, TopicPartition


def test_amounts_are_read_by_the_name_of_a_resource() -> None:
    amounts = Amounts(1.0, 2.0, 3.0, 4.0)
    assert [amounts.of("disk"), amounts.of("network out")] == [1.0, 3.0]


def test_amounts_are_added() -> None:
    assert Amounts(1.0, 2.0, 3.0, 4.0).plus(Amounts(1.0, 1.0, 1.0, 1.0)) == (2, 3, 4, 5)


@pytest.mark.parametrize(
    ("retention_s", "retention_bytes", "expected"),
    [(60.0, None, 600.0), (60.0, 500, 500.0), (None, 900, 900.0), (None, None, 100.0)],
)
def test_the_expected_disk_is_what_retention_keeps_of_the_rate(
    retention_s: float | None, retention_bytes: int | None, expected: float
) -> None:
    topic = Topic("orders", 1, retention_s, retention_bytes)
    assert partition("orders-0", [1], rate=10.0, size=100).expected_bytes(topic) == expected


def test_a_replica_needs_what_it_holds_today_where_that_is_more() -> None:
    topic = Topic("orders", 1, retention_s=5.0)
    assert partition("orders-0", [1], rate=10.0, size=100).disk_bytes(topic) == 100.0


def test_a_topic_without_retention_keeps_all_unless_it_is_compacted() -> None:
    assert Topic("orders", 1).keeps_all
    assert not Topic("orders", 1, compacted=True).keeps_all
    assert not Topic("orders", 1, retention_s=1.0).keeps_all


def test_an_excluded_topic_keeps_the_replicas_that_it_has() -> None:
    orders = partition("orders-0", [1, 2])
    for excluded, planned in ((True, 2), (False, 3)):
        topic = Topic("orders", 3, excluded=excluded)
        assert (
            cluster([broker(1), broker(2)], [orders], [topic]).planned_replicas(orders) == planned
        )


def test_the_room_of_a_broker_is_its_capacity_less_the_headroom() -> None:
    one = broker(1, disk=100.0)
    assert cluster([one], [], headroom=0.2).room(one) == (80.0, inf, inf, inf)


@pytest.mark.parametrize("state", ["draining", "down"])
def test_a_broker_that_may_hold_nothing_has_no_room(state: str) -> None:
    one = Broker(BrokerId(1), Amounts(1.0, 1.0, 1.0, 1.0), None, state)  # type: ignore[arg-type]
    assert cluster([one], []).room(one) == NOTHING


def test_a_grown_cluster_has_higher_rates_and_the_sizes_of_today() -> None:
    grown = cluster([broker(1)], [partition("orders-0", [1], rate=2.0, read=3.0)]).grown(2.0)
    assert grown.partitions == (partition("orders-0", [1], rate=4.0, read=6.0),)


def test_the_placement_of_today_is_what_partitions_have() -> None:
    found = current(cluster([broker(1), broker(2)], [partition("orders-0", [2, 1])]))
    assert found == {TopicPartition("orders", 0): (2, 1)}


def test_a_cluster_that_contradicts_itself_is_refused_with_every_fault() -> None:
    brokers = (broker(1), broker(1), broker(2, disk=-1.0))
    partitions = (
        partition("orders-0", [1, 1]),
        partition("orders-0", [7], rate=nan),
        partition("other-0", [1]),
        partition("wrong-0", [1]),
    )
    topics = {"orders": Topic("orders", 1), "wrong": Topic("wrong", 0)}
    with pytest.raises(BalanceError) as refused:
        Cluster(brokers, topics, partitions, Amounts(1.0, 0.0, 0.0, 0.0))
    for fault in (
        "brokers named twice: [1]",
        "broker 2: capacities must be >= 0",
        "headroom must be in [0, 1)",
        "a partition is named twice",
        "orders-0: replicas must be distinct brokers",
        "orders-0: rates and size must be finite and >= 0",
        "orders-0: unknown brokers [7]",
        "other-0: its topic is not described",
        "wrong-0: replication must be >= 1",
    ):
        assert fault in str(refused.value)


def test_a_partition_without_replicas_is_refused() -> None:
    lost = Partition(TopicPartition("orders", 0), BytesPerSecond(1.0), 1, ids())
    with pytest.raises(BalanceError, match="distinct brokers"):
        cluster([broker(1)], [lost], [Topic("orders", 1)])


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
