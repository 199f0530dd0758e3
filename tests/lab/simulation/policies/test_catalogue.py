"""The policies beside the product's controller, each over a simulated consumer group."""

from dataclasses import replace

import pytest
from tests.lab.simulation.builders import TIMING, outcome, scenario

from binwright.lab.simulation.outcome import CountSteps
from binwright.lab.simulation.policies.catalogue import POLICIES, policy
from binwright.lab.simulation.run import NAMES, WEEK_CPU_S
from binwright.protocol.errors import PackingError


def test_the_papers_controller_packs_again_every_ten_seconds_whatever_it_moves() -> None:
    """At 100 bytes/s of capacity 60 + 60 need two, then 40 + 40 one; the pause is the paper's."""
    found = outcome(scenario([[60.0, 60.0], [40.0, 40.0], [40.0, 40.0]]), "mwf")

    assert found.running.values == (2, 1)
    # 100 bytes/s are measured 20 s after the rates fall, and the next decision follows within 10.
    assert 50.0 <= found.changes[0].at <= 60.0
    assert found.running.times[1] == pytest.approx(found.changes[0].at + 5.0)
    assert found.moves is not None
    assert (found.moves.count, found.moves.paused_s) == (1, 5.0)


def test_the_papers_controller_does_not_wait_at_an_overload() -> None:
    """It looks at 35 s, when all fits, and 45 s; above 120 bytes/s are measured at 38 s."""
    rows = [[60.0, 0.0, 0.0], *[[99.0, 99.0, 99.0]] * 2]
    found = outcome(scenario(rows, timing=replace(TIMING, rebalance_s=0.5)), "mwf")

    assert found.changes[0].at == 38.0
    assert (found.ready.times[1], found.ready.values[1]) == (43.0, 2)
    assert found.moves is not None
    assert found.moves.paused_s == pytest.approx(0.5 * found.moves.count)


def test_a_group_for_the_peak_is_never_overloaded_and_never_changes() -> None:
    found = outcome(scenario([[100.0, 0.0, 20.0], [0.0, 110.0, 20.0], [10.0, 20.0, 5.0]]), "peak")

    assert found.running.values == (2,)
    assert (found.score(0.0).within_sla, found.score(0.0).moves) == (1.0, 0)


def test_a_partition_that_is_faster_than_a_consumer_is_alone_in_a_group_for_the_peak() -> None:
    found = outcome(scenario([[200.0, 100.0, 10.0]]), "peak")

    assert found.running.values == (2,)


def test_an_unknown_policy_is_refused_with_those_that_exist() -> None:
    with pytest.raises(PackingError, match="no policy is called 'best'; there are: mwf"):
        policy("best", scenario([[1.0]]), 5.0)


def test_every_policy_has_its_place_in_the_order_of_starts() -> None:
    assert WEEK_CPU_S.keys() == set(NAMES)


GROWTH = [[30.0] * 6, *[[90.0] * 6] * 6]
QUICK = replace(TIMING, rebalance_s=1.0)
SCALING = [name for name in POLICIES if name not in {"mwf", "peak"}]


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


def test_consumers_that_end_leave_a_stopped_group_at_once() -> None:
    """They are gone when the rebalance begins, not when it ends."""
    falls = [[90.0] * 4, *[[20.0] * 4] * 4]
    found = outcome(scenario(falls, timing=replace(TIMING, rebalance_s=9.0)), "linear")

    assert found.running.values[-1] == 1
    assert found.running.times[-1] == found.changes[-1].at


SKEWED = [[100.0, *[12.0] * 8], *[[110.0, *[25.0] * 8]] * 8]


def test_a_scaled_group_that_is_assigned_reads_a_skewed_load_in_time() -> None:
    """Shared by number, whoever has the large partition falls behind for good."""
    assigned, shared = (
        outcome(scenario(SKEWED, timing=QUICK), name).score(5.0)
        for name in ("assigned-group", "scaled-group")
    )
    assert assigned.within_sla is not None
    assert shared.within_sla is not None
    assert assigned.within_sla > shared.within_sla + 0.05


def test_an_assigned_group_gives_up_replicas_that_it_does_not_need() -> None:
    falls = [[90.0] * 4, *[[20.0] * 4] * 8]
    found = outcome(scenario(falls, timing=QUICK), "assigned-group")
    assert (found.running.values[0], found.running.values[-1]) == (4, 1)
    assert found.score(5.0).within_sla == pytest.approx(1.0, abs=0.01)


def test_a_lag_rule_has_the_threshold_of_its_name() -> None:
    load = scenario(GROWTH, timing=QUICK)
    low, high = (outcome(load, name).running.seconds for name in ("lag:50", "lag:5000"))
    assert low > high
    for name in ("lag:", "lag:none", "lag:0", "lag:inf", "lag:-5", "cpu:5"):
        with pytest.raises(PackingError, match="no policy is called"):
            policy(name, load, 5.0)


def test_a_recorded_group_has_the_members_that_it_had() -> None:
    members = CountSteps((0.0, 60.0, 120.0), (1, 3, 0), 210.0)
    load = replace(scenario(GROWTH, timing=QUICK), members=members)
    found = outcome(load, "as-is")

    # A member that is seen was ordered before; and where none is, one is left.
    assert found.running.values == (1, 3, 1)
    assert 60.0 - QUICK.start_up_s <= found.running.times[1] <= 60.0
    assert 120.0 - QUICK.start_up_s <= found.running.times[2] <= 120.0 + QUICK.start_up_s
    with pytest.raises(PackingError, match="no members of a group"):
        policy("as-is", scenario(GROWTH), 5.0)
