"""The core's scaling rules over a simulated consumer group."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.simulation.builders import TIMING, outcome, scenario

from binwright.core.model import Slot
from binwright.lab.simulation.policies.scaling import SCALING, assigned

GROWTH = [[30.0] * 6, *[[90.0] * 6] * 6]
QUICK = replace(TIMING, rebalance_s=1.0)


@given(
    owners=st.dictionaries(st.integers(0, 9), st.integers(0, 6).map(Slot)),
    consumers=st.integers(1, 12),
)
def test_an_assignor_gives_each_consumer_as_many_partitions_or_one_more(
    owners: dict[int, Slot], consumers: int
) -> None:
    """And moves no more than that takes: who has too few keeps all."""
    slots = [Slot(number) for number in range(consumers)]
    found = assigned(owners, 10, slots)

    count = Counter(dict.fromkeys(slots, 0)) + Counter(found.values())
    sizes = [count[slot] for slot in slots]
    assert list(found) == list(range(10))
    assert max(sizes) - min(sizes) <= 1
    before = Counter(slot for slot in owners.values() if slot in slots)
    kept = sum(found[index] == slot for index, slot in owners.items())
    assert kept >= sum(min(number, 10 // consumers) for number in before.values())


def test_a_group_that_is_steered_keeps_its_assignment() -> None:
    owners = {0: Slot(0), 1: Slot(0), 2: Slot(0), 3: Slot(2)}

    kept = {0: Slot(0), 1: Slot(0), 2: Slot(0)}
    found = assigned(owners, 5, [Slot(0), Slot(1)], most=5)
    assert found == {**kept, 3: Slot(1), 4: Slot(1)}


@pytest.mark.parametrize("name", SCALING)
def test_every_rule_adds_consumers_for_a_load_that_grows(name: str) -> None:
    found = outcome(scenario(GROWTH, timing=QUICK), name)

    assert found.running.values[0] < found.running.values[-1] <= 6
    assert found.score(5.0).changes


@pytest.mark.parametrize("name", SCALING)
def test_every_rule_leaves_a_steady_load_alone(name: str) -> None:
    found = outcome(scenario([[30.0] * 6] * 4, timing=QUICK), name)

    assert list(found.changes) == []
    assert found.score(5.0).within_sla == 1.0


def test_a_rebalance_stops_all_partitions() -> None:
    found = outcome(scenario(GROWTH, timing=QUICK), "linear")

    assert found.moves is not None
    assert found.moves.paused_s == pytest.approx(6.0 * len(found.changes))


def test_the_policy_for_ordinary_groups_pauses_only_what_moves() -> None:
    found = outcome(scenario(GROWTH, timing=QUICK), "sla-packing")

    assert found.moves is not None
    assert found.moves.count < 6 * len(found.changes)
    assert found.moves.paused_s == pytest.approx(found.moves.count)


def test_what_is_not_committed_counts_as_lag_for_the_rule_on_lag() -> None:
    """A group that keeps up shows lag all the same, so it is not taken down to one consumer."""
    found = outcome(scenario([[75.0, 75.0, 75.0, 75.0]] * 4, timing=QUICK), "lag")

    assert min(found.running.values) > 1
    assert found.score(5.0).lag_max_bytes == 0.0
