"""The policies beside the product's controller."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.simulation.builders import TIMING, outcome, scenario

from binwright.lab.simulation.policies.by_name import policy
from binwright.lab.simulation.policies.optimum import fits, optimum
from binwright.lab.simulation.run import NAMES, WEEK_CPU_S
from binwright.protocol.errors import PackingError


def fewest(sizes: list[int], room: int) -> int:
    """Return the fewest bins, by trying all assignments; an item larger than a bin fills one."""
    items = [min(size, room) for size in sizes]
    for bins in range(1, len(items) + 1):
        for owners in product(range(bins), repeat=len(items)):
            loads = [0] * bins
            for owner, size in zip(owners, items, strict=True):
                loads[owner] += size
            if max(loads) <= room:
                return bins
    raise AssertionError("as many bins as items always do")


@given(sizes=st.lists(st.integers(0, 120), min_size=1, max_size=6))
def test_the_optimum_is_exact_where_it_is_proved_and_a_lower_bound_elsewhere(
    sizes: list[int],
) -> None:
    found = optimum([[float(size) for size in sizes]], 100.0)

    if found.unproved:
        assert found.consumers[0] <= fewest(sizes, 100)
    else:
        assert found.consumers[0] == fewest(sizes, 100)


def test_a_packing_that_best_fit_misses_is_found() -> None:
    """Best fit puts 44 with 37: 44 + 36 + 20 and 37 + 37 + 26 fill two bins."""
    assert fits([0.44, 0.37, 0.37, 0.36, 0.26, 0.20], 2)
    assert not fits([0.44, 0.37, 0.37, 0.36, 0.26, 0.21], 2)


def test_the_optimum_states_how_many_rows_are_exact() -> None:
    found = outcome(scenario([[60.0, 60.0], [20.0, 20.0]]), "optimum")

    assert (found.running.times, found.running.values) == ((0.0, 30.0), (1, 1))
    assert found.note == "exact in 2 of 2 rows, else a lower bound"
    assert found.score(5.0).p99_s is None


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
