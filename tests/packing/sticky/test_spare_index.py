"""The index of consumers by spare capacity, against a plain sorted list."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from binwright.packing.sticky import spare_index
from binwright.packing.sticky.spare_index import ConsumersBySpare
from binwright.protocol.model import Slot

ENTRIES = st.tuples(st.integers(0, 40).map(float), st.integers(0, 3_000).map(Slot))
BEGIN = st.dictionaries(st.integers(0, 3_000).map(Slot), st.integers(0, 40), max_size=30)


def check(ours: ConsumersBySpare, plain: list[tuple[float, Slot]], bound: float) -> None:
    found = bisect_left(plain, (bound, Slot(-1)))
    assert ours.least(bound) == (plain[found] if found < len(plain) else None)
    assert ours.last == (plain[-1] if plain else None)
    assert list(ours.descending()) == plain[::-1]


@given(BEGIN, st.lists(ENTRIES, max_size=60), st.integers(0, 41))
def test_it_behaves_as_a_sorted_list(
    begin: dict[Slot, int], toggled: list[tuple[float, Slot]], bound: int
) -> None:
    plain: list[tuple[float, Slot]] = sorted((spare, slot) for slot, spare in begin.items())
    ours = ConsumersBySpare(begin, begin.__getitem__)
    for entry in toggled:
        if entry in plain:
            plain.remove(entry)
            ours.remove(*entry)
        else:
            plain = sorted([*plain, entry])
            ours.add(*entry)
        check(ours, plain, bound)


def test_it_stays_sorted_through_many_blocks() -> None:
    """Blocks are split when they grow, also if all rooms are equal, and removed when empty."""
    plain: list[tuple[float, Slot]] = [(7 * n % 20_011 // 5_000, Slot(n)) for n in range(20_011)]
    ours = ConsumersBySpare((), float)
    for entry in plain:
        ours.add(*entry)
    assert len(ours._spares) > 20_011 / (2 * spare_index.BLOCK) - 1
    plain.sort()
    for bound in range(6):
        check(ours, plain, bound)

    for entry in plain[:100:-1]:
        ours.remove(*entry)
    check(ours, plain[:101], 0)
    assert len(ours._spares) == 1


@given(BEGIN, st.lists(st.tuples(st.integers(0, 41), st.integers(0, 20)), max_size=40))
def test_the_best_fit_with_spare_room_is_taken_or_else_the_most_room(
    begin: dict[Slot, int], requests: list[tuple[int, int]]
) -> None:
    plain: list[tuple[float, Slot]] = sorted((spare, slot) for slot, spare in begin.items())
    ours = ConsumersBySpare(begin, begin.__getitem__)
    for need, margin in requests:
        fits = [entry for entry in plain if entry[0] >= need + margin]
        roomiest = [entry for entry in plain[-1:] if entry[0] >= need]
        wanted = next(iter(fits or roomiest), None)

        assert ours.take_best_fit(need, margin) == wanted
        if wanted is not None:
            plain.remove(wanted)
        check(ours, plain, need)


def test_a_search_continues_in_the_next_block() -> None:
    slots = [Slot(n) for n in range(2 * spare_index.BLOCK)]
    ours = ConsumersBySpare(slots, float)

    assert ours.least(spare_index.BLOCK - 0.5) == (spare_index.BLOCK, spare_index.BLOCK)
    assert ours.least(2 * spare_index.BLOCK) is None
