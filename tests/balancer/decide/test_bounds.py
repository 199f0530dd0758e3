"""A balanced broker carries the mean and a little more, as far as replicas are small enough."""

from math import inf

import pytest
from tests.balancer.decide.clusters import broker, cluster, ids, partition

from binwright.balancer.decide.bounds import balance_limits, even_limits, exceeds, hard_limits
from binwright.balancer.decide.cluster import Cluster, Topic

ONE, TWO, THREE = ids(1, 2, 3)


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
