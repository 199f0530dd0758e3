"""The steps of the search, each on a problem by hand."""

from dataclasses import replace
from math import inf

import pytest
from tests.balancer.decide.clusters import broker, cluster, ids, partition
from tests.balancer.decide.generated import Shape, large

from binwright.balancer.decide.constraints import violations
from binwright.balancer.decide.loads import hard_limits
from binwright.balancer.decide.model import Cluster, CpuCosts, Partition, Topic
from binwright.balancer.decide.planner import plan
from binwright.balancer.decide.plans import Balance, FewestBrokers, Infeasible, PlacementPlan
from binwright.balancer.decide.search.draft import PlacementDraft, undo
from binwright.balancer.decide.search.heuristic import Heuristic, seeded
from binwright.balancer.decide.search.problem import PlacementProblem, compiled
from binwright.balancer.decide.search.repair import evened, repair, spread_leaders
from binwright.balancer.decide.search.tabu import improved, is_small


def problem(found: Cluster) -> PlacementProblem:
    return compiled(found, hard_limits(found))


def many(count: int, at: int, size: int = 1, first: int = 0) -> list[Partition]:
    return [partition(f"orders-{first + n}", [at], size=size) for n in range(count)]


def grouped(*names: str, replication: int = 1) -> list[Topic]:
    return [Topic(name, replication, group="g") for name in names]


# --- draft ---------------------------------------------------------------------------------------


def test_a_draft_keeps_loads_in_step_with_replicas() -> None:
    found = cluster([broker(b, network=1e9) for b in (1, 2, 3)],
                    [partition("orders-0", [1, 2], rate=10.0, read=5.0)])  # fmt: skip
    draft = PlacementDraft(problem(found), [[0, 1]])
    draft.shift(0, 0, 2)
    draft.lead(0, 1)
    assert draft.at == [[1, 2]]
    fresh = PlacementDraft(problem(found), [[1, 2]])
    assert [pytest.approx(load) for load in draft.loads] == fresh.loads
    assert (draft.copied(), draft.led_elsewhere()) == (100, 1)


def test_a_broker_of_another_topic_of_the_group_may_not_be_chosen() -> None:
    partitions = [partition("bills-0", [1]), partition("orders-0", [2]), partition("orders-1", [2])]
    found = cluster([broker(1), broker(2), broker(3)], partitions, grouped("bills", "orders"))
    draft = PlacementDraft(problem(found), [[0], [1], [1]])
    assert not draft.may_hold(0, 1, 0)
    draft.shift(1, 1, 2)
    assert not draft.may_hold(0, 1, 0)
    draft.shift(2, 1, 2)
    assert draft.may_hold(0, 1, 0)


# --- seed ----------------------------------------------------------------------------------------


def test_the_topic_with_more_bytes_keeps_a_shared_broker() -> None:
    partitions = [partition("bills-0", [1], size=9), partition("orders-0", [1], size=5)]
    found = cluster([broker(1), broker(2)], partitions, grouped("bills", "orders"))
    assert seeded(problem(found), [[0], [0]]).at == [[0], [1]]


def test_a_topic_that_stays_keeps_a_shared_broker() -> None:
    topics = [Topic("bills", 1, group="g"), Topic("orders", 1, group="g", excluded=True)]
    partitions = [partition("bills-0", [1], size=9), partition("orders-0", [1], size=5)]
    found = cluster([broker(1), broker(2)], partitions, topics)
    assert seeded(problem(found), [[0], [0]]).at == [[1], [0]]


def test_a_group_does_not_look_at_brokers_to_be_emptied() -> None:
    partitions = [partition("bills-0", [1]), partition("orders-0", [1])]
    brokers = [broker(1, state="down"), broker(2), broker(3)]
    found = cluster(brokers, partitions, grouped("bills", "orders"))
    assert sorted(seeded(problem(found), [[0], [0]]).at) == [[1], [2]]


def test_a_replica_that_finds_no_broker_is_left_out() -> None:
    partitions = [partition("bills-0", [1, 2]), partition("orders-0", [1, 2])]
    topics = grouped("bills", "orders", replication=2)
    draft = seeded(problem(cluster([broker(1), broker(2)], partitions, topics)), [[0, 1], [0, 1]])
    assert not draft.is_complete()
    assert improved(draft) is draft


# --- leaders -------------------------------------------------------------------------------------


def test_leaders_are_passed_on_until_they_fit() -> None:
    """Broker 2 passes on to 3 what 1 gives it, as 1 and 3 share no partition."""
    partitions = [
        *(partition(f"bills-{n}", [2, 3], rate=10.0) for n in range(60)),
        *(partition(f"orders-{n}", [1, 2], rate=10.0) for n in range(60)),
    ]
    found = cluster([broker(b, network=10_000.0) for b in (1, 2, 3)], partitions)
    draft = PlacementDraft(problem(found), [[1, 2]] * 60 + [[0, 1]] * 60)
    draft.limits = [(inf, inf, 1.06, inf)] * 3
    spread_leaders(draft)
    assert draft.overloaded() == []
    assert draft.copied() == 0


