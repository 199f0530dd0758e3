"""Plans for brokers that wait or run, by the records of their topic."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from binwright.balancer.decide.model import (
    UNLIMITED,
    Amounts,
    Broker,
    BrokerId,
    Cluster,
    Partition,
    Topic,
)
from binwright.balancer.decide.planner import plan as find_plan
from binwright.balancer.decide.plans import Balance, PlacementPlan
from binwright.balancer.decide.proposals import (
    HOUR_MS,
    BrokerMode,
    BrokerPlan,
    BrokerPlanRecord,
    BrokerPlans,
    BrokersApproved,
    BrokersEnded,
    BrokersProposed,
    CopiesStarted,
    before_plan,
    is_found_again,
    outdated_reason,
    proposal_of,
)
from binwright.balancer.decide.thresholds import Thresholds, crossings
from binwright.balancer.ports import ClusterState, PartitionState, Reassignment
from binwright.protocol.model import BytesPerSecond, TopicPartition

P0, P1 = (TopicPartition("orders", number) for number in range(2))
PLAN = BrokersProposed(
    group="orders", reasons=("uneven",), bytes=100, before={P0: (1,)}, after={P0: (2,)}, waits=True
)
APPROVED = BrokersApproved(plan=0, by="ann")
STARTED = CopiesStarted(plan=0, bytes=0, at_ms=0)
ENDED = BrokersEnded(plan=0, done=True, reason="all is in place")
ONE, TWO = BrokerId(1), BrokerId(2)
GONE = TopicPartition("orders", 99)


def read(records: Iterable[BrokerPlanRecord]) -> BrokerPlans:
    found = BrokerPlans()
    for offset, record in enumerate(records):
        found = found.applied(offset, record)
    return found


def test_the_offset_of_a_proposal_is_its_number() -> None:
    assert read([APPROVED, PLAN]).numbered(1) == BrokerPlan(1, PLAN)


def test_a_plan_that_waits_goes_ahead_when_it_is_approved() -> None:
    waiting, approved = read([PLAN]), read([PLAN, APPROVED])
    assert not waiting.by_group["orders"].goes_ahead
    assert approved.by_group["orders"].goes_ahead


def test_a_plan_that_does_not_wait_goes_ahead() -> None:
    assert BrokerPlan(0, replace(PLAN, waits=False)).goes_ahead


def test_a_plan_that_has_started_is_known_to_the_next_leader() -> None:
    found = read([PLAN, APPROVED, STARTED]).numbered(0)
    assert found == BrokerPlan(0, PLAN, approved=True, by="ann", started=True)


def test_the_first_approval_names_who_gave_it() -> None:
    assert read([PLAN]).by_group["orders"].by == ""
    twice = read([PLAN, APPROVED, replace(APPROVED, by="eve")]).by_group["orders"]
    assert (twice.approved, twice.by) == (True, "ann")


def test_a_plan_that_ended_is_gone() -> None:
    assert read([PLAN, ENDED]) == BrokerPlans()


def test_the_approval_of_another_plan_changes_nothing() -> None:
    assert read([PLAN, replace(APPROVED, plan=7)]).by_group == {"orders": BrokerPlan(0, PLAN)}


def test_a_later_proposal_of_the_same_group_takes_its_place() -> None:
    found = read([PLAN, PLAN])
    assert (found.numbered(0), found.numbered(1)) == (None, BrokerPlan(1, PLAN))


def test_groups_have_plans_of_their_own() -> None:
    other = replace(PLAN, group="clicks")
    assert read([PLAN, other, ENDED]).by_group == {"clicks": BrokerPlan(1, other)}


def test_copies_count_for_an_hour_whatever_became_of_their_plan() -> None:
    found = read([PLAN, replace(STARTED, bytes=10), ENDED, replace(STARTED, bytes=5, at_ms=1_000)])
    assert [found.last_hour_bytes(now) for now in (1_000, HOUR_MS, HOUR_MS + 1_000)] == [15, 5, 0]


def test_copies_of_earlier_hours_are_forgotten() -> None:
    late = replace(STARTED, bytes=5, at_ms=HOUR_MS)
    assert read([replace(STARTED, bytes=10), late]).copies == (late,)


def cluster(*leaders: BrokerId) -> Cluster:
    """Return brokers 1 and 2, and a partition of 100 bytes on each of these brokers."""
    partitions = tuple(
        Partition(
            id=TopicPartition("orders", number),
            rate=BytesPerSecond(1.0),
            size_bytes=100,
            replicas=(leader,),
            read=BytesPerSecond(1.0),
        )
        for number, leader in enumerate(leaders)
    )
    room = Amounts(1_000.0, 100.0, 100.0, 100.0)
    brokers = (Broker(ONE, room), Broker(TWO, room))
    return Cluster(brokers, {"orders": Topic("orders", replication=1)}, partitions)


def state_of(seen: Cluster) -> ClusterState:
    placed = {
        each.id: PartitionState(
            int(each.replicas[0]),
            tuple(map(int, each.replicas)),
            frozenset(map(int, each.replicas)),
        )
        for each in seen.partitions
    }
    return ClusterState({1: None, 2: None}, placed)


def reason(
    proposal: BrokerPlan,
    seen: Cluster,
    mode: BrokerMode = "approve",
    state: ClusterState | None = None,
) -> str | None:
    thresholds = Thresholds(imbalance=1.3, within_days=7.0)
    crossed = tuple(crossings(seen, {}, thresholds, dict.fromkeys((ONE, TWO), UNLIMITED)))
    return outdated_reason(proposal, mode, state or state_of(seen), seen, crossed)


UNEVEN, EVEN = cluster(ONE, ONE, ONE, ONE), cluster(ONE, TWO, ONE, TWO)
WAITING = BrokerPlan(0, PLAN)


def test_what_a_planner_finds_is_proposed_with_its_reasons() -> None:
    found = find_plan(UNEVEN, Balance())
    assert isinstance(found, PlacementPlan)
    proposed = proposal_of(found, (), "orders", "act")
    assert proposed is not None
    assert (proposed.bytes, proposed.waits, len(proposed.after)) == (100, False, 1)
    assert reason(BrokerPlan(0, proposed), UNEVEN, "act") is None


THRESHOLDS = Thresholds(imbalance=1.3, within_days=7.0)


def found_again(
    proposed: BrokersProposed, seen: Cluster, thresholds: Thresholds = THRESHOLDS
) -> bool:
    earlier = before_plan(seen, proposed)
    found = find_plan(earlier, Balance())
    assert isinstance(found, PlacementPlan)
    return is_found_again(proposed, earlier, found, thresholds)


def test_a_planner_finds_its_plan_again_also_when_some_of_it_is_in_place() -> None:
    found = find_plan(cluster(*[ONE] * 8), Balance())
    assert isinstance(found, PlacementPlan)
    proposed = proposal_of(found, (), "orders", "act")
    assert proposed is not None
    first, *_ = proposed.after
    half = cluster(*[TWO if number == first.partition else ONE for number in range(8)])
    assert found_again(proposed, cluster(*[ONE] * 8))
    assert found_again(proposed, half)


def test_a_planner_does_not_find_what_helps_less_moves_more_or_is_elsewhere() -> None:
    assert not found_again(PLAN, cluster(*[ONE] * 8))
    both = replace(PLAN, before={P0: (1,), P1: (1,)}, after={P0: (2,), P1: (2,)})
    assert not found_again(both, cluster(ONE, ONE))
    unknown = replace(PLAN, before={P0: (9,)})
    assert not found_again(unknown, EVEN)
    assert not found_again(replace(PLAN, after={P0: (9,)}), UNEVEN)
    assert not found_again(replace(PLAN, before={}, after={GONE: (2,)}), UNEVEN)


def test_a_plan_that_is_as_good_as_the_planner_s_is_found_again() -> None:
    """Sizes and rates that changed a little make a planner choose other partitions."""
    numbers = [TopicPartition(P0.topic, number) for number in range(8)]
    found = find_plan(cluster(*[ONE] * 8), Balance())
    assert isinstance(found, PlacementPlan)
    assert len(found.moves) == 3
    for chosen in (numbers[:3], numbers[4:7], numbers[::3]):
        moved = replace(PLAN, before=dict.fromkeys(chosen, (1,)), after=dict.fromkeys(chosen, (2,)))
        assert found_again(moved, cluster(*[ONE] * 8))
    for chosen in (numbers[:1], numbers[:4], numbers):
        moved = replace(PLAN, before=dict.fromkeys(chosen, (1,)), after=dict.fromkeys(chosen, (2,)))
        assert not found_again(moved, cluster(*[ONE] * 8))


def test_the_network_of_an_idle_cluster_does_not_count() -> None:
    """Each look finds another imbalance there."""
    seen = cluster(*[ONE] * 8)
    rates = (100.0, 100.0, 100.0, 100.0, 1.0, 1.0, 1.0, 1.0)
    partitions = tuple(
        replace(each, read=BytesPerSecond(rate))
        for each, rate in zip(seen.partitions, rates, strict=True)
    )
    chosen = [each.id for each in partitions[5:]]
    moved = replace(PLAN, before=dict.fromkeys(chosen, (1,)), after=dict.fromkeys(chosen, (2,)))
    room = Amounts(1_000.0, 10_000.0, 10_000.0, 100.0)
    roomy = tuple(replace(each, capacity=room) for each in seen.brokers)
    seen = replace(seen, partitions=partitions, brokers=roomy)
    assert not found_again(moved, seen)
    assert found_again(moved, seen, replace(THRESHOLDS, least_network=1_000.0))


def test_a_plan_that_moves_nothing_is_not_proposed() -> None:
    found = find_plan(EVEN, Balance())
    assert isinstance(found, PlacementPlan)
    assert proposal_of(found, (), "orders", "approve") is None


def test_a_plan_holds_while_nothing_has_changed() -> None:
    assert reason(WAITING, UNEVEN) is None


def test_a_plan_of_another_mode_is_outdated() -> None:
    assert reason(WAITING, UNEVEN, "act") == "brokers.mode has changed"


def test_a_plan_whose_partition_is_gone_is_outdated() -> None:
    gone = ClusterState({1: None, 2: None}, {})
    assert reason(WAITING, UNEVEN, state=gone) == "orders-0 is gone"


def test_a_plan_whose_partition_another_tool_moves_is_outdated() -> None:
    state = replace(state_of(UNEVEN), reassignments={P0: Reassignment((1, 3), (3,), (1,))})
    assert reason(WAITING, UNEVEN, state=state) == "orders-0 was moved by somebody else"


def test_a_plan_with_a_broker_that_is_down_is_outdated() -> None:
    state = replace(state_of(UNEVEN), racks={1: None})
    assert reason(WAITING, UNEVEN, state=state) == "broker 2 is down"


def test_a_plan_is_outdated_when_no_line_is_crossed() -> None:
    assert reason(WAITING, cluster(ONE, TWO, ONE, TWO)) == "no threshold is crossed by now"


def test_a_plan_that_makes_it_worse_is_outdated() -> None:
    seen = cluster(ONE, TWO, TWO, TWO)
    assert reason(WAITING, seen) == "it evens out nothing by the present load"


@pytest.mark.parametrize("seen", [EVEN, cluster(TWO, ONE)])
def test_a_plan_that_has_started_goes_on_although_no_line_is_crossed(seen: Cluster) -> None:
    assert reason(replace(WAITING, started=True), seen) is None


def test_a_resource_that_crosses_no_line_does_not_outdate_a_plan() -> None:
    """The plan moves a partition that nobody writes to: the network stays as uneven as it is."""
    idle = replace(UNEVEN.partitions[0], rate=BytesPerSecond(0.0), read=BytesPerSecond(0.0))
    seen = replace(UNEVEN, partitions=(idle, *UNEVEN.partitions[1:]))
    thresholds = Thresholds(imbalance=1.3, within_days=7.0, least_network=100.0)
    crossed = tuple(crossings(seen, {}, thresholds, dict.fromkeys((ONE, TWO), UNLIMITED)))
    assert [each.resource for each in crossed] == ["disk"]
    assert outdated_reason(WAITING, "approve", state_of(seen), seen, crossed) is None
