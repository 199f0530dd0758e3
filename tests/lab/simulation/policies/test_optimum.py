"""The fewest consumers that a load needs."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st
from tests.lab.simulation.builders import outcome, scenario

from binwright.lab.simulation.policies.optimum import fits, optimum


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