def test_leaders_that_cannot_fit_are_left_as_even_as_they_become() -> None:
    partitions = [partition(f"orders-{n}", [1, 2], rate=10.0) for n in range(4)]
    found = cluster([broker(1, network=15.0), broker(2, network=15.0)], partitions)
    draft = PlacementDraft(problem(found), [[0, 1]] * 4)
    spread_leaders(draft)
    assert draft.loads[0][2] == draft.loads[1][2]


def test_a_single_replica_has_no_follower_to_pass_its_leadership_to() -> None:
    found = cluster([broker(1, network=5.0)], [partition("orders-0", [1], rate=1.0, read=10.0)])
    draft = PlacementDraft(problem(found), [[0]])
    spread_leaders(draft)
    assert draft.at == [[0]]


def test_leaders_are_evened_within_the_limits_of_a_draft() -> None:
    partitions = [partition(f"orders-{n}", [1, 2], rate=10.0) for n in range(10)]
    roomy = cluster([broker(1, network=900.0), broker(2, network=900.0)], partitions)
    draft = PlacementDraft(problem(roomy), [[0, 1]] * 10)
    even = [(0.0, 0.0, 1.05, inf)] * 2
    assert [load[2] for load in evened(draft, even).loads] == [pytest.approx(1.0)] * 2
    tight = cluster([broker(1, network=900.0), broker(2, network=20.0)], partitions)
    stays = PlacementDraft(problem(tight), [[0, 1]] * 10)
    assert evened(stays, even) is stays


# --- repair and undo -----------------------------------------------------------------------------


def test_replicas_are_exchanged_where_none_fits_alone() -> None:
    """Two disks of 100 hold 60 + 40 and 50 + 45 once 60 and 50 have changed places."""
    found = cluster(
        [broker(1, disk=100.0), broker(2, disk=100.0)],
        [
            partition("orders-0", [1], size=60),
            partition("orders-1", [1], size=45),
            partition("orders-2", [2], size=50),
            partition("orders-3", [2], size=40),
        ],
    )
    draft = PlacementDraft(problem(found), [[0], [0], [1], [1]])
    repair(draft)
    assert draft.overloaded() == []


def test_an_overload_of_what_cannot_leave_stays() -> None:
    found = cluster(
        [broker(1, disk=50.0), broker(2)],
        [partition("orders-0", [1], pinned=[1]), partition("bills-0", [1], size=0, rate=0)],
    )
    draft = PlacementDraft(problem(found), [[0], [0]])
    repair(draft)
    assert draft.overloaded() == [0]


def test_exchanges_keep_topics_of_a_group_apart() -> None:
    names = [f"t{n}" for n in range(8)]
    partitions = [
        partition(f"{name}-0", [1 if n < 5 else 2], size=20 + n) for n, name in enumerate(names)
    ]
    topics = [Topic(name, 1, group=f"g{n % 2}") for n, name in enumerate(names)]
    brokers = [broker(1, disk=70.0), broker(2, disk=70.0), broker(3, disk=45.0)]
    draft = PlacementDraft(problem(cluster(brokers, partitions, topics)), [[0]] * 5 + [[1]] * 3)
    repair(draft)
    for b in range(3):
        for group in ("g0", "g1"):
            at_start = sum(n % 2 == int(group[1]) for n in range(8) if b == (0 if n < 5 else 1))
            now = sum(draft.at[n] == [b] for n in range(8) if n % 2 == int(group[1]))
            assert now <= max(1, at_start)


def test_what_fits_at_home_returns() -> None:
    found = cluster(
        [broker(1, network=100.0), broker(2, network=100.0), broker(3, network=100.0)],
        [
            partition("orders-0", [1, 2], rate=1.0),
            partition("orders-1", [1, 2], rate=1.0),
            partition("stays-0", [1, 2], rate=1.0),
        ],
        [Topic("stays", 2, excluded=True)],
    )
    draft = PlacementDraft(problem(found), [[2, 1], [1, 0], [0, 1]])
    undo(draft)
    assert (draft.copied(), draft.led_elsewhere()) == (0, 0)


def test_what_does_not_fit_at_home_stays_away() -> None:
    found = cluster(
        [broker(1, disk=50.0, network=1.0), broker(2, network=90.0), broker(3, network=90.0)],
        [
            partition("orders-0", [1]),
            partition("pinned-0", [2], pinned=[3], size=1),
            partition("reads-0", [1, 2], size=1, rate=0.1, read=50.0),
        ],
    )
    draft = PlacementDraft(problem(found), [[1], [2], [1, 0]])
    undo(draft)
    assert draft.at == [[1], [2], [1, 0]]


# --- tabu ----------------------------------------------------------------------------------------


def test_a_draft_that_is_as_today_and_fits_is_not_improved() -> None:
    draft = PlacementDraft(problem(cluster([broker(1)], many(3, 1))), [[0]] * 3)
    assert improved(draft) is draft


