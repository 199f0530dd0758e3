"""No fewer consumers than wanted."""

from hypothesis import given
from hypothesis import strategies as some

from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.packing.capacity import PerSlot
from binwright.core.packing.floor import at_least

P = [TopicPartition("t", n) for n in range(6)]
RATES = {p: BytesPerSecond(rate) for p, rate in zip(P, (40, 10, 30, 20, 0, 0), strict=True)}
CAPACITY = PerSlot(BytesPerSecond(120))

ASSIGNMENTS = some.lists(some.integers(0, 5).map(Slot), min_size=1, max_size=6).map(
    lambda slots: dict(zip(P, slots, strict=False))
)


def owners(*slots: int) -> dict[TopicPartition, Slot]:
    return dict(zip(P, map(Slot, slots), strict=False))


def test_enough_consumers_stay_as_they_are() -> None:
    target = owners(0, 1, 0, 1)
    assert at_least(target, RATES, CAPACITY, owners(2, 2, 2, 2), 2) == target


def test_a_group_at_its_minimum_stays_as_it_is() -> None:
    """The packing would put all on one; to undo that each time would move partitions for ever."""
    current = owners(0, 3, 0, 3)
    for packed in (owners(0, 0, 0, 0), owners(3, 3, 3, 3)):
        assert at_least(packed, RATES, CAPACITY, current, 2) == current


def test_who_is_overloaded_gets_back_no_more_than_it_carries() -> None:
    """Of three that were emptied; the first is given what fits into it."""
    small = PerSlot(BytesPerSecond(120), {Slot(1): BytesPerSecond(25)})
    found = at_least(owners(0, 0, 0, 0), RATES, small, owners(1, 1, 1, 1), 2)
    assert found == owners(0, 1, 0, 0)


def test_a_new_one_takes_half_of_the_fullest() -> None:
    assert at_least(owners(0, 0, 0, 0), RATES, CAPACITY, {}, 2) == owners(1, 1, 0, 0)
    assert at_least(owners(1, 1, 0, 0), RATES, CAPACITY, {}, 3) == owners(1, 1, 0, 2)


def test_what_carries_nothing_is_halved_by_number() -> None:
    none = dict.fromkeys(P, BytesPerSecond(0))
    assert at_least(owners(0, 0, 0, 0), none, CAPACITY, {}, 2) == owners(1, 1, 0, 0)


def test_one_large_partition_and_a_small_one_are_parted() -> None:
    assert at_least(owners(0, 0), RATES, CAPACITY, {}, 2) == owners(0, 1)


@given(ASSIGNMENTS, ASSIGNMENTS, some.integers(1, 8))
def test_there_are_as_many_as_wanted_and_nobody_is_emptied(
    target: dict[TopicPartition, Slot], current: dict[TopicPartition, Slot], minimum: int
) -> None:
    found = at_least(target, RATES, CAPACITY, current, minimum)
    assert found.keys() == target.keys()
    before, after = set(target.values()), set(found.values())
    assert before <= after
    assert len(after) == max(len(before), min(minimum, len(target)))
    assert at_least(found, RATES, CAPACITY, current, minimum) == found


@given(ASSIGNMENTS)
def test_whatever_merges_a_group_at_its_minimum_it_stays(
    current: dict[TopicPartition, Slot],
) -> None:
    merged = dict.fromkeys(current, min(current.values()))
    assert at_least(merged, RATES, CAPACITY, current, len(set(current.values()))) == current


def test_loads_that_tie_are_told_apart_by_slot_in_every_process() -> None:
    """0.1, 0.2 and 0.3 add up to 0.6 in some orders only; a set's order is the process's own."""
    for name in map(str, range(64)):
        tied = [TopicPartition(name, n) for n in range(5)]
        rates = dict(zip(tied, map(BytesPerSecond, (0.3, 0.3, 0.1, 0.2, 0.3)), strict=True))
        target = dict(zip(tied, map(Slot, (0, 0, 1, 1, 1)), strict=True))
        assert at_least(target, rates, CAPACITY, target, 3)[tied[0]] == 2, "slot 0 is halved"
