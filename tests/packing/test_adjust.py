"""An assignment is kept within a group's bounds, and partitions are added to it."""

from hypothesis import given
from hypothesis import strategies as some

from binwright.packing.adjust import ensure_min_slots, limit_slots, spread, worth_moving
from binwright.packing.inputs import SlotCapacities
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

P = [TopicPartition("t", n) for n in range(6)]
RATES = {p: BytesPerSecond(rate) for p, rate in zip(P, (40, 10, 30, 20, 0, 0), strict=True)}
EQUAL = SlotCapacities(BytesPerSecond(50))
CAPACITY = SlotCapacities(BytesPerSecond(120))
LARGE_1 = SlotCapacities(BytesPerSecond(50), {Slot(1): BytesPerSecond(200)})
ASSIGNMENTS = some.lists(some.integers(0, 5).map(Slot), min_size=1, max_size=6).map(
    lambda slots: dict(zip(P, slots, strict=False))
)


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


def test_an_assignment_with_enough_consumers_is_unchanged() -> None:
    target = owners(0, 1, 0, 1)
    assert ensure_min_slots(target, RATES, CAPACITY, owners(2, 2, 2, 2), 2) == target


def test_a_group_at_its_minimum_does_not_change() -> None:
    """The packing puts all on one consumer; undoing that differently each time would never end."""
    current = owners(0, 3, 0, 3)
    for packed in (owners(0, 0, 0, 0), owners(3, 3, 3, 3)):
        assert ensure_min_slots(packed, RATES, CAPACITY, current, 2) == current


def test_a_consumer_gets_back_no_more_than_its_capacity() -> None:
    """Of three consumers that were emptied the first gets back what fits into it."""
    small = SlotCapacities(BytesPerSecond(120), {Slot(1): BytesPerSecond(25)})
    found = ensure_min_slots(owners(0, 0, 0, 0), RATES, small, owners(1, 1, 1, 1), 2)
    assert found == owners(0, 1, 0, 0)


def test_a_new_consumer_takes_half_of_the_highest_load() -> None:
    assert ensure_min_slots(owners(0, 0, 0, 0), RATES, CAPACITY, {}, 2) == owners(1, 1, 0, 0)
    assert ensure_min_slots(owners(1, 1, 0, 0), RATES, CAPACITY, {}, 3) == owners(1, 1, 0, 2)


def test_partitions_without_load_are_halved_by_number() -> None:
    none = dict.fromkeys(P, BytesPerSecond(0))
    assert ensure_min_slots(owners(0, 0, 0, 0), none, CAPACITY, {}, 2) == owners(1, 1, 0, 0)


def test_one_fast_partition_and_a_slow_one_are_separated() -> None:
    assert ensure_min_slots(owners(0, 0), RATES, CAPACITY, {}, 2) == owners(0, 1)


@given(ASSIGNMENTS, ASSIGNMENTS, some.integers(1, 8))
def test_the_minimum_is_met_and_no_consumer_is_emptied(
    target: dict[TopicPartition, Slot], current: dict[TopicPartition, Slot], minimum: int
) -> None:
    found = ensure_min_slots(target, RATES, CAPACITY, current, minimum)
    assert found.keys() == target.keys()
    before, after = set(target.values()), set(found.values())
    assert before <= after
    assert len(after) == max(len(before), min(minimum, len(target)))
    assert ensure_min_slots(found, RATES, CAPACITY, current, minimum) == found


@given(ASSIGNMENTS)
def test_a_group_at_its_minimum_does_not_change_for_any_target(
    current: dict[TopicPartition, Slot],
) -> None:
    merged = dict.fromkeys(current, min(current.values()))
    assert ensure_min_slots(merged, RATES, CAPACITY, current, len(set(current.values()))) == current


def test_equal_loads_are_ordered_by_slot_in_every_process() -> None:
    """0.1, 0.2 and 0.3 add up to 0.6 in some orders only, and the order of a set varies."""
    for name in map(str, range(64)):
        tied = [TopicPartition(name, n) for n in range(5)]
        rates = dict(zip(tied, map(BytesPerSecond, (0.3, 0.3, 0.1, 0.2, 0.3)), strict=True))
        target = dict(zip(tied, map(Slot, (0, 0, 1, 1, 1)), strict=True))
        assert ensure_min_slots(target, rates, CAPACITY, target, 3)[tied[0]] == 2, (
            "slot 0 is halved"
        )


Q, R = P[1], P[2]
A, B = Slot(0), Slot(1)


def rates(*values: float) -> dict[TopicPartition, BytesPerSecond]:
    return {p: BytesPerSecond(rate) for p, rate in zip(P, values, strict=False)}


def test_the_largest_goes_first_and_to_the_least_loaded() -> None:
    assert spread(rates(10, 20, 30), {}, P[:3], [A, B]) == {R: A, Q: B, P[0]: B}


def test_what_is_assigned_stays_and_counts() -> None:
    assert spread(rates(30, 20, 20), {P[0]: A}, [Q, R], [A, B]) == {P[0]: A, Q: B, R: B}


def test_without_rates_partitions_are_counted() -> None:
    assert spread({}, {P[0]: A}, [Q, R], [B, A]) == {P[0]: A, Q: B, R: A}


def test_a_slot_that_may_not_be_chosen_keeps_what_it_has_and_gets_nothing() -> None:
    assert spread(rates(1, 9, 9), {P[0]: A}, [Q, R], [B]) == {P[0]: A, Q: B, R: B}


def test_nothing_to_add_needs_no_slot() -> None:
    assert spread({}, {P[0]: A}, [], []) == {P[0]: A}
