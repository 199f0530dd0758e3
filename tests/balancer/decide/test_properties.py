"""What holds for every plan, on clusters of every kind."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.balancer.decide.generated import small

from binwright.balancer.decide.constraints import contradictions, overloads, violations
from binwright.balancer.decide.loads import balance_limits, broker_loads
from binwright.balancer.decide.model import Cluster, current
from binwright.balancer.decide.planner import plan
from binwright.balancer.decide.plans import Balance, FewestBrokers, Infeasible, PlacementPlan

SEEDS = st.integers(0, 10_000)


def plans(found: Cluster) -> PlacementPlan | None:
    outcome = plan(found, Balance())
    return outcome if isinstance(outcome, PlacementPlan) else None


@settings(max_examples=6)
@given(SEEDS)
def test_every_constraint_holds_in_a_plan_and_the_balance_that_it_states(seed: int) -> None:
    found = small(seed)
    if outcome := plans(found):
        assert violations(found, outcome.placement) == ()
        limits = balance_limits(found, 1.05, outcome.relaxed)
        assert list(overloads(found, outcome.placement, limits, "balance")) == []


@settings(max_examples=3)
@given(SEEDS)
def test_moves_lead_from_today_to_the_placement_each_with_a_reason(seed: int) -> None:
    found = small(seed)
    if outcome := plans(found):
        replayed = dict(current(found))
        for move in outcome.moves:
            assert replayed[move.partition] == move.before
            assert move.reasons
            replayed[move.partition] = move.after
        assert replayed == outcome.placement


@settings(max_examples=3)
@given(SEEDS)
def test_a_plan_states_its_loads_and_copies_what_it_adds(seed: int) -> None:
    found = small(seed)
    if outcome := plans(found):
        assert outcome.after == broker_loads(found, outcome.placement)
        sizes = {each.id: each.size_bytes for each in found.partitions}
        assert outcome.bytes == sum(
            sizes[move.partition] * len(move.added) for move in outcome.moves
        )


@settings(max_examples=3)
@given(SEEDS)
def test_a_plan_from_its_own_placement_moves_nothing(seed: int) -> None:
    """What the plan reaches is balanced already."""
    found = small(seed)
    if outcome := plans(found):
        there = [
            type(each)(each.id, each.rate, each.size_bytes, outcome.placement[each.id], each.read,
                       each.pinned)
            for each in found.partitions
        ]  # fmt: skip
        after = Cluster(found.brokers, found.topics, tuple(there), found.headroom, found.cpu)
        again = plans(after)
        assert again is not None
        assert again.bytes == 0


@settings(max_examples=2)
@given(SEEDS)
def test_fewest_brokers_breaks_nothing_and_leaves_closed_ones_empty(seed: int) -> None:
    found = small(seed)
    outcome = plan(found, FewestBrokers())
    if isinstance(outcome, PlacementPlan):
        assert violations(found, outcome.placement) == ()
        assert all(outcome.after[broker].replicas == 0 for broker in outcome.closed)


@settings(max_examples=3)
@given(SEEDS)
def test_what_is_infeasible_has_a_conflict_and_is_proved_by_a_contradiction_alone(
    seed: int,
) -> None:
    found = small(seed)
    outcome = plan(found, Balance())
    if isinstance(outcome, Infeasible):
        assert outcome.conflicts
        assert outcome.proved == bool(contradictions(found))
