"""The rules of others: Linear, KEDA's lag, the HorizontalPodAutoscaler's CPU and stabilisation."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from tests.scaler.decide.groups import observe

from binwright.lab.simulation.policies.rules import CpuRule, LagRule, Linear, Stabilised
from binwright.scaler.decide.policy import Decision, Observation


def test_linear_divides_the_total_rate() -> None:
    rule = Linear(rate=90)

    assert rule.decide(observe([0] * 5))[0].replicas == 1
    assert rule.decide(observe([18] * 5))[0].replicas == 1
    assert rule.decide(observe([18.1] * 5))[0] == Decision(2, "90.5/s at 90/s a replica")
    assert rule.decide(observe([900] * 5))[0].replicas == 5
    assert rule.decide(observe([900] * 5, scaled_s=95))[0].replicas == 1


@pytest.mark.parametrize(
    ("lag", "replicas", "wanted"),
    [
        (0, 3, 1),  # this rule itself does not scale to zero
        (100, 1, 1),
        (109, 1, 1),  # within tolerance
        (111, 1, 2),
        (270, 3, 3),
        (269, 3, 3),  # rounded up
        (200, 3, 2),
        (9_999, 1, 4),  # no more than partitions
    ],
)
def test_kedas_rule_divides_the_lag(lag: float, replicas: int, wanted: int) -> None:
    seen = observe([0] * 4, [lag, 0, 0, 0], replicas=replicas)

    assert LagRule(threshold=100).decide(seen)[0].replicas == wanted


def test_one_hot_partition_fills_the_group_by_kedas_rule() -> None:
    """Its lag grows without end, and 39 replicas have nothing to do with it."""
    seen = observe([300] + [1] * 39, [1e6] + [0] * 39)

    assert LagRule(threshold=100).decide(seen)[0].replicas == 40


@pytest.mark.parametrize(
    ("utilisation", "replicas", "wanted"),
    [
        ((1.0, 1.0), 2, 4),
        ((0.25, 0.25), 2, 1),
        ((0.54, 0.54), 2, 2),  # within tolerance
        ((0.56, 0.56), 2, 3),
        ((0.6, 0.6), 4, 4),  # two are starting and count as idle: that reverses the direction
        ((1.0, 1.0, 1.0), 4, 6),  # and here it dampens it
        ((0.8, 0.8), 3, 3),  # or comes within tolerance
        ((0.1, 0.1), 3, 1),
        ((), 3, 3),
        ((0.0,), 1, 1),
    ],
)
def test_the_cpu_rule_follows_the_documented_formula(
    utilisation: Sequence[float], replicas: int, wanted: int
) -> None:
    seen = observe([1], replicas=replicas, utilisation=utilisation)

    assert CpuRule(target=0.5).decide(seen)[0].replicas == wanted


@dataclass(frozen=True)
class Wanted:
    """Recommends these numbers, one after the other."""

    numbers: tuple[int, ...]

    def decide(self, observation: Observation) -> "tuple[Decision, Wanted]":
        del observation
        return Decision(self.numbers[0], "wanted"), Wanted(self.numbers[1:])


def stabilised(numbers: Sequence[int], times: Sequence[float], **settings: float) -> list[int]:
    """Return the replicas after each of these recommendations."""
    policy = Stabilised(rule=Wanted(tuple(numbers)), most=50, **settings)  # type: ignore[arg-type]
    replicas, found = 1, []
    for time_s in times:
        decision, policy = policy.decide(observe([1], replicas=replicas, time_s=time_s))
        replicas = decision.replicas
        found.append(replicas)
    return found


def test_the_highest_recommendation_of_five_minutes_holds() -> None:
    assert stabilised([4, 2, 3, 2, 2], [0, 15, 299, 300, 600]) == [4, 4, 4, 3, 2]


def test_a_window_for_scale_ups_takes_the_lowest() -> None:
    assert stabilised([3, 4, 2], [0, 15, 30], up_window_s=60) == [3, 3, 3]


def test_four_replicas_or_as_many_again_are_added_in_fifteen_seconds() -> None:
    assert stabilised([50] * 5, [0, 10, 15, 30, 45]) == [5, 5, 10, 20, 40]


def test_the_bounds_hold_after_all_else() -> None:
    policy = Stabilised(rule=Wanted((1, 90)), most=3, least=2)
    decision, after = policy.decide(observe([1]))

    assert decision == Decision(2, "wanted; stabilised to 2")
    assert after.decide(observe([1], replicas=2, time_s=200))[0].replicas == 3
