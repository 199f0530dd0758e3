"""A table is read in portions."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from binwright.streams.table import portions

SIZES = st.dictionaries(st.integers(0, 10**9), st.integers(1, 100), min_size=1).map(
    lambda found: sorted(found.items())
)


@given(SIZES, st.integers(1, 300))
def test_portions_cover_all_minutes_in_order_and_are_small(
    sizes: list[tuple[int, int]], most: int
) -> None:
    found = list(portions(sizes, most))
    inside = [[(m, s) for m, s in sizes if first <= m <= last] for first, last in found]
    assert [minute for portion in inside for minute in portion] == sizes
    for portion in inside:
        assert len(portion) == 1 or sum(size for _, size in portion) <= most
    for left, right in pairwise(inside):
        assert sum(size for _, size in left) + right[0][1] > most  # none is cut without a need
