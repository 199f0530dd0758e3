"""The core's scaling rules over a simulated consumer group."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.simulation.builders import TIMING, outcome, scenario

from binwright.lab.simulation.policies.interface import Seen
from binwright.lab.simulation.policies.scaling import SCALING, assigned
from binwright.protocol.model import Slot

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


def seen(rates: list[float], slots: int, owners: dict[int, Slot] | None = None) -> Seen:
    """Return a group that keeps up."""
    return Seen(
        now=0.0,
        rates=rates,
        lags=lambda: [0.0] * len(rates),
        busy=list,
        owners=owners or {index: Slot(index % slots) for index in range(len(rates))},
        slots=[Slot(slot) for slot in range(slots)],
        changed_at=None,
    )


def test_what_is_not_committed_counts_as_lag_for_the_rule_on_lag() -> None:
    """A group of three that keeps up with 300 bytes/s, at 100 a consumer, stays as it is."""
    policy = SCALING["lag"](scenario([[100.0] * 3]), 5.0)

    assert len(policy.decide(seen([100.0] * 3, 3)).slots) == 3


def test_a_rule_that_steers_and_changes_nothing_leaves_owners_alone() -> None:
    """One consumer has one partition and the other five: an assignor would even that out."""
    owners = {0: Slot(0), **dict.fromkeys(range(1, 6), Slot(1))}
    policy = SCALING["algorithm-1"](scenario([[90.0, 17.0, 17.0, 17.0, 17.0, 17.0]]), 5.0)

    target = policy.decide(seen([90.0, 17.0, 17.0, 17.0, 17.0, 17.0], 2, owners))
    assert (dict(target.owners), len(target.slots)) == (owners, 2)


def test_consumers_that_end_leave_a_stopped_group_at_once() -> None:
    """They are gone when the rebalance begins, not when it ends."""
    falls = [[90.0] * 4, *[[20.0] * 4] * 4]
    found = outcome(scenario(falls, timing=replace(TIMING, rebalance_s=9.0)), "linear")

    assert found.running.values[-1] == 1
    assert found.running.times[-1] == found.changes[-1].at
