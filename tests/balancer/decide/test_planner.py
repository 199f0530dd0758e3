"""Plans for clusters by hand."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import pytest
from tests.balancer.decide.clusters import broker, cluster, ids, partition

from binwright.balancer.decide.constraints import violations
from binwright.balancer.decide.model import Amounts, Broker, Cluster, Partition, Topic, current
from binwright.balancer.decide.planner import plan
from binwright.balancer.decide.plans import Balance, FewestBrokers, Goal, Infeasible, PlacementPlan
from binwright.balancer.decide.search.problem import PlacementProblem, Solution

BALANCE = Balance()


def planned(found: Cluster, goal: Goal = BALANCE) -> PlacementPlan:
    """Return the plan, whose placement breaks no hard constraint."""
    outcome = plan(found, goal)
    assert isinstance(outcome, PlacementPlan), outcome
    if not outcome.added:
        assert violations(found, outcome.placement) == ()
    return outcome


def after(outcome: PlacementPlan) -> Mapping[str, tuple[int, ...]]:
    return {str(name): replicas for name, replicas in outcome.placement.items()}


def many(count: int, at: int, size: int = 1) -> list[Partition]:
    return [partition(f"orders-{n}", [at], size=size) for n in range(count)]


def test_a_balanced_cluster_stays_as_it_is() -> None:
    found = cluster(
        [broker(1), broker(2)], [partition("orders-0", [1]), partition("orders-1", [2])]
    )
    outcome = planned(found)
    assert (outcome.moves, outcome.placement) == ((), current(found))


class Reordering:
    """A solver that names the same replicas with the last follower first."""

    def place(self, problem: PlacementProblem) -> Solution:
        at = [[leader, *followers[::-1]] for leader, *followers in problem.homes]
        return Solution(at, feasible=True, proved=True)

    fewest = place


def test_followers_in_another_order_are_no_change() -> None:
    """Such a change has no reason, and does nothing."""
    found = cluster([broker(n) for n in (1, 2, 3)], [partition("orders-0", [1, 3, 2])])
    outcome = plan(found, BALANCE, Reordering())
    assert isinstance(outcome, PlacementPlan)
    assert (outcome.moves, outcome.placement) == ((), current(found))


def test_a_new_broker_gets_what_the_bound_asks_for_and_no_more() -> None:
    outcome = planned(cluster([broker(1), broker(2, state="new")], many(200, 1)))
    assert (outcome.relaxed, outcome.bytes) == (1.0, 95)
    assert outcome.after[ids(1)[0]].disk == 105.0


def test_a_drained_broker_is_empty() -> None:
    found = cluster([broker(1, state="draining"), broker(2), broker(3)], many(10, 1))
    assert planned(found).after[ids(1)[0]].replicas == 0


def test_leaders_move_before_replicas() -> None:
    partitions = [partition(f"orders-{n}", [1, 2], rate=10.0, size=50) for n in range(10)]
    outcome = planned(cluster([broker(1, network=200.0), broker(2, network=200.0)], partitions))
    assert (outcome.bytes, {move.leader_only for move in outcome.moves}) == (0, {True})


def test_replicas_are_added_where_the_topic_asks_for_more() -> None:
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1])], [Topic("orders", 2)])
    assert after(planned(found)) == {"orders-0": (1, 2)}


def test_replicas_are_removed_where_the_topic_asks_for_fewer() -> None:
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1, 2])], [Topic("orders", 1)])
    assert (planned(found).bytes, after(planned(found))) == (0, {"orders-0": (1,)})


def test_racks_are_spread() -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b")]
    assert after(planned(cluster(brokers, [partition("orders-0", [1, 2])]))) == {"orders-0": (1, 3)}


def test_topics_of_a_group_part() -> None:
    topics = [Topic("orders", 1, group="g"), Topic("bills", 1, group="g")]
    partitions = [partition("orders-0", [1], size=9), partition("bills-0", [1], size=5)]
    found = cluster([broker(1), broker(2)], partitions, topics)
    assert after(planned(found)) == {"bills-0": (2,), "orders-0": (1,)}


def test_replicas_too_large_for_the_bound_relax_it() -> None:
    """Rack b is one broker of three, and has a replica of everything."""
    brokers = [broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b")]
    partitions = [partition(f"orders-{n}", [1, 3], size=1) for n in range(200)]
    outcome = planned(cluster(brokers, partitions))
    assert outcome.relaxed == 1.6
    assert outcome.after[ids(3)[0]].replicas == 200


def test_without_a_bound_only_what_must_moves() -> None:
    found = cluster([broker(1, disk=150.0), broker(2)], many(200, 1))
    outcome = planned(found, Balance(inf))
    assert (outcome.bytes, outcome.relaxed) == (50, 1.0)


def test_a_contradiction_is_proved() -> None:
    outcome = plan(
        cluster([broker(1)], [partition("orders-0", [1])], [Topic("orders", 2)]), BALANCE
    )
    assert isinstance(outcome, Infeasible)
    assert (outcome.proved, outcome.conflicts[0].constraint) == (True, "replication")


def test_what_no_placement_was_found_for_names_the_constraints_in_the_way() -> None:
    """Three replicas of 60 do not go on two disks of 100, though 180 are within 200."""
    found = cluster([broker(1, disk=100.0), broker(2, disk=100.0)], many(3, 1, size=60))
    outcome = plan(found, BALANCE)
    assert isinstance(outcome, Infeasible)
    assert not outcome.proved
    assert [str(each) for each in outcome.conflicts] == [
        "capacity: without limits on disk there is a placement"
    ]


def test_a_constraint_of_topics_can_be_in_the_way() -> None:
    brokers = [broker(1, disk=100.0, rack="a"), broker(2, rack="b"), broker(3, rack="b")]
    partitions = [partition(f"orders-{n}", [2, 3], size=60) for n in range(2)]
    outcome = plan(cluster(brokers, partitions), BALANCE)
    assert isinstance(outcome, Infeasible)
    assert [each.constraint for each in outcome.conflicts] == ["capacity", "rack spread"]


def test_where_no_single_constraint_is_in_the_way_the_best_placement_is_named() -> None:
    brokers = [broker(b, disk=100.0, network=100.0) for b in (1, 2)]
    partitions = [partition(f"orders-{n}", [1], size=60, rate=60.0) for n in range(3)]
    outcome = plan(cluster(brokers, partitions), BALANCE)
    assert isinstance(outcome, Infeasible)
    assert {each.constraint for each in outcome.conflicts} == {"capacity"}
    assert "in the best placement found" in outcome.conflicts[0].detail


def test_replicas_without_a_broker_are_counted() -> None:
    """Two topics of two replicas on four brokers, one of which both are kept from."""
    barred = frozenset(ids(4))
    topics = [Topic(name, 2, group="g", excluded_brokers=barred) for name in ("bills", "orders")]
    partitions = [partition("bills-0", [1, 2]), partition("orders-0", [1, 2])]
    outcome = plan(cluster([broker(b) for b in (1, 2, 3, 4)], partitions, topics), BALANCE)
    assert isinstance(outcome, Infeasible)
    assert {each.constraint for each in outcome.conflicts} == {"anti-colocation", "exclusion"}


@pytest.mark.parametrize("size", [1, 400])
def test_the_same_cluster_gets_the_same_plan(size: int) -> None:
    found = cluster([broker(1), broker(2), broker(3)], many(30, 1, size=size // 20 + 1))
    assert plan(found, BALANCE) == plan(found, BALANCE)


# --- fewest brokers ------------------------------------------------------------------------------


def test_brokers_that_are_not_needed_are_closed() -> None:
    partitions = [partition(f"orders-{n}", [n + 1], size=30) for n in range(4)]
    outcome = planned(cluster([broker(b, disk=70.0) for b in (1, 2, 3, 4)], partitions),
                      FewestBrokers())  # fmt: skip
    assert len(outcome.closed) == 2
    assert outcome.bytes == 60
    assert {reason.constraint for move in outcome.moves for reason in move.reasons} == {
        "broker closed"
    }


def test_what_is_pinned_keeps_its_broker_open() -> None:
    partitions = [partition("orders-0", [1]), partition("orders-1", [2], size=5, pinned=[2])]
    outcome = planned(cluster([broker(1), broker(2)], partitions), FewestBrokers())
    assert outcome.closed == ids(1)


def test_growth_needs_more_brokers() -> None:
    partitions = [partition(f"orders-{n}", [n + 1], rate=30.0) for n in range(4)]
    found = cluster([broker(b, disk=inf, network=70.0) for b in (1, 2, 3, 4)], partitions)
    assert len(planned(found, FewestBrokers()).closed) == 2
    assert planned(found, FewestBrokers(growth=2.0)).closed == ()


def test_brokers_are_added_where_they_are_not_enough() -> None:
    partitions = [partition(f"orders-{n}", [1], rate=30.0) for n in range(7)]
    spare = Broker(ids(0)[0], Amounts(inf, 70.0, 70.0, inf))
    found = cluster([broker(1, network=70.0, rack="a")], partitions)
    outcome = planned(found, FewestBrokers(spare=spare))
    assert [(each.id, each.rack, each.state) for each in outcome.added] == [
        (2, "a", "new"),
        (3, "a", "new"),
        (4, "a", "new"),
    ]


@pytest.mark.parametrize(("partitions", "added"), [(12, 5), (15, 7)])
def test_no_more_brokers_are_added_than_are_needed(partitions: int, added: int) -> None:
    spare = Broker(ids(0)[0], Amounts(inf, 70.0, 70.0, inf), rack="b")
    every = [partition(f"orders-{n}", [1], rate=30.0) for n in range(partitions)]
    found = cluster([broker(1, network=70.0)], every)
    assert len(planned(found, FewestBrokers(spare=spare)).added) == added


def test_no_number_of_brokers_is_enough_for_a_replica_larger_than_one() -> None:
    spare = Broker(ids(0)[0], Amounts(inf, 70.0, 70.0, inf))
    found = cluster([broker(1, network=70.0)], [partition("orders-0", [1], rate=80.0)])
    outcome = plan(found, FewestBrokers(spare=spare))
    assert isinstance(outcome, Infeasible)
    assert outcome.proved


def test_brokers_that_are_not_enough_for_whole_replicas() -> None:
    found = cluster([broker(1, disk=100.0), broker(2, disk=100.0)], many(3, 1, size=60))
    outcome = plan(found, FewestBrokers())
    assert isinstance(outcome, Infeasible)
    assert not outcome.proved
    spare = Broker(ids(0)[0], Amounts(100.0, inf, inf, inf))
    assert len(planned(found, FewestBrokers(spare=spare)).added) == 1


# --- leaders near their readers ------------------------------------------------------------------

RACKS = [
    broker(number, network=900.0, rack=rack) for number, rack in ((1, "a"), (2, "b"), (3, "c"))
]


def read_in(topic: str, *racks: str, replicas: int = 2) -> Topic:
    return Topic(topic, replicas, reader_racks=frozenset(racks))


def test_leaders_go_to_the_racks_of_their_readers() -> None:
    """Each topic has half of the load and is read in one rack: leaders change places."""
    partitions = [partition(f"x-{n}", [2, 1], rate=10.0) for n in range(4)]
    partitions += [partition(f"y-{n}", [1, 2], rate=10.0) for n in range(4)]
    found = cluster(RACKS[:2], partitions, [read_in("x", "a"), read_in("y", "b")])
    outcome = planned(found)
    assert {replicas for name, replicas in after(outcome).items() if name[0] == "x"} == {(1, 2)}
    assert {replicas for name, replicas in after(outcome).items() if name[0] == "y"} == {(2, 1)}
    assert all(move.leader_only for move in outcome.moves)
    assert {str(reason) for move in outcome.moves for reason in move.reasons} == {
        "near readers: broker 1",
        "near readers: broker 2",
    }
    again = cluster(
        RACKS[:2],
        [replace(each, replicas=outcome.placement[each.id]) for each in partitions],
        found.topics.values(),
    )
    assert planned(again).moves == ()


def test_leaders_come_near_only_as_far_as_balance_allows() -> None:
    """All are read in one rack of two: half of them can be led there."""
    partitions = [partition(f"x-{n}", [1 + n % 2, 2 - n % 2], rate=10.0) for n in range(10)]
    found = cluster(RACKS[:2], partitions, [read_in("x", "a")])
    outcome = planned(found)
    assert outcome.moves == ()
    free = planned(found, Balance(bound=inf))
    assert {replicas[0] for replicas in free.placement.values()} == {1}


def test_where_readers_are_not_known_or_no_replica_is_near_nothing_changes() -> None:
    partitions = [partition("x-0", [1, 2], rate=10.0), partition("x-1", [2, 1], rate=10.0)]
    for topic in (read_in("x"), read_in("x", "c"), read_in("x", "nowhere")):
        assert planned(cluster(RACKS, partitions, [topic]), Balance(bound=inf)).moves == ()
    excluded = replace(read_in("x", "a"), excluded=True)
    assert planned(cluster(RACKS, partitions, [excluded]), Balance(bound=inf)).moves == ()


def test_an_exchange_that_would_overload_a_broker_is_undone() -> None:
    """The small one wants to lead at broker 1, which is full, and the large one at broker 2."""
    partitions = [
        partition("y-0", [1, 2], rate=1.0, read=100.0),
        partition("z-0", [2, 1], rate=1.0, read=40.0),
    ]
    topics = [read_in("y", "b"), read_in("z", "a")]
    for network, after_ in (
        (70.0, {"y-0": (1, 2), "z-0": (2, 1)}),
        (110.0, {"y-0": (2, 1), "z-0": (1, 2)}),
    ):
        brokers = [broker(1, network=120.0, rack="a"), broker(2, network=network, rack="b")]
        outcome = planned(cluster(brokers, partitions, topics), Balance(bound=inf))
        assert after(outcome) == after_
