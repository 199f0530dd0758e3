"""The sorted collection, against a plain sorted list."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from binwright.core.packing import ordered
from binwright.core.packing.ordered import Ordered

ENTRIES = st.lists(st.tuples(st.integers(0, 6_000), st.integers(0, 3)), unique=True, max_size=30)


@given(ENTRIES, st.lists(st.tuples(st.integers(0, 6_000), st.integers(0, 3)), max_size=60))
def test_it_is_a_sorted_list(begin: list[tuple[int, int]], toggled: list[tuple[int, int]]) -> None:
    plain, ours = sorted(begin), Ordered(begin)
    for entry in toggled:
        if entry in plain:
            plain.remove(entry)
            ours.remove(entry)
        else:
            plain.append(entry)
            plain.sort()
            ours.add(entry)
        found = bisect_left(plain, (3_000, 0))
        least = plain[found] if found < len(plain) else None
        assert ours.least((3_000, 0)) == least == ours.first(lambda e: e >= (3_000, 0))
        assert ours.last == (plain[-1] if plain else None)
        assert list(ours.descending()) == plain[::-1]


def test_it_stays_sorted_through_many_blocks() -> None:
    """Blocks are cut when they grow, and vanish when they are empty."""
    numbers = [(float(7 * n % 20_011),) for n in range(20_011)]
    ours = Ordered(numbers[:50])
    for entry in numbers[50:]:
        ours.add(entry)
    assert len(ours._blocks) > 20_011 / (2 * ordered.BLOCK) - 1
    assert list(ours.descending()) == [(float(n),) for n in range(20_010, -1, -1)]

    for entry in sorted(numbers)[100:]:
        ours.remove(entry)
    assert ours.last == (99.0,)
    assert len(ours._blocks) == 1
