"""Consumers by their room, against a plain sorted list."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from binwright.core.model import Slot
from binwright.core.packing import rooms
from binwright.core.packing.rooms import Rooms

ENTRIES = st.tuples(st.integers(0, 40).map(float), st.integers(0, 3_000).map(Slot))
BEGIN = st.dictionaries(st.integers(0, 3_000).map(Slot), st.integers(0, 40), max_size=30)


def check(ours: Rooms, plain: list[tuple[float, Slot]], bound: float) -> None:
    found = bisect_left(plain, (bound, Slot(-1)))
    assert ours.least(bound) == (plain[found] if found < len(plain) else None)
    assert ours.last == (plain[-1] if plain else None)
    assert list(ours.descending()) == plain[::-1]


@given(BEGIN, st.lists(ENTRIES, max_size=60), st.integers(0, 41))
def test_it_is_a_sorted_list(
    begin: dict[Slot, int], toggled: list[tuple[float, Slot]], bound: int
) -> None:
    plain: list[tuple[float, Slot]] = sorted((room, slot) for slot, room in begin.items())
    ours = Rooms(begin, begin.__getitem__)
    for entry in toggled:
        if entry in plain:
            plain.remove(entry)
            ours.remove(*entry)
        else:
            plain = sorted([*plain, entry])
            ours.add(*entry)
        check(ours, plain, bound)


def test_it_stays_sorted_through_many_blocks() -> None:
    """Blocks are cut when they grow, also where all rooms are equal, and vanish when empty."""
    plain: list[tuple[float, Slot]] = [(7 * n % 20_011 // 5_000, Slot(n)) for n in range(20_011)]
    ours = Rooms((), float)
    for entry in plain:
        ours.add(*entry)
    assert len(ours._rooms) > 20_011 / (2 * rooms.BLOCK) - 1
    plain.sort()
    for bound in range(6):
        check(ours, plain, bound)

    for entry in plain[:100:-1]:
        ours.remove(*entry)
    check(ours, plain[:101], 0)
    assert len(ours._rooms) == 1


@given(BEGIN, st.lists(st.tuples(st.integers(0, 41), st.integers(0, 20)), max_size=40))
def test_who_has_room_enough_to_spare_is_taken_or_else_the_roomiest(
    begin: dict[Slot, int], asked: list[tuple[int, int]]
) -> None:
    plain: list[tuple[float, Slot]] = sorted((room, slot) for slot, room in begin.items())
    ours = Rooms(begin, begin.__getitem__)
    for need, spare in asked:
        fits = [entry for entry in plain if entry[0] >= need + spare]
        roomiest = [entry for entry in plain[-1:] if entry[0] >= need]
        wanted = next(iter(fits or roomiest), None)

        assert ours.take(need, spare) == wanted
        if wanted is not None:
            plain.remove(wanted)
        check(ours, plain, need)


def test_where_a_block_ends_the_next_one_is_looked_at() -> None:
    slots = [Slot(n) for n in range(2 * rooms.BLOCK)]
    ours = Rooms(slots, float)

    assert ours.least(rooms.BLOCK - 0.5) == (rooms.BLOCK, rooms.BLOCK)
    assert ours.least(2 * rooms.BLOCK) is None
