"""What brokers carry, and what they may carry."""

from math import inf

import pytest
from tests.balancer.decide.clusters import broker, cluster, ids, partition

from binwright.balancer.decide.loads import (
    BrokerLoad,
    balance_limits,
    broker_loads,
    even_limits,
    exceeds,
    hard_limits,
    imbalance,
    use,
)
from binwright.balancer.decide.model import (
    UNLIMITED,
    Amounts,
    Broker,
    BrokerId,
    Cluster,
    CpuCosts,
    Topic,
    current,
)
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


def even(sizes: list[int], disk: float = 1_000.0, brokers: int = 2) -> Cluster:
    """Return a cluster with partitions of these sizes, all on broker 1."""
    partitions = [partition(f"orders-{n}", [1], size=size) for n, size in enumerate(sizes)]
    return cluster([broker(b + 1, disk=disk) for b in range(brokers)], partitions)


def test_a_limit_has_a_tolerance() -> None:
    assert not exceeds(1.0 + 1e-7, 1.0)
    assert exceeds(1.001, 1.0)


def test_small_replicas_are_balanced_to_the_bound() -> None:
    limits = balance_limits(even([1] * 200), 1.05)
    assert limits[ONE].disk == limits[TWO].disk == pytest.approx(105.0)


def test_large_replicas_are_balanced_to_the_mean_and_one_of_them() -> None:
    assert balance_limits(even([30] * 4), 1.05)[ONE].disk == 60.0 + 30.0


def test_a_replica_larger_than_the_mean_widens_no_other_brokers_limit_beyond_itself() -> None:
    """500 on one broker; 100 in pieces of 10 on two others: their mean is 50, not 200."""
    limits = balance_limits(even([500, *[10] * 10], brokers=3), 1.05)
    assert limits[ONE].disk == 500.0
    assert balance_limits(even([100, *[10] * 18], brokers=3), 1.0)[ONE].disk == 100.0


def test_one_broker_has_it_all() -> None:
    assert balance_limits(even([500], brokers=1), 1.0)[ONE].disk == 1_000.0


def test_replicas_that_are_all_larger_than_the_mean_have_a_broker_each() -> None:
    assert balance_limits(even([100, 50], brokers=3), 1.0)[ONE].disk == 100.0


def test_brokers_of_twice_the_capacity_carry_twice_as_much() -> None:
    found = cluster(
        [broker(1, disk=1_000.0), broker(2, disk=2_000.0)],
        [partition(f"orders-{n}", [1], size=1) for n in range(300)],
    )
    limits = balance_limits(found, 1.05)
    assert limits[TWO].disk == 2 * limits[ONE].disk == pytest.approx(210.0)


def test_a_wider_bound_is_never_above_the_hard_limit() -> None:
    assert balance_limits(even([1] * 200, disk=120.0), 1.05, relaxed=2.0)[ONE].disk == 120.0


@pytest.mark.parametrize(("bound", "relaxed"), [(inf, 1.0), (1.05, inf)])
def test_without_a_bound_the_hard_limits_remain(bound: float, relaxed: float) -> None:
    found = even([1] * 20)
    assert balance_limits(found, bound, relaxed) == hard_limits(found)


def test_without_a_usable_broker_the_hard_limits_remain() -> None:
    found = cluster([broker(1, state="down")], [partition("orders-0", [1])])
    assert balance_limits(found, 1.05) == hard_limits(found)


def test_what_may_not_leave_a_broker_is_within_its_limit() -> None:
    found = cluster(
        [broker(1), broker(2), broker(3)],
        [
            *(partition(f"stays-{n}", [1, 2], size=10, rate=0.0) for n in range(30)),
            *(partition(f"pinned-{n}", [3], size=10, rate=0.0, pinned=[3]) for n in range(30)),
            partition("free-0", [2]),
        ],
        [Topic("stays", 2, excluded=True)],
    )
    limits = balance_limits(found, 1.0)
    assert [limits[b].disk for b in (ONE, TWO, THREE)] == pytest.approx([1000 / 3 + 100] * 3)
    alone = cluster(
        [broker(1), broker(2)], [partition(f"p-{n}", [1], pinned=[1]) for n in range(9)]
    )
    assert [balance_limits(alone, 1.0)[b].disk for b in (ONE, TWO)] == [900.0, 550.0]


def test_even_limits_do_not_look_at_the_size_of_replicas() -> None:
    limits = even_limits(even([30] * 4), 1.05)
    assert limits[ONE].disk == pytest.approx(63.0)
    assert limits[ONE].network_in == inf
