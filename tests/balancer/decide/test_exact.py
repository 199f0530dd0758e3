"""The integer program finds the least bytes, and falls back to the search."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.balancer.decide.clusters import broker, cluster, ids, partition
from tests.balancer.decide.generated import Shape, large, small, with_groups

from binwright.balancer import planning as planner
from binwright.balancer.decide import exact
from binwright.balancer.decide.constraints import contradictions, violations
from binwright.balancer.decide.exact import ExactSolver
from binwright.balancer.decide.loads import balance_limits, hard_limits
from binwright.balancer.decide.model import Cluster, Topic
from binwright.balancer.decide.plans import Balance, FewestBrokers, Infeasible, PlacementPlan
from binwright.balancer.decide.search.draft import PlacementDraft
from binwright.balancer.decide.search.heuristic import Heuristic
from binwright.balancer.decide.search.problem import compiled

WORST = 1.3
"""What the search may copy in units of the optimum."""


def halves() -> Cluster:
    """Return a cluster where 50 of 60 + 40 + 50 bytes must leave a disk of 100."""
    partitions = [partition(f"orders-{n}", [1], size=size) for n, size in enumerate((60, 40, 50))]
    return cluster([broker(1, disk=100.0), broker(2, disk=100.0)], partitions)


def test_the_optimum_copies_least_and_is_proved() -> None:
    outcome = planner.plan(halves(), Balance(float("inf")))
    assert isinstance(outcome, PlacementPlan)
    assert (outcome.bytes, outcome.proved) == (50, True)


def test_the_fewest_brokers_are_proved() -> None:
    partitions = [partition(f"orders-{n}", [n + 1], size=30) for n in range(4)]
    found = cluster([broker(b, disk=70.0) for b in (1, 2, 3, 4)], partitions)
    outcome = planner.plan(found, FewestBrokers())
    assert isinstance(outcome, PlacementPlan)
    assert (len(outcome.closed), outcome.bytes, outcome.proved) == (2, 60, True)


@pytest.mark.parametrize("goal", [Balance(), FewestBrokers()])
def test_beside_large_partitions_no_leader_and_no_small_replica_moves_needlessly(
    goal: Balance | FewestBrokers,
) -> None:
    """What they cost is then below the solver's tolerance."""
    gigabyte = 1_000_000_000
    sizes = [6 * gigabyte, 4 * gigabyte, 3 * gigabyte, 2 * gigabyte, 2 * gigabyte, gigabyte]
    partitions = [
        *(partition(f"large-{n}", [3], size=size, rate=0.0) for n, size in enumerate(sizes)),
        *(partition(f"pairs-{n}", [1 + n % 3, 1 + (n + 1) % 3], size=80) for n in range(9)),
        *(partition(f"small-{n}", [1 + n % 3], size=80, rate=0.0) for n in range(24)),
    ]
    brokers = [broker(b, disk=1e12, network=1e9) for b in (1, 2, 3)]
    outcome = planner.plan(cluster(brokers, partitions), goal)
    assert isinstance(outcome, PlacementPlan)
    assert outcome.proved
    held = {b for replicas in outcome.placement.values() for b in replicas}
    needless = [
        move for move in outcome.moves
        if {*move.before} <= held and move.partition.topic != "large"
    ]  # fmt: skip
    assert needless == []


def test_that_there_is_no_placement_is_proved() -> None:
    partitions = [partition(f"orders-{n}", [1], size=60) for n in range(3)]
    found = cluster([broker(1, disk=100.0), broker(2, disk=100.0)], partitions)
    for goal in (Balance(), FewestBrokers()):
        outcome = planner.plan(found, goal)
        assert isinstance(outcome, Infeasible)
        assert outcome.proved
        assert outcome.conflicts[0].constraint == "capacity"


def test_racks_groups_pins_and_exclusions_hold() -> None:
    brokers = [broker(b, rack="ab"[b % 2]) for b in range(6)]
    topics = [
        Topic("bills", 2, group="g"),
        Topic("orders", 2, group="g"),
        Topic("stays", 1, excluded=True),
    ]
    partitions = [
        *(partition(f"bills-{n}", [0, 2], size=20 + n) for n in range(3)),
        *(partition(f"orders-{n}", [0, 1], size=20 + n, pinned=[1]) for n in range(3)),
        partition("stays-0", [5], size=30),
    ]
    found = cluster(brokers, partitions, topics)
    outcome = planner.plan(found, Balance())
    assert isinstance(outcome, PlacementPlan)
    assert outcome.proved
    assert violations(found, outcome.placement) == ()


def test_pins_that_contradict_are_refused_by_the_program_too() -> None:
    topic = Topic("orders", 1, excluded_brokers=frozenset(ids(1)))
    found = cluster([broker(1), broker(2)], [partition("orders-0", [1], pinned=[1])], [topic])
    solution = ExactSolver().place(compiled(found, hard_limits(found)))
    assert (solution.feasible, solution.proved) == (False, True)


def test_a_cluster_without_partitions_stays() -> None:
    outcome = planner.plan(cluster([broker(1)], []), Balance())
    assert isinstance(outcome, PlacementPlan)
    assert outcome.moves == ()


@pytest.mark.parametrize("goal", [Balance(), FewestBrokers()])
def test_a_large_cluster_is_left_to_the_search(goal: Balance | FewestBrokers) -> None:
    found = large(Shape(brokers=6, replicas=900, new=1), seed=1)
    with capture_logs() as logs:
        outcome = planner.plan(found, goal)
    assert isinstance(outcome, PlacementPlan)
    assert not outcome.proved
    assert logs[0]["event"] == "plan.approximated"


@pytest.mark.parametrize("goal", [Balance(), FewestBrokers()])
def test_without_time_for_a_proof_the_search_answers(goal: Balance | FewestBrokers) -> None:
    found = small(3)
    with capture_logs() as logs:
        outcome = planner.plan(found, goal, limit_s=1e-9)
    assert isinstance(outcome, PlacementPlan)
    assert not outcome.proved
    assert violations(found, outcome.placement) == ()
    assert {log["event"] for log in logs} == {"plan.approximated"}


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_the_search_is_feasible_where_the_optimum_is_and_copies_little_more(seed: int) -> None:
    found = small(seed)
    problem = compiled(found, balance_limits(found, 1.05))
    least, near = ExactSolver().place(problem), Heuristic().place(problem)
    assert near.feasible == least.feasible
    if least.proved and least.feasible:
        copied = [PlacementDraft(problem, each.at).copied() for each in (least, near)]
        assert copied[0] <= copied[1] <= WORST * copied[0]


@settings(max_examples=6)
@given(st.integers(0, 10_000))
def test_groups_and_cpu_hold_in_what_both_find(seed: int) -> None:
    """With few brokers the search may find none where topics of a group have to part."""
    found = with_groups(small(seed))
    problem = compiled(found, hard_limits(found))
    least, near = ExactSolver(5.0).place(problem), Heuristic().place(problem)
    for solution in (least, near):
        if solution.feasible and not contradictions(found):
            assert violations(found, problem.placement(solution.at)) == ()
    assert least.feasible or not near.feasible or bool(contradictions(found))


def test_what_the_program_found_without_a_proof_is_one_of_the_candidates() -> None:
    """A program may end without a proof on a slow machine; what becomes of that is the same."""
    found = exact._solutions(exact.Solved([[1, 2]], proved=False))
    assert [(one.at, one.feasible, one.proved) for one in found] == [([[1, 2]], True, False)]
    assert list(exact._solutions(exact.Solved(None, proved=False))) == []
