"""The sorted collection, against a plain sorted list."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from binwright.packing import bins
from binwright.packing.bins import Ordered

ENTRIES = st.tuples(st.integers(0, 6_000), st.integers(0, 3))


@given(st.lists(ENTRIES, max_size=60), ENTRIES)
def test_it_behaves_as_a_sorted_list(
    toggled: list[tuple[int, int]], bound: tuple[int, int]
) -> None:
    plain: list[tuple[int, int]] = []
    ours: Ordered[tuple[int, int]] = Ordered()
    for entry in toggled:
        if entry in plain:
            plain.remove(entry)
            ours.remove(entry)
        else:
            plain = sorted([*plain, entry])
            ours.add(entry)
        found = bisect_left(plain, bound)
        assert ours.first(bound.__le__) == (plain[found] if found < len(plain) else None)


def test_it_stays_sorted_through_many_blocks() -> None:
    """Blocks are split when they grow, and removed when they are empty."""
    numbers = [(float(7 * n % 20_011),) for n in range(20_011)]
    ours: Ordered[tuple[float]] = Ordered()
    for entry in numbers:
        ours.add(entry)
    assert len(ours._blocks) > 20_011 / (2 * bins.BLOCK) - 1
    assert [one for block in ours._blocks for one in block] == sorted(numbers)
    for entry in sorted(numbers)[:: bins.BLOCK // 3]:
        assert ours.first(entry.__le__) == entry

    for entry in sorted(numbers)[100:]:
        ours.remove(entry)
    assert ours._blocks == [sorted(numbers)[:100]]
    assert ours.first(lambda one: one > (99.0,)) is None
