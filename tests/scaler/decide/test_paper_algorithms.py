"""Algorithms 1 and 2 decide as the paper's procedures do."""

from dataclasses import replace

from tests.scaler.decide.groups import PAPER, observe, rates_of

from binwright.scaler.decide.paper_algorithms import Algorithm1, Algorithm2

ONE = Algorithm1(capacity=PAPER)
TWO = Algorithm2(capacity=PAPER, rebalance_s=0.5)


def test_it_scales_up_by_lag() -> None:
    assert ONE.decide(observe([10] * 5, [19] * 5))[0].replicas == 2


def test_a_group_of_the_right_size_that_is_uneven_is_assigned_again() -> None:
    seen = observe([60] * 5, replicas=2, owners=[0, 0, 0, 0, 1])
    decision = ONE.decide(seen)[0]

    assert decision.replicas == 2
    assert sorted(rates_of(seen, decision)) == [120, 180]
    assert replace(ONE, reassigns=False).decide(seen)[0].assignment is None


def test_an_assignment_again_keeps_the_replicas() -> None:
    """Two bins would do, but three are needed before one may go: the third replica stays empty."""
    seen = observe([90] * 3, replicas=3, owners=[0, 0, 0])
    decision = ONE.decide(seen)[0]

    assert decision.replicas == 3
    assert sorted(rates_of(seen, decision)) == [0, 90, 180]


def test_it_waits_after_a_change() -> None:
    decision = ONE.decide(observe([100] * 5, scaled_s=95))[0]

    assert (decision.replicas, decision.assignment) == (1, None)
    assert "too recent" in decision.reason
    assert ONE.decide(observe([100] * 5, scaled_s=89))[0].replicas == 5


def test_nothing_changes_while_rate_and_lag_fit() -> None:
    for policy in (ONE, TWO):
        decision, after = policy.decide(observe([30] * 5))

        assert (decision.replicas, decision.reason) == (1, "rate and lag fit")
        assert after == policy


def test_algorithm_2_sizes_a_scale_up_for_the_lag_of_its_rebalance() -> None:
    """In 0.5 s 18 records a partition gather: with the 10 that wait three fit into a replica."""
    seen = observe([37] * 5, [10] * 5)

    assert ONE.decide(seen)[0].replicas == 2
    assert replace(TWO, rebalance_s=0).decide(seen)[0].replicas == 2
    assert TWO.decide(seen)[0].replicas == 2
    assert replace(TWO, rebalance_s=2).decide(seen)[0].replicas == 5


def test_algorithm_2_scales_down_only_if_fewer_hold_the_lag_of_the_rebalance() -> None:
    seen = observe([15] * 5, replicas=2)

    assert ONE.decide(seen)[0].replicas == 1
    assert TWO.decide(seen)[0].replicas == 1
    held = replace(TWO, rebalance_s=2).decide(seen)[0]
    assert (held.replicas, held.assignment) == (2, None)
    assert "a rebalance would leave more lag" in held.reason


def test_algorithm_2_scales_down_into_the_smaller_bins() -> None:
    """One replica would serve it all at 90 %, but two of the three stay at 40 %."""
    assert TWO.decide(observe([40] * 4, replicas=3))[0].replicas == 2


def test_algorithm_2_adds_replicas_where_the_lag_of_an_assignment_again_needs_them() -> None:
    seen = observe([60] * 5, replicas=2, owners=[0, 0, 0, 0, 1])

    assert TWO.decide(seen)[0].replicas == 2
    assert replace(TWO, rebalance_s=1).decide(seen)[0].replicas == 5
