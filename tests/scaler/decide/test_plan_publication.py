"""Which plans are published, and which are worth a rebalance."""

from collections.abc import Sequence
from dataclasses import replace

from binwright.protocol.group_plans import GroupPlan
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.even_bins import BinsProposal
from binwright.scaler.decide.members import GroupMember
from binwright.scaler.decide.plan_publication import GroupState, PlanPublisher, Rebalance
from binwright.scaler.decide.policy import PartitionLoad, ReplicaCapacity

PARTITIONS = [TopicPartition("orders", number) for number in range(4)]
CAPACITY = ReplicaCapacity(rate=100, sla_s=1.0)
PUBLISHER = PlanPublisher(
    capacity=CAPACITY, rebalance=Rebalance(pause_s=3.0, payback_s=60, cooldown_s=30)
)
SLOW = (10.0,) * 4


def state(
    owned: Sequence[Sequence[int]], rates: Sequence[float] = SLOW, now_s: float = 0.0
) -> GroupState:
    """Return a group whose members x, y, ... read these partitions."""
    return GroupState(
        group="shop",
        members={
            name: GroupMember(
                topics=frozenset({"orders"}),
                owned=frozenset(PARTITIONS[n] for n in numbers),
                generation=1,
            )
            for name, numbers in zip("xyz", owned, strict=False)
        },
        loads={p: PartitionLoad(rate) for p, rate in zip(PARTITIONS, rates, strict=True)},
        now_s=now_s,
        now_ms=round(1000 * now_s),
    )


def proposal(*bins: Sequence[int]) -> BinsProposal:
    return BinsProposal(tuple(tuple(PARTITIONS[n] for n in inside) for inside in bins), "because")


def planned(*bins: Sequence[int], at_s: float = 0.0) -> GroupPlan:
    _, after = PUBLISHER.decide(state([[0, 1], [2, 3]], now_s=at_s), proposal(*bins))
    assert after.plan is not None
    return after.plan


def test_a_plan_has_the_load_of_each_partition_in_thousandths_of_a_member() -> None:
    done, _ = PUBLISHER.decide(state([[0, 1], [2, 3]], [12.5, 50, 0, 1]), None)
    assert done.plan is not None
    assert [list(one.values()) for one in done.plan.bins] == [[125, 500], [0, 10]]


def test_a_plan_that_is_known_is_not_published_again_at_once() -> None:
    _, after = PUBLISHER.decide(state([[0, 1], [2, 3]]), None)
    done, same = after.decide(state([[0, 1], [2, 3]], now_s=100), None)
    assert (done.plan, done.rebalances, same) == (None, False, after)


def test_a_plan_is_repeated_under_the_same_generation_before_it_gets_old() -> None:
    first, after = PUBLISHER.decide(state([[0, 1], [2, 3]]), None)
    done, _ = after.decide(state([[0, 1], [2, 3]], now_s=200), None)
    assert first.plan is not None
    assert done.plan == replace(first.plan, at_ms=200_000)


def test_a_plan_that_is_no_longer_in_force_is_not_brought_back() -> None:
    """A controller was away for longer than the plan held: the group has changed without it."""
    old = replace(PUBLISHER, plan=planned([0, 1], [2, 3]))
    done, after = old.decide(state([[0, 2], [1, 3]], now_s=601), None)
    assert done.plan is not None
    assert [sorted(p.partition for p in one) for one in done.plan.bins] == [[0, 2], [1, 3]]
    assert (done.plan.generation, done.rebalances) == (1, False)
    assert after.plan == done.plan


def test_another_order_of_bins_is_published_without_a_rebalance() -> None:
    done, _ = PUBLISHER.decide(state([[0, 1], [2, 3]]), proposal([2, 3], [0, 1]))
    assert done.plan is not None
    assert not done.rebalances


def test_bins_that_are_those_of_the_last_plan_are_not_published_again() -> None:
    same = proposal([0, 1], [2, 3])
    _, after = PUBLISHER.decide(state([[0, 1], [2, 3]]), same)
    done, _ = after.decide(state([[0, 1], [2, 3]], now_s=100), same)
    assert (done.plan, done.reason) == (None, same.reason)


def test_other_bins_have_the_next_generation() -> None:
    _, after = PUBLISHER.decide(state([[0, 1], [2, 3]]), None)
    done, _ = after.decide(state([[0, 1], [2, 3]]), proposal([2, 3], [0, 1]))
    assert done.plan is not None
    assert done.plan.generation == 1


def test_a_move_that_spares_no_late_record_is_not_worth_a_rebalance() -> None:
    done, _ = PUBLISHER.decide(state([[0, 1, 2], [3]]), proposal([0, 1], [2, 3]))
    assert not done.rebalances
    assert done.reason == "a rebalance spares 0 late records and delays 30"


def test_an_overload_that_stays_is_not_worth_a_rebalance() -> None:
    overloaded = state([[0, 1], [2, 3]], [200, 5, 5, 5])
    done, _ = PUBLISHER.decide(overloaded, proposal([0, 2], [1, 3]))
    assert not done.rebalances


