"""Plans come before members, and replicas go empty."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from tests.scaler.decide.scaled_groups import CONFIG, changed, work

from binwright.protocol.model import Slot, TopicPartition
from binwright.scaler.decide.assigning import (
    EMPTY_S,
    SETTLE_S,
    Planner,
    Replica,
    choose_leaving,
    departed,
    is_empty,
    planned,
    with_assignment,
)
from binwright.scaler.decide.broker_requests import MOVED_NOTHING, BrokerRequest
from binwright.scaler.decide.config import Bounds
from binwright.scaler.decide.lags import Work
from binwright.scaler.decide.learning import Learnt
from binwright.scaler.decide.members import (
    COOPERATIVE,
    EAGER,
    STABLE,
    GroupDescription,
    GroupMember,
    owners,
)
from binwright.scaler.decide.sizing import (
    AssignmentStep,
    Emptying,
    GroupSnapshot,
    ScalingState,
    Verdict,
    WorkloadStatus,
    decide,
)

ASSIGNED = changed(CONFIG, assigns=True, cooldown_up_s=0.0, cooldown_down_s=0.0)
NOW_S = 1_000.0


def p(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def member(*numbers: int, **fields: Any) -> GroupMember:
    return GroupMember(topics=frozenset("t"), owned=frozenset(map(p, numbers)), **fields)


def group(
    *owned: Iterable[int], state: str = STABLE, protocol: str = COOPERATIVE
) -> GroupDescription:
    """Return a group whose members m0, m1, ... read these partitions."""
    members = {f"m{n}": member(*inside) for n, inside in enumerate(owned)}
    return GroupDescription(state, protocol, members)


def snapshot(seen: Work, replicas: int, now_s: float = NOW_S) -> GroupSnapshot:
    return GroupSnapshot(
        work=seen,
        workload=WorkloadStatus(replicas=replicas, ready=replicas),
        now_s=now_s,
        wall_s=50.0,
    )


def step(
    rates: list[float],
    replicas: int,
    seen: GroupDescription,
    *,
    state: ScalingState | None = None,
    now_s: float = NOW_S,
    missing: int = 0,
    **config: Any,
) -> tuple[ScalingState, Verdict]:
    """Decide on a group of partitions with these rates, whose members serve 100/s each."""
    wanted = changed(ASSIGNED, **config)
    at = snapshot(work(rates, missing=missing), replicas, now_s)
    after, verdict = decide(wanted, state or ScalingState(), at)
    return with_assignment(wanted, after, at, verdict, seen)


BUSY, CALM = [40.0] * 4, [10.0] * 4
TWO = group([0, 1], [2, 3])


def test_a_plan_for_more_members_comes_with_the_order() -> None:
    _, verdict = step(BUSY, 1, group([0, 1, 2, 3]))
    assert (verdict.order, verdict.step) == (2, AssignmentStep(members=2, is_required=True))


def test_a_group_that_wakes_has_a_plan_before_its_first_member() -> None:
    _, verdict = step(BUSY, 0, GroupDescription("Empty", ""))
    assert (verdict.order, verdict.step) == (2, AssignmentStep(members=2, is_required=True))


def test_a_group_whose_number_stays_is_evened_out_if_that_is_worth_it() -> None:
    _, verdict = step(BUSY, 2, TWO)
    assert (verdict.order, verdict.step) == (None, AssignmentStep(members=2, is_required=False))


@pytest.mark.parametrize("fields", [{"mode": "approve"}, {"missing": 1}])
def test_it_is_not_evened_out_without_leave_or_by_rates_that_are_not_known(
    fields: dict[str, Any],
) -> None:
    assert step(BUSY, 2, TWO, **fields)[1].step is None


def test_replicas_are_emptied_before_they_end() -> None:
    _, verdict = step(CALM, 2, TWO)
    assert verdict.step == AssignmentStep(members=1, is_required=True, empties=True)


def test_a_group_that_goes_to_zero_has_nothing_to_give_away() -> None:
    state = ScalingState(idle_since_s=0.0)
    _, verdict = step([0.0] * 4, 2, TWO, state=state, min_replicas=0, max_replicas=10)
    assert (verdict.order, verdict.step) == (0, None)


def test_in_a_group_of_kip_848_replicas_come_and_end_without_a_plan() -> None:
    for rates, replicas, order in ((BUSY, 1, 2), (CALM, 2, 1)):
        seen = replace(group(*([[0, 1, 2, 3], []][:replicas])), type="consumer")
        _, verdict = step(rates, replicas, seen)
        assert (verdict.order, verdict.step) == (order, None)


def test_without_members_replicas_end_at_once() -> None:
    _, verdict = step(CALM, 2, GroupDescription("Empty", ""))
    assert verdict.order == 1
    assert verdict.step == AssignmentStep(members=1, is_required=True)


@pytest.mark.parametrize("fields", [{"mode": "observe"}, {"paused": True}])
def test_a_group_that_is_only_watched_is_not_assigned(fields: dict[str, Any]) -> None:
    state = ScalingState(emptying=Emptying(1, ("m1",), NOW_S))
    after, verdict = step(CALM, 2, TWO, state=state, **fields)
    assert (after.emptying, verdict.step, verdict.order) == (None, None, None)


def test_another_assignor_is_named_and_the_number_set_all_the_same() -> None:
    _, verdict = step(BUSY, 1, group([0, 1, 2, 3], protocol="range"))
    assert (verdict.order, verdict.step) == (2, None)
    assert verdict.reasons[-1] == "nothing is assigned: the group uses the assignor range"


def test_nothing_is_ordered_while_the_group_rebalances_unless_it_never_ends() -> None:
    seen = group([], state="PreparingRebalance")
    state, verdict = step(BUSY, 1, seen)
    assert (verdict.order, verdict.reasons[-1]) == (None, "the group is rebalancing")

    state, verdict = step(BUSY, 1, seen, state=state, now_s=NOW_S + SETTLE_S - 1)
    assert verdict.order is None
    state, verdict = step(BUSY, 1, seen, state=state, now_s=NOW_S + SETTLE_S)
    assert (verdict.order, verdict.step) == (2, None)
    assert verdict.reasons[-1] == "nothing is assigned: the group does not become stable"

    state, _ = step(BUSY, 1, group([0, 1, 2, 3]), state=state, now_s=NOW_S + SETTLE_S + 1)
    assert state.unsettled_since_s is None


def test_members_beyond_the_replicas_are_waited_for() -> None:
    _, verdict = step(CALM, 1, TWO)
    assert verdict.reasons[-1] == "the group is rebalancing"


EMPTYING = ScalingState(emptying=Emptying(1, ("m1",), NOW_S))


@pytest.mark.parametrize(
    ("seen", "passed_s", "order"),
    [
        (TWO, 0.0, None),
        (group([0, 1], []), 0.0, None),  # between two rebalances nobody reads what moves
        (group([0, 1, 2, 3], []), 0.0, 1),
        (group([0, 1, 2, 3]), 0.0, 1),  # it has left already
        (TWO, EMPTY_S + 1, 1),
    ],
)
def test_a_replica_ends_when_the_others_read_everything(
    seen: GroupDescription, passed_s: float, order: int | None
) -> None:
    _, verdict = step(CALM, 2, seen, state=EMPTYING, now_s=NOW_S + passed_s)
    assert (verdict.order, verdict.step) == (order, None)


def test_partitions_without_a_subscriber_keep_no_replica() -> None:
    members = group([0], []).members
    loads = {**work([1.0]).loads, TopicPartition("old", 0): work([1.0]).loads[p(0)]}
    assert is_empty(members, loads, Emptying(1, ("m1",), 0.0))


def test_a_load_that_lies_between_the_two_thresholds_empties_on() -> None:
    _, verdict = step([19.0] * 4, 2, group([0, 1, 2, 3], []), state=EMPTYING)
    assert (verdict.order, verdict.wanted) == (1, 1)


@pytest.mark.parametrize("replicas", [2, 1])
def test_a_load_that_is_back_takes_the_emptying_back(replicas: int) -> None:
    """Also where the replicas have gone meanwhile, by another hand."""
    state, verdict = step(BUSY, replicas, group([0, 1, 2, 3]), state=EMPTYING)
    assert state.emptying is None
    assert verdict.step == AssignmentStep(members=2, is_required=True)
    assert verdict.order == (2 if replicas == 1 else None)


def test_bounds_that_rise_take_the_emptying_back() -> None:
    state, _ = step(CALM, 2, TWO, state=EMPTYING, min_replicas=2, max_replicas=10)
    assert state.emptying is None


UNEVEN = [80.0, 20.0, 5.0, 5.0]
IN_BROKER = replace(TWO, type="consumer")


def asked_for(count: int, seen: GroupDescription = IN_BROKER) -> ScalingState:
    """Return the state after so many requests to the broker, of which none moved anything."""
    request = BrokerRequest(owners(seen.members))
    for _ in range(count - 1):
        request = request.again(seen.members)
    return ScalingState(request=request)


def test_a_broker_that_moves_nothing_is_asked_ever_less_often() -> None:
    what = AssignmentStep(members=2, is_required=False)
    request, times, state = None, [], ScalingState()
    for tick in range(1_000):
        now_s = 10.0 * tick
        planner = Planner(config=ASSIGNED, records_per_s=100.0, valid_s=600.0)
        at = snapshot(work(UNEVEN), 2, now_s)
        state, done = planner.plan(state, at, IN_BROKER, what)
        if done.rebalances:
            times.append(now_s)
            assert state.request is not request
            request = state.request
    assert times == [0, 30, 90, 210, 450, 930, 1890, 3690, 5490, 7290, 9090]


def test_a_broker_that_moved_something_is_asked_again_as_soon_as_before() -> None:
    before = asked_for(5)
    assert before.request
    moved = group([0], [1, 2, 3]).members
    assert before.request.cooldown_s(IN_BROKER.members) == 480
    assert before.request.cooldown_s(moved) == 30
    assert before.request.again(moved) == BrokerRequest(owners(moved))
    refused = replace(before.request, refused="no coordinator")
    assert refused.fault(IN_BROKER.members) == "no coordinator"
    assert refused.again(IN_BROKER.members) == BrokerRequest(owners(IN_BROKER.members))


@pytest.mark.parametrize("of_others", [True, False])
def test_a_second_request_that_moved_nothing_is_a_fault_while_the_load_is_uneven(
    *, of_others: bool
) -> None:
    def shown(
        rates: list[float], count: int, seen: GroupDescription = IN_BROKER
    ) -> tuple[str, bool]:
        at = snapshot(work(rates), 2)
        at = replace(at, workload=replace(at.workload, of_others=of_others))
        decided = Verdict(current=2, wanted=2, reasons=())
        _, verdict = with_assignment(ASSIGNED, asked_for(count), at, decided, seen)
        assert verdict.step is not None
        return verdict.fault, MOVED_NOTHING in verdict.reasons

    fault = MOVED_NOTHING if of_others else ""
    assert shown(UNEVEN, 2) == (fault, True)
    assert shown(UNEVEN, 1) == ("", False), "it may be under way"
    assert shown(BUSY, 2) == ("", False), "the load has become even"
    moved = replace(group([0], [1, 2, 3]), type="consumer")
    assert shown(UNEVEN, 2, moved) == ("", False)


LOADS = work([40.0, 5.0, 10.0, 20.0]).loads


def test_the_members_with_the_least_load_leave_where_any_may() -> None:
    seen = group([0], [1], [2, 9], [3])
    replicas = {name: Replica(name) for name in seen.members}
    assert choose_leaving(seen.members, LOADS, replicas, 2) == ("m1", "m2")
    del replicas["m1"]
    assert choose_leaving(seen.members, LOADS, replicas, 2) == ("m2", "m3")
    assert choose_leaving(seen.members, LOADS, replicas, 5) == ()


def test_the_highest_numbers_leave_where_the_workload_ends_them() -> None:
    seen = group([0], [1], [2], [3])
    replicas = {"m0": Replica("p-2", 2), "m1": Replica("p-0", 0), "m2": Replica("p-1", 1)}
    assert choose_leaving(seen.members, LOADS, replicas | {"m3": Replica("x")}, 1) == ("m0", "m2")


def test_bins_stay_even_and_close_to_who_reads_what() -> None:
    policy = ASSIGNED.packing_policy(100.0, Bounds(1, 4), 4, ASSIGNED.times(Learnt()))
    current = {p(0): Slot(0), p(1): Slot(0), p(2): Slot(0), p(3): Slot(0)}
    bins = planned(policy, work(BUSY).loads, current, 2)
    assert sorted(map(len, bins)) == [2, 2]


def test_the_packing_counts_where_few_moves_leave_too_much_for_one() -> None:
    """No single move or exchange helps two large partitions that are together."""
    policy = ASSIGNED.packing_policy(100.0, Bounds(1, 6), 6, ASSIGNED.times(Learnt()))
    loads = work([46.8, 46.8, *[17.0] * 4]).loads
    current = {p(0): Slot(0), p(1): Slot(0), **{p(n): Slot(1) for n in range(2, 6)}}
    bins = planned(policy, loads, current, 3)
    assert max(sum(loads[one].rate for one in inside) for inside in bins) <= 90
    assert planned(policy, loads, current, 2) != ((p(0), p(1)), tuple(p(n) for n in range(2, 6)))


def plans(
    seen: GroupDescription, what: AssignmentStep, *, rates: list[float], **state: Any
) -> tuple[ScalingState, Any]:
    planner = Planner(config=ASSIGNED, records_per_s=100.0, valid_s=600.0)
    leaving = state.pop("leaving", ())
    at = snapshot(work(rates), state.pop("replicas", len(seen.members)))
    return planner.plan(ScalingState(**state), at, seen, what, leaving)


def test_a_plan_for_more_members_moves_nothing_yet() -> None:
    state, done = plans(TWO, AssignmentStep(members=3, is_required=True), rates=[60.0] * 4)
    assert state.plan == done.plan
    assert len(done.plan.bins) == 3
    assert not done.rebalances


def test_a_plan_for_fewer_names_who_leaves_and_has_the_group_rebalance() -> None:
    what = AssignmentStep(members=1, is_required=True, empties=True)
    state, done = plans(TWO, what, rates=CALM, leaving=("m0",))
    assert (done.plan.leaving, len(done.plan.bins)) == (("m0",), 1)
    assert (done.rebalances, done.moved, state.rebalanced_s) == (True, 2, NOW_S)


def test_an_equal_plan_is_not_published_each_time() -> None:
    what = AssignmentStep(members=2, is_required=False)
    state, first = plans(TWO, what, rates=BUSY)
    assert first.plan is not None
    _, second = plans(TWO, what, rates=BUSY, plan=state.plan)
    assert second.plan is None


def test_a_plan_for_members_that_do_not_come_is_not_published_each_time() -> None:
    what = AssignmentStep(members=3, is_required=True)
    state, _ = plans(TWO, what, rates=[60.0] * 4)
    _, second = plans(TWO, what, rates=[61.0] * 4, plan=state.plan)
    assert second.plan is None


def test_members_that_are_still_counted_after_their_end_get_nothing() -> None:
    what = AssignmentStep(members=1, is_required=True, empties=True)
    state, _ = plans(TWO, what, rates=CALM, leaving=("m1",))
    seen = group([0, 1, 2, 3], [])
    assert departed(state.plan, seen.members, 1) == ("m1",)
    assert departed(state.plan, seen.members, 2) == ()
    assert departed(None, seen.members, 1) == ()
    what = AssignmentStep(members=2, is_required=True)
    _, grown = plans(seen, what, rates=BUSY, plan=state.plan, replicas=1)
    assert grown.plan.leaving == ("m1",)
    assert len(grown.plan.bins) == 2


def test_an_eager_group_stops_as_a_whole_for_a_plan() -> None:
    """What is gained by an even load is not worth a pause of all partitions at a tight SLA."""
    uneven = [80.0, 10.0, 5.0, 5.0]
    what = AssignmentStep(members=2, is_required=False)
    late = [group([0, 1, 2], [3], protocol=each) for each in (COOPERATIVE, EAGER)]
    cooperative, eager = (plans(each, what, rates=uneven)[1] for each in late)
    assert cooperative.rebalances is eager.rebalances
