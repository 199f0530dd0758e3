"""What one partition still needs."""

import pytest

from binwright.balancer.decide.reassignment.steps import Copy, Step, copy_of, next_step, next_steps
from binwright.balancer.ports import PartitionState, Replicas

from .clusters import P0, P1, cluster, moving, placed


@pytest.mark.parametrize(
    ("state", "target", "step"),
    [
        (placed(1, 2), (1, 2), "done"),
        (placed(1, 2, leader=2), (1, 2), "elect"),
        (placed(1, 2), (2, 1), "order"),
        (placed(1, 2), (1, 3), "copy"),
        (placed(1, 2), (1,), "copy"),
    ],
)
def test_a_partition_needs_what_differs_from_the_plan(
    state: PartitionState, target: Replicas, step: Step
) -> None:
    assert next_step(target, state) == step


@pytest.mark.parametrize(("target", "step"), [((3, 2), "copying"), ((4, 2), "foreign")])
def test_a_partition_under_way_is_ours_if_it_goes_where_the_plan_has_it(
    target: Replicas, step: Step
) -> None:
    state, under_way = moving((1, 2), (3, 2))
    assert next_step(target, state, under_way) == step


def test_a_partition_that_is_gone_needs_nothing() -> None:
    assert next_steps({P0: (1, 2), P1: (1, 2)}, cluster({P0: placed(1, 2)})) == {P0: "done"}


def test_a_copy_under_way_names_the_brokers_that_had_the_partition_as_sources() -> None:
    state, under_way = moving((1, 2), (3, 2))
    seen = cluster({P0: state}, under_way={P0: under_way})
    assert copy_of(P0, (3, 2), seen) == Copy(P0, (2, 1), (3,))


def test_a_copy_that_is_to_start_names_the_same_brokers() -> None:
    assert copy_of(P0, (3, 2), cluster({P0: placed(1, 2)})) == Copy(P0, (1, 2), (3,))
