"""An assignment is limited to the maximum number of consumers."""

from binwright.packing.capacity import SlotCapacities
from binwright.packing.max_slots import limit_slots, worth_moving
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

P = [TopicPartition("t", n) for n in range(4)]
RATES = {p: BytesPerSecond(rate) for p, rate in zip(P, (40.0, 10.0, 30.0, 20.0), strict=True)}
EQUAL = SlotCapacities(BytesPerSecond(50))
LARGE_1 = SlotCapacities(BytesPerSecond(50), {Slot(1): BytesPerSecond(200)})


def test_an_assignment_within_the_limit_is_unchanged() -> None:
    target = {p: Slot(n % 2) for n, p in enumerate(P)}
    assert limit_slots(target, RATES, EQUAL, 2) == target


def test_partitions_above_the_limit_go_to_the_least_loaded_slot() -> None:
    target = {P[0]: Slot(0), P[1]: Slot(1), P[2]: Slot(2), P[3]: Slot(3)}
    assert limit_slots(target, RATES, EQUAL, 2) == {P[0]: 0, P[1]: 1, P[2]: 1, P[3]: 0}


def test_of_the_partitions_above_the_limit_the_fastest_is_placed_first() -> None:
    target = {P[0]: Slot(2), P[1]: Slot(3), P[2]: Slot(4), P[3]: Slot(5)}
    assert limit_slots(target, RATES, EQUAL, 2) == {P[0]: 0, P[2]: 1, P[3]: 1, P[1]: 0}


def test_a_consumer_of_larger_capacity_gets_more() -> None:
    target = {P[0]: Slot(2), P[1]: Slot(3), P[2]: Slot(4), P[3]: Slot(5)}
    assert limit_slots(target, RATES, LARGE_1, 2) == {P[0]: 0, P[2]: 1, P[3]: 1, P[1]: 1}


def owners(*slots: int) -> dict[TopicPartition, Slot]:
    return dict(zip(P, map(Slot, slots), strict=False))


def test_moves_that_lower_the_highest_load_are_worth_it() -> None:
    assert worth_moving(RATES, EQUAL, owners(0, 0, 0, 0), owners(0, 1, 1, 0))


def test_loads_are_compared_as_shares_of_capacity() -> None:
    assert worth_moving(RATES, LARGE_1, owners(0, 1, 1, 0), owners(1, 0, 0, 1))


def test_moves_that_fill_another_consumer_as_much_are_not_worth_it() -> None:
    """Otherwise a permanent overload would move partitions forever."""
    assert not worth_moving(RATES, EQUAL, owners(0, 1, 1, 0), owners(1, 0, 0, 1))
    assert not worth_moving(RATES, EQUAL, owners(0, 0, 1, 1), owners(0, 1, 1, 0))


def test_added_and_removed_partitions_are_worth_any_move() -> None:
    assert worth_moving(RATES, EQUAL, owners(0, 1, 1), owners(0, 1, 1, 0))
    assert worth_moving(RATES, EQUAL, owners(0, 1, 1, 0), owners(0, 1, 1))


def test_an_empty_assignment_is_worth_no_move() -> None:
    assert not worth_moving({}, EQUAL, {}, {})