def lagging(owned: Sequence[Sequence[int]], rate: float, lag: float) -> GroupState:
    """Return a group of four partitions, each with this rate and lag."""
    loads = dict.fromkeys(PARTITIONS, PartitionLoad(rate, lag))
    return replace(state(owned), loads=loads)


def test_a_lag_that_others_work_off_in_time_is_worth_a_rebalance() -> None:
    """The first member has 120 records and serves 90 in time: 30 are late, and what follows."""
    quick = replace(PUBLISHER, rebalance=Rebalance(pause_s=0.5))
    behind = lagging([[0, 1, 2], [3]], 10, 40)
    assert quick.decide(behind, proposal([0, 1], [2, 3]))[0].rebalances
    in_time = lagging([[0, 1, 2], [3]], 10, 30)
    assert not quick.decide(in_time, proposal([0, 1], [2, 3]))[0].rebalances


def test_a_lag_that_two_work_off_sooner_is_worth_a_rebalance() -> None:
    """Nobody is in time at first, but what arrives is late for half as long."""
    behind = lagging([[0, 1, 2], [3]], 10, 1_000)
    assert PUBLISHER.decide(behind, proposal([0, 1], [2, 3]))[0].rebalances


def test_while_a_member_falls_behind_all_that_arrives_is_late() -> None:
    slow = replace(PUBLISHER, rebalance=Rebalance(pause_s=20, payback_s=10))
    proposed = proposal([0, 1], [2, 3])
    # The move delays 800. 30 of 120 wait too long, and 120/s arrive for 10 s; else 30/s are late.
    assert slow.decide(lagging([[0, 1, 2], [3]], 40, 40), proposed)[0].rebalances
    assert not slow.decide(lagging([[0, 1, 2], [3]], 40, 0), proposed)[0].rebalances


def test_an_eager_rebalance_costs_what_all_partitions_lose() -> None:
    """Half a record a second too many for ten seconds does not pay for 3 s of all 103."""
    rates = [80.0, 11, 6, 6]
    small = replace(PUBLISHER, rebalance=Rebalance(pause_s=3.0, payback_s=10))
    eager = replace(small, rebalance=replace(small.rebalance, stops_all=True))
    heavy = state([[0, 1, 2], [3]], rates)
    change = proposal([0, 2], [1, 3])
    assert small.decide(heavy, change)[0].rebalances
    assert not eager.decide(heavy, change)[0].rebalances


def test_a_pause_within_the_sla_delays_nothing() -> None:
    quick = replace(PUBLISHER, rebalance=Rebalance(pause_s=0.5, payback_s=0.1))
    overloaded = state([[0, 1, 2], [3]], [80, 20, 20, 20])
    assert quick.decide(overloaded, proposal([0], [1, 2, 3]))[0].rebalances


def test_a_member_that_reads_nothing_is_worth_a_rebalance() -> None:
    done, _ = PUBLISHER.decide(state([[0, 1], [2, 3], []]), proposal([0, 1], [2], [3]))
    assert (done.rebalances, done.moved) == (True, 1)


def test_partitions_without_a_reader_are_worth_a_rebalance() -> None:
    done, _ = PUBLISHER.decide(state([[0, 1], [2]]), proposal([0, 1], [2, 3]))
    assert (done.rebalances, done.moved) == (True, 0)


def test_rebalances_have_a_pause_between_them() -> None:
    overloaded = state([[0, 1, 2], [3]], [80, 20, 20, 20])
    _, after = PUBLISHER.decide(overloaded, proposal([0], [1, 2, 3]))
    done, _ = after.decide(replace(overloaded, now_s=29.0), proposal([0], [1, 2, 3]))
    assert (done.plan, done.reason) == (None, "the last rebalance is too recent")
    done, _ = after.decide(replace(overloaded, now_s=30.0), proposal([0], [1, 2, 3]))
    assert done.rebalances


def test_what_a_scaler_requires_is_not_weighed() -> None:
    done, _ = PUBLISHER.decide(state([[0, 1], [2, 3]]), proposal([0, 1, 2, 3]), is_required=True)
    assert (done.rebalances, done.moved) == (True, 2)


def test_a_partition_that_is_not_measured_counts_as_no_load() -> None:
    known = state([[0, 1, 2], [3]], [80, 20, 20, 20])
    few = replace(known, loads={p: known.loads[p] for p in PARTITIONS[:3]})
    done, _ = PUBLISHER.decide(few, proposal([0], [1, 2]))
    assert done.rebalances


def test_a_plan_counts_until_its_validity_ends() -> None:
    plan = planned([0, 1], [2, 3], at_s=1000)
    assert plan.is_valid(1_600_000)
    assert not plan.is_valid(1_600_001)


def test_a_plan_of_a_clock_ahead_counts_for_as_long() -> None:
    plan = planned([0, 1], [2, 3], at_s=1000)
    assert plan.is_valid(400_000)
    assert not plan.is_valid(399_999)