def test_leaders_move_one_after_the_other_in_the_search() -> None:
    """Three leaders of 40 on three brokers of 50: one step forbids the next one back."""
    partitions = [partition(f"orders-{n}", [1, 2, 3], rate=10.0, read=20.0) for n in range(3)]
    draft = PlacementDraft(
        problem(cluster([broker(b, network=50.0) for b in (1, 2, 3)], partitions)), [[0, 1, 2]] * 3
    )
    assert improved(draft).overloaded() == []


def test_cpu_counts_in_the_search() -> None:
    """Two partitions of 60 % of a broker's cores part; for three there is no room."""
    known = cluster([broker(1, cpu=10.0), broker(2, cpu=10.0)],
                    [partition(f"orders-{n}", [1], rate=6.0) for n in range(2)])  # fmt: skip
    found = replace(known, cpu=CpuCosts(1.0, 1.0))
    parted = Heuristic().place(problem(found))
    assert {b for at in parted.at for b in at} == {0, 1}
    crowded = replace(
        found, partitions=tuple(partition(f"orders-{n}", [1], rate=6.0) for n in range(3))
    )
    assert not Heuristic().place(problem(crowded)).feasible


def test_a_search_without_a_step_ends() -> None:
    brokers = [broker(1, disk=50.0), broker(2, disk=50.0)]
    draft = PlacementDraft(problem(cluster(brokers, [partition("orders-0", [1])])), [[0]])
    assert improved(draft).overloaded() == [0]


def test_the_search_leaves_excluded_and_pinned_replicas_where_they_are() -> None:
    found = cluster(
        [broker(1, disk=150.0, network=400.0), broker(2, disk=500.0, network=400.0)],
        [
            partition("stays-0", [1], size=60),
            partition("orders-0", [1], size=60, pinned=[1]),
            partition("orders-1", [1], size=60),
            partition("both-0", [1, 2], size=10, rate=10.0),
        ],
        [Topic("stays", 1, excluded=True)],
    )
    names = [str(name) for name in problem(found).names]
    solution = Heuristic().place(problem(found))
    at = dict(zip(names, solution.at, strict=True))
    assert (at["stays-0"], at["orders-0"], at["orders-1"]) == ([0], [0], [1])


def test_a_cluster_without_partitions_is_solved() -> None:
    assert Heuristic().place(problem(cluster([broker(1)], []))).feasible


# --- fewest --------------------------------------------------------------------------------------


UNEQUAL = (
    partition("small-0", [1], size=1),
    partition("orders-0", [2], size=90),
    partition("bills-0", [3], size=95),
)


def test_small_brokers_are_closed_first_where_that_leaves_fewer() -> None:
    """Broker 1 holds least, and is the only one that could hold everything."""
    brokers = [broker(1, disk=300.0), broker(2, disk=120.0), broker(3, disk=100.0)]
    outcome = plan(cluster(brokers, UNEQUAL), FewestBrokers())
    assert isinstance(outcome, PlacementPlan)
    assert outcome.closed == ids(2, 3)


def test_brokers_are_closed_one_by_one_after_as_many_as_possible() -> None:
    """All three in one rack; 186 bytes fit broker 2 and not broker 3, which holds more."""
    brokers = [broker(b, disk, rack="a") for b, disk in ((1, 100.0), (2, 200.0), (3, 185.0))]
    outcome = plan(cluster(brokers, UNEQUAL), FewestBrokers())
    assert isinstance(outcome, PlacementPlan)
    assert outcome.closed == ids(1, 3)


def test_a_cluster_without_partitions_needs_no_broker() -> None:
    outcome = plan(cluster([broker(1), broker(2, state="down")], []), FewestBrokers())
    assert isinstance(outcome, PlacementPlan)
    assert outcome.closed == ids(1)


# --- clusters too large for the tabu search ------------------------------------------------------


def test_a_large_cluster_is_balanced_within_every_constraint() -> None:
    found = large(Shape(brokers=12, replicas=3_000, new=1, draining=1), seed=1)
    outcome = plan(found, Balance())
    assert isinstance(outcome, PlacementPlan)
    assert violations(found, outcome.placement) == ()
    assert not is_small(problem(found))


def test_a_large_cluster_skips_bounds_that_cannot_be_reached() -> None:
    brokers = [broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b")]
    partitions = [partition(f"orders-{n}", [1, 3], size=1) for n in range(300)]
    outcome = plan(cluster(brokers, partitions), Balance())
    assert isinstance(outcome, PlacementPlan)
    assert outcome.relaxed == 1.6


def test_a_large_cluster_without_a_placement_names_what_is_broken() -> None:
    topics = [
        Topic(name, 2, group="g", excluded_brokers=frozenset(ids(4)))
        for name in ("bills", "orders")
    ]
    partitions = [
        partition(f"{name}-{n}", [1, 2], size=0) for name in ("bills", "orders") for n in range(150)
    ]
    outcome = plan(cluster([broker(b) for b in (1, 2, 3, 4)], partitions, topics), Balance())
    assert isinstance(outcome, Infeasible)
    assert {each.constraint for each in outcome.conflicts} == {"replication"}
    assert "in the best placement found" in outcome.conflicts[0].detail
