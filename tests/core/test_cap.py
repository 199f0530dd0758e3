"""No more consumers than allowed."""

from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.packing.cap import relieves, within
from binwright.core.packing.capacity import PerSlot

P = [TopicPartition("t", n) for n in range(4)]
RATES = {p: BytesPerSecond(rate) for p, rate in zip(P, (40.0, 10.0, 30.0, 20.0), strict=True)}
EQUAL = PerSlot(BytesPerSecond(50))
LARGE_1 = PerSlot(BytesPerSecond(50), {Slot(1): BytesPerSecond(200)})


def test_what_fits_stays() -> None:
    target = {p: Slot(n % 2) for n, p in enumerate(P)}
    assert within(target, RATES, EQUAL, 2) == target


def test_what_is_beyond_goes_to_the_least_loaded() -> None:
    target = {P[0]: Slot(0), P[1]: Slot(1), P[2]: Slot(2), P[3]: Slot(3)}
    assert within(target, RATES, EQUAL, 2) == {P[0]: 0, P[1]: 1, P[2]: 1, P[3]: 0}


def test_of_what_is_beyond_the_largest_is_placed_first() -> None:
    target = {P[0]: Slot(2), P[1]: Slot(3), P[2]: Slot(4), P[3]: Slot(5)}
    assert within(target, RATES, EQUAL, 2) == {P[0]: 0, P[2]: 1, P[3]: 1, P[1]: 0}


def test_of_what_is_beyond_a_large_consumer_is_given_more() -> None:
    target = {P[0]: Slot(2), P[1]: Slot(3), P[2]: Slot(4), P[3]: Slot(5)}
    assert within(target, RATES, LARGE_1, 2) == {P[0]: 0, P[2]: 1, P[3]: 1, P[1]: 1}


def owners(*slots: int) -> dict[TopicPartition, Slot]:
    return dict(zip(P, map(Slot, slots), strict=False))


def test_moves_that_empty_the_fullest_are_a_relief() -> None:
    assert relieves(RATES, EQUAL, owners(0, 0, 0, 0), owners(0, 1, 1, 0))


def test_the_fullest_is_so_for_its_size() -> None:
    assert relieves(RATES, LARGE_1, owners(0, 1, 1, 0), owners(1, 0, 0, 1))


def test_moves_that_fill_another_as_much_are_none() -> None:
    """Else an overload that nothing can mend would move partitions for ever."""
    assert not relieves(RATES, EQUAL, owners(0, 1, 1, 0), owners(1, 0, 0, 1))
    assert not relieves(RATES, EQUAL, owners(0, 0, 1, 1), owners(0, 1, 1, 0))


def test_what_nobody_reads_or_nobody_shall_is_worth_any_move() -> None:
    assert relieves(RATES, EQUAL, owners(0, 1, 1), owners(0, 1, 1, 0))
    assert relieves(RATES, EQUAL, owners(0, 1, 1, 0), owners(0, 1, 1))


def test_where_there_is_nothing_there_is_no_relief() -> None:
    assert not relieves({}, EQUAL, {}, {})
