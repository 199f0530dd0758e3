"""A broker's load is what its leaders and followers write, fetch and serve."""

from math import inf

from tests.balancer.decide.clusters import broker, cluster, ids, partition

from binwright.balancer.decide.amounts import UNLIMITED, Amounts, BrokerId
from binwright.balancer.decide.cluster import Broker, Cluster, CpuCosts, current
from binwright.balancer.decide.loads import BrokerLoad, broker_loads, imbalance, use
from binwright.protocol.model import TopicPartition

ONE, TWO, THREE = ids(1, 2, 3)


def test_leaders_serve_followers_and_consumers() -> None:
    found = cluster(
        [broker(1), broker(2), broker(3)],
        [partition("orders-0", [1, 2, 3], rate=10.0, size=100, read=5.0)],
    )
    loads = broker_loads(found, current(found))
    assert loads[ONE] == BrokerLoad(1, 1, 100.0, 10.0, 0.0, 20.0, 5.0, 0.0)
    assert loads[TWO] == loads[THREE] == BrokerLoad(1, 0, 100.0, 0.0, 10.0, 0.0, 0.0, 0.0)
    assert loads[ONE].amounts == (100.0, 10.0, 25.0, 0.0)


def test_cpu_is_what_bytes_in_and_out_cost() -> None:
    one = partition("orders-0", [1, 2], rate=10.0, read=5.0)
    known = cluster([broker(1), broker(2)], [one])
    found = Cluster(known.brokers, known.topics, known.partitions, cpu=CpuCosts(0.1, 0.2))
    loads = broker_loads(found, current(found))
    assert (loads[ONE].cpu, loads[TWO].cpu) == (1.0 + 3.0, 1.0)


def test_use_is_a_share_of_the_capacity() -> None:
    found = cluster([broker(1, disk=200.0), broker(2)], [partition("orders-0", [1])])
    shares = use(found, broker_loads(found, current(found)))
    assert shares == {ONE: (0.5, 0.0, 0.0, 0.0), TWO: (0.0, 0.0, 0.0, 0.0)}


def test_a_load_where_there_is_no_capacity_is_infinite_use() -> None:
    found = cluster([broker(1, disk=0.0, state="down")], [partition("orders-0", [1])])
    assert use(found, broker_loads(found, current(found)))[ONE].disk == inf


def test_imbalance_compares_the_fullest_broker_with_the_mean() -> None:
    found = cluster(
        [broker(1, disk=100.0), broker(2, disk=100.0), broker(3, disk=100.0, state="draining")],
        [partition("orders-0", [1], size=60), partition("orders-1", [2], size=20)],
    )
    (disk,) = imbalance(found)
    assert (disk.resource, disk.broker, disk.largest, disk.mean) == ("disk", 1, 0.6, 0.4)
    assert disk.factor == 0.6 / 0.4
    (moved,) = imbalance(
        found, {TopicPartition("orders", 0): ids(2), TopicPartition("orders", 1): ids(1)}
    )
    assert moved.broker == TWO


def test_a_cluster_without_load_is_even() -> None:
    assert [one.factor for one in imbalance(cluster([broker(1)], []))] == [1.0]


def test_nothing_is_uneven_where_no_capacity_is_known_or_no_broker_is_up() -> None:
    unlimited = Broker(BrokerId(1), UNLIMITED)
    assert imbalance(cluster([unlimited], [partition("orders-0", [1])])) == ()
    assert imbalance(cluster([broker(1, state="down")], [partition("orders-0", [1])])) == ()


def test_capacities_of_brokers_differ() -> None:
    found = cluster(
        [broker(1, disk=300.0), broker(2, disk=100.0)],
        [partition("orders-0", [1], size=60), partition("orders-1", [2], size=60)],
    )
    assert imbalance(found)[0].broker == TWO
    assert Amounts(*[0.3] * 4).disk == imbalance(found)[0].mean
