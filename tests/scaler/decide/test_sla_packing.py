"""Our policy: few replicas that keep the SLA, and changes that do not break it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scaler.decide.groups import BURSTS, PAPER, PARTITIONS, observe, rates_of

from binwright.protocol.model import Slot
from binwright.scaler.decide.policy import Decision, Observation, PartitionLoad, Policy
from binwright.scaler.decide.sla_packing import Demand, SlaPacking

POLICY = SlaPacking(capacity=PAPER, busy=1.0)


def replicas(policy: Policy, seen: Observation) -> int:
    return policy.decide(seen)[0].replicas


def test_it_packs_rates_up_to_the_headroom() -> None:
    """Nine tenths of 200/s."""
    assert replicas(POLICY, observe([36] * 5)) == 1
    assert replicas(POLICY, observe([37] * 5)) == 2


def test_bursts_halve_what_a_replica_sustains() -> None:
    bursts = replace(POLICY, capacity=BURSTS)

    assert replicas(bursts, observe([18] * 5)) == 1
    assert replicas(bursts, observe([19] * 5)) == 2


def test_lag_is_caught_up_within_the_time_given() -> None:
    """6,000 records in 60 s are 100/s more."""
    assert replicas(POLICY, observe([20] * 4, [1_500] * 4)) == 1
    assert replicas(POLICY, observe([20] * 4, [1_600] * 4)) == 2
    assert replicas(replace(POLICY, catch_up_s=300), observe([20] * 4, [5_000] * 4)) == 1


def test_a_burst_that_is_being_worked_off_is_no_lag_to_catch_up() -> None:
    bursts = replace(POLICY, capacity=BURSTS, catch_up_s=0.1)

    assert replicas(bursts, observe([18] * 5, [18] * 5)) == 1
    assert replicas(bursts, observe([18] * 5, [24] * 5)) == 3


def test_one_hot_partition_is_named_and_gets_one_replica() -> None:
    seen = observe([300] + [2] * 39, [1e6] + [0] * 39)
    decision = POLICY.decide(seen)[0]

    assert decision.replicas == 2
    assert decision.hot == (PARTITIONS[0],)
    assert decision.reason.endswith("faster than a replica: orders-0")
    assert sorted(rates_of(seen, decision)) == [78, 300]


def test_a_gap_lies_between_up_and_down() -> None:
    """At 170/s one replica is enough, and a group of two keeps both."""
    assert replicas(POLICY, observe([34] * 5)) == 1
    assert POLICY.decide(observe([34] * 5, replicas=2))[0] == Decision(2, "rate and lag fit")


def test_a_replica_is_emptied_before_it_ends() -> None:
    seen = observe([30] * 5, replicas=2)
    decision, policy = POLICY.decide(seen)

    assert decision.replicas == 2
    assert set((decision.assignment or {}).values()) == {Slot(0)}

    waiting, policy = policy.decide(observe([30] * 5, replicas=2, time_s=101))
    assert (waiting.replicas, waiting.assignment) == (2, None)

    empty = observe([30] * 5, replicas=2, owners=[0] * 5, time_s=104)
    ended, policy = policy.decide(empty)
    assert (ended.replicas, ended.assignment) == (1, None)
    assert policy == POLICY


def test_a_partition_whose_owner_is_unknown_may_be_the_last_one_s() -> None:
    _, policy = POLICY.decide(observe([30] * 5, replicas=2))

    assert replicas(policy, observe([30] * 5, replicas=2, owners=[0] * 4)) == 2


def test_a_replica_that_is_not_empty_in_time_ends_all_the_same() -> None:
    _, policy = POLICY.decide(observe([30] * 5, replicas=2))

    assert replicas(policy, observe([30] * 5, replicas=2, time_s=130)) == 2
    assert replicas(policy, observe([30] * 5, replicas=2, time_s=131)) == 1


def test_a_replica_that_is_being_emptied_is_kept_when_the_load_is_back() -> None:
    _, policy = POLICY.decide(observe([30] * 5, replicas=2))
    seen = observe([50] * 5, replicas=2, owners=[0] * 5, time_s=101)
    decision, after = policy.decide(seen)

    assert decision.replicas == 2
    assert sorted(rates_of(seen, decision)) == [100, 150]
    assert isinstance(after, SlaPacking)
    assert after.emptying is None


def test_a_group_that_takes_no_assignment_shrinks_at_once() -> None:
    decision = replace(POLICY, steers=False).decide(observe([30] * 5, replicas=2))[0]

    assert (decision.replicas, decision.assignment) == (1, None)


def test_a_rebalance_longer_than_the_sla_is_not_made_twice() -> None:
    slow = replace(POLICY, rebalance_s=2)

    assert replicas(slow, observe([8] * 5, replicas=2)) == 1


def test_it_waits_after_a_change() -> None:
    many = observe([100] * 5, scaled_s=95)

    assert POLICY.decide(many)[0] == Decision(1, "the last change is too recent")
    assert replicas(replace(POLICY, cooldown_up_s=3), many) == 5
    assert replicas(replace(POLICY, cooldown_up_s=3), observe([1], replicas=2, scaled_s=95)) == 2


UNEVEN = observe([50] * 5, replicas=2, owners=[0, 0, 0, 0, 0])


def test_an_overloaded_replica_gives_to_one_that_has_room() -> None:
    decision, after = POLICY.decide(UNEVEN)

    assert decision.replicas == 2
    assert sorted(rates_of(UNEVEN, decision)) == [100, 150]
    assert after.decide(UNEVEN)[0] == Decision(2, "the last change is too recent")


def test_an_assignment_again_takes_no_replica_away() -> None:
    """Two replicas would do, but not with the gap that a scale-down needs."""
    seen = observe([90] * 3, replicas=3, owners=[0, 0, 0])
    decision = POLICY.decide(seen)[0]

    assert decision.replicas == 3
    assert max(rates_of(seen, decision)) == 180


def test_a_group_that_takes_no_assignment_is_not_assigned_again() -> None:
    assert replace(POLICY, steers=False).decide(UNEVEN)[0] == Decision(2, "rate and lag fit")


def test_partitions_that_have_gone_do_not_count() -> None:
    seen = observe([30] * 5, replicas=2)
    with_gone = replace(seen, assignment={**seen.assignment, PARTITIONS[9]: Slot(1)})

    assert replace(POLICY, down=0.1).decide(with_gone)[0].assignment is None


def test_the_number_is_bounded() -> None:
    assert replicas(replace(POLICY, least=3), observe([0] * 5)) == 3
    seen = observe([100, 100, 50, 50, 50, 50], replicas=2)
    decision = replace(POLICY, most=2).decide(observe([100, 100, 50, 50, 50, 50]))[0]

    assert decision.replicas == 2
    assert rates_of(seen, decision) == [200, 200]


def test_a_group_above_its_bound_is_emptied_down_to_it() -> None:
    """However full the two are then."""
    decision, after = replace(POLICY, most=2, rebalance_s=0.1).decide(
        observe([100] * 5, replicas=4)
    )

    assert decision.assignment is not None
    assert set(decision.assignment.values()) == {Slot(0), Slot(1)}
    assert after == replace(POLICY, most=2, rebalance_s=0.1, emptying=(2, 100))


def test_a_group_at_its_bound_is_not_assigned_again_and_again() -> None:
    """Both replicas have too much, whoever reads what."""
    full = observe([100, 100, 100, 100, 100], replicas=2, owners=[0, 1, 0, 1, 0])

    assert replace(POLICY, most=2).decide(full)[0].assignment is None


RATES = st.lists(st.floats(0, 400), min_size=1, max_size=12)


@given(RATES, st.integers(1, 12), st.booleans(), st.sampled_from([0, 0.5, 2]))
def test_every_plan_covers_all_partitions_with_slots_that_are_there(
    rates: list[float], number: int, steers: bool, rebalance_s: float
) -> None:
    policy = replace(POLICY, steers=steers, rebalance_s=rebalance_s)
    seen = observe(rates, replicas=number)
    decision = policy.decide(seen)[0]

    assert 1 <= decision.replicas <= max(number, len(rates))
    if decision.assignment is not None:
        assert steers
        assert decision.assignment.keys() == seen.loads.keys()
        assert max(decision.assignment.values()) < decision.replicas


@given(RATES)
def test_a_decision_is_stable(rates: list[float]) -> None:
    """Carried out, and with the same loads, it changes nothing any more."""
    seen = observe(rates)
    decision, policy = POLICY.decide(seen)
    assignment = seen.assignment if decision.assignment is None else decision.assignment
    later = replace(seen, replicas=decision.replicas, assignment=assignment, time_s=200)
    again = policy.decide(later)[0]

    assert (again.replicas, again.assignment) == (decision.replicas, None)


@pytest.mark.parametrize("lag", [0, 1e9])
def test_there_are_never_more_replicas_than_partitions(lag: float) -> None:
    assert replicas(POLICY, observe([1_000] * 3, [lag] * 3)) == 3


ALL = SlaPacking(capacity=BURSTS, steers=False)
"""A replica is filled to 90/s: what it serves of a burst in 0.5 s, with headroom."""
SOME = replace(ALL, sla_share=0.8)
DEMAND = Demand(capacity=BURSTS, catch_up_s=5.0)


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
    most = replace(SOME, sla_share=0.1)

    assert replicas(most, observe([32] * 5)) == 1
    assert replicas(most, observe([33] * 5)) == 2


def test_what_is_to_be_caught_up_counts_too() -> None:
    most = replace(SOME, sla_share=0.1, catch_up_s=10.0)

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


@given(RATES, st.sampled_from([0.95, 0.8, 0.5, 0.05]))
def test_there_are_never_more_replicas_than_if_all_are_to_be_in_time(
    rates: list[float], sla_share: float
) -> None:
    loads = {p: PartitionLoad(rate) for p, rate in zip(PARTITIONS, rates, strict=False)}
    every = DEMAND.bins(loads, 0.9)
    found = replace(DEMAND, sla_share=sla_share).bins(loads, 0.9)

    assert len(found) <= len(every)
    assert sorted(p for inside in found for p in inside) == sorted(loads)
    if len(found) < len(every):
        assert DEMAND.late_share(found, loads, 0.9) <= 1 - sla_share


@given(RATES, st.sampled_from([0.95, 0.8, 0.5]))
def test_a_decision_with_a_share_is_stable(rates: list[float], sla_share: float) -> None:
    """Carried out, and with the same loads, it changes nothing any more."""
    policy = replace(ALL, sla_share=sla_share)
    decided = replicas(policy, observe(rates))

    assert replicas(policy, observe(rates, replicas=decided)) == decided


@pytest.mark.parametrize("most", [1, 2])
def test_the_most_replicas_hold_with_a_share_too(most: int) -> None:
    assert replicas(replace(SOME, most=most), observe([100] * 5)) == most
    assert replicas(replace(SOME, most=most), observe([100] * 5, replicas=4)) == most
