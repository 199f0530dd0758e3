"""A share of the records may miss the SLA: fewer replicas, none of which falls behind."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scaler.decide.policies.groups import BURSTS, PARTITIONS, observe

from binwright.scaler.decide.policies.demand import Demand
from binwright.scaler.decide.policies.policy import Observation, PartitionLoad, Policy
from binwright.scaler.decide.policies.sla_packing import SlaPacking

ALL = SlaPacking(capacity=BURSTS, steers=False)
"""A replica is filled to 90/s: what it serves of a burst in 0.5 s, with headroom."""
SOME = replace(ALL, late=0.2)
DEMAND = Demand(capacity=BURSTS, catch_up_s=5.0, busy=0.9, least=1, most=None)


def replicas(policy: Policy, seen: Observation) -> int:
    return policy.decide(seen)[0].replicas


def test_a_replica_less_does_if_no_more_than_the_share_is_late() -> None:
    """Of 110 records in a burst 20 are late, of 115 more than a fifth."""
    assert replicas(ALL, observe([22] * 5)) == 2
    assert replicas(SOME, observe([22] * 5)) == 1
    assert replicas(SOME, observe([23] * 5)) == 2


def test_a_replica_goes_only_if_the_rest_keep_the_share_with_a_gap() -> None:
    """80/s of one replica count before the other goes."""
    assert replicas(SOME, observe([19] * 5, replicas=2)) == 1
    assert replicas(SOME, observe([22] * 5, replicas=2)) == 2


def test_no_replica_falls_behind_for_good_whatever_may_be_late() -> None:
    """Nine tenths of nine tenths of 200/s."""
    most = replace(SOME, late=0.9)

    assert replicas(most, observe([32] * 5)) == 1
    assert replicas(most, observe([33] * 5)) == 2


def test_what_is_to_be_caught_up_counts_too() -> None:
    most = replace(SOME, late=0.9, catch_up_s=10.0)

    assert replicas(most, observe([20] * 5)) == 1
    assert replicas(most, observe([20] * 5, [160] * 5)) == 2


def test_without_bursts_nothing_is_late_in_a_group_that_keeps_up() -> None:
    """So the share spares no replica: one that is too full would fall behind for good."""
    smooth = replace(BURSTS, burst_s=0.0)

    assert replicas(replace(SOME, capacity=smooth), observe([33] * 5)) == 2


def test_a_partition_that_no_replica_serves_in_time_counts_as_a_full_one() -> None:
    """It would have more than the share late whoever reads the others: 310 of 400 records."""
    assert replicas(SOME, observe([400, 60, 60])) == 2
    assert replicas(SOME, observe([400, 70, 70])) == 3


def test_a_long_rebalance_counts_before_a_replica_goes() -> None:
    """In 2.5 s three bursts gather, and a replica has 33 records of each in time."""
    assert replicas(SOME, observe([10] * 5, replicas=2)) == 1
    assert replicas(replace(SOME, rebalance_s=2.5), observe([10] * 5, replicas=2)) == 2


def test_a_group_that_takes_an_assignment_gets_one_where_more_than_the_share_is_late() -> None:
    steered = replace(SOME, steers=True)
    uneven = observe([27] * 5, replicas=2, owners=[0] * 5)

    assert steered.decide(uneven)[0].assignment is not None
    even = observe([27] * 5, replicas=2, owners=[0, 1, 0, 1, 0])
    assert steered.decide(even)[0].assignment is None


def test_owners_of_whom_no_more_than_the_share_is_late_are_what_an_assignment_is_for() -> None:
    """However they are assigned, one replica has 132 records in a burst, and 32 of them late."""
    steered = replace(SOME, steers=True)

    assert steered.decide(observe([44] * 5, replicas=2, owners=[0, 0, 0, 0, 1]))[0].assignment
    assert not steered.decide(observe([44] * 5, replicas=2, owners=[0, 0, 0, 1, 1]))[0].assignment


def test_a_group_without_records_has_none_late() -> None:
    assert DEMAND.late_share([PARTITIONS[:2]], observe([0, 0]).loads) == 0
    assert replicas(SOME, observe([0] * 5)) == 1


RATES = st.lists(st.floats(0, 400), min_size=1, max_size=12)


@given(RATES, st.sampled_from([0.05, 0.2, 0.5, 0.95]))
def test_there_are_never_more_replicas_than_if_all_are_to_be_in_time(
    rates: list[float], late: float
) -> None:
    loads = {p: PartitionLoad(rate) for p, rate in zip(PARTITIONS, rates, strict=False)}
    every = DEMAND.bins(loads, 0.9)
    found = replace(DEMAND, late=late).bins(loads, 0.9)

    assert len(found) <= len(every)
    assert sorted(p for inside in found for p in inside) == sorted(loads)
    if len(found) < len(every):
        assert DEMAND.late_share(found, loads, 0.9) <= late


@given(RATES, st.sampled_from([0.05, 0.2, 0.5]))
def test_a_decision_is_stable(rates: list[float], late: float) -> None:
    """Carried out, and with the same loads, it changes nothing any more."""
    policy = replace(ALL, late=late)
    decided = replicas(policy, observe(rates))

    assert replicas(policy, observe(rates, replicas=decided)) == decided


@pytest.mark.parametrize("most", [1, 2])
def test_the_most_replicas_hold_with_a_share_too(most: int) -> None:
    assert replicas(replace(SOME, most=most), observe([100] * 5)) == most
    assert replicas(replace(SOME, most=most), observe([100] * 5, replicas=4)) == most
