"""Placements keep to people's rules, and to the packing where the rules leave that open."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as some

from binwright.packing.adjust import ensure_min_slots
from binwright.packing.inputs import Load, SlotCapacities
from binwright.packing.placement import is_overfull, most_consumers, open_load, place
from binwright.packing.rules import NO_RULES, Rules
from binwright.packing.sticky.policy import Sticky
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

P = [TopicPartition("t", n) for n in range(6)]
CAPACITIES = SlotCapacities(BytesPerSecond(100))
A, B, C, D = map(Slot, range(4))


def rates(*values: float) -> dict[TopicPartition, BytesPerSecond]:
    return {p: BytesPerSecond(rate) for p, rate in zip(P, values, strict=False)}


def at(*slots: int | None) -> dict[TopicPartition, Slot]:
    return {p: Slot(slot) for p, slot in zip(P, slots, strict=False) if slot is not None}


def pinned(*slots: int | None) -> Mapping[tuple[str, int | None], Slot]:
    return {("t", p.partition): slot for p, slot in at(*slots).items()}


def test_a_partition_has_its_own_pin_or_that_of_its_topic() -> None:
    rules = Rules(pins={("t", None): A, ("t", 1): B})
    assert [rules.pin(p) for p in P[:3]] == [A, B, A]
    assert rules.pin(TopicPartition("other", 0)) is None
    assert NO_RULES.pin(P[0]) is None
    assert (bool(rules), bool(NO_RULES)) == (True, False)


def test_closed_consumers_get_nothing_and_only_a_cordoned_one_keeps_what_it_has() -> None:
    rules = Rules(cordoned=frozenset({A}), drained=frozenset({B}))
    assert rules.allow(P[0], A, A)
    assert not rules.allow(P[0], A, C)
    assert not rules.allow(P[0], B, B)
    assert rules.allow(P[0], C, A)
    assert [rules.is_open(slot) for slot in (A, B, C)] == [False, False, True]


def test_a_freeze_comes_before_a_pin_and_what_has_no_reader_is_free() -> None:
    rules = Rules(pins=pinned(1), frozen=True)
    assert rules.only_reader(P[0], A) == A
    assert rules.only_reader(P[0], None) == B
    assert rules.only_reader(P[1], None) is None


def test_the_packing_gets_what_no_rule_places_and_the_room_that_is_left() -> None:
    rules = Rules(pins=pinned(0, 2), drained=frozenset({B}))
    load = rates(70, 120, 40, 20, 20)
    opened = open_load(Load(load, CAPACITIES, at(0, 1, 0, 1, 0), 4.0), rules)
    room = opened.capacities
    assert dict(opened.rates) == {P[2]: 40.0, P[3]: 20.0, P[4]: 20.0}
    assert [room.for_slot(A), room.for_slot(D)] == [30.0, 100.0]
    assert 0 < room.for_slot(C) < 1
    assert opened.current == {P[4]: A}, "one has no room at home, and one's home is drained"
    assert opened.variance == 4.0


def placed(
    packed: Mapping[TopicPartition, Slot],
    load: Mapping[TopicPartition, BytesPerSecond],
    current: Mapping[TopicPartition, Slot],
    rules: Rules,
    most: int = 4,
) -> dict[TopicPartition, Slot]:
    return place(packed, Load(load, CAPACITIES, current), rules, most)


def test_without_a_reason_to_differ_the_packing_holds() -> None:
    rules = Rules(pins=pinned(0))
    assert placed(at(None, 1, 1), rates(20, 30, 40), at(0, 1, 1), rules) == at(0, 1, 1)


def test_a_pin_holds_and_what_no_longer_fits_beside_it_goes_where_room_is() -> None:
    rules = Rules(pins=pinned(1))
    found = placed(at(None, 1, 1, 0), rates(60, 50, 40, 30), at(0, 1, 1, 0), rules)
    assert found == at(1, 0, 1, 0) or found == at(1, 1, 0, 0)
    assert not is_overfull(found, rates(60, 50, 40, 30), CAPACITIES)


def test_a_closed_consumers_partitions_go_to_another_one_while_no_other_has_room() -> None:
    rules = Rules(drained=frozenset({A}))
    assert placed(at(0, 1), rates(60, 60), at(0, 1), rules) == at(2, 1)
    assert placed(at(0, 1), rates(30, 60), at(0, 1), rules) == at(1, 1)


def test_with_no_slot_left_the_least_loaded_one_is_overloaded() -> None:
    rules = Rules(drained=frozenset({A}))
    assert placed(at(0, 1, 2), rates(60, 60, 50), at(0, 1, 2), rules, most=3) == at(2, 1, 2)


def test_a_number_of_consumers_keeps_those_of_most_load() -> None:
    load = rates(30, 40, 50)
    rules = Rules(consumers=2)
    assert set(placed(at(0, 1, 2), load, at(0, 1, 2), rules).values()) == {B, C}
    assert set(placed(at(0, 0, 0), load, {}, Rules(consumers=1)).values()) == {A}


def test_a_number_of_consumers_has_room_for_pins_and_prefers_open_consumers() -> None:
    load = rates(30, 40, 50)
    more_pins = Rules(pins=pinned(3, 2, 1), consumers=1)
    assert placed({}, load, at(0, 0, 0), more_pins) == at(3, 2, 1)
    cordoned = Rules(cordoned=frozenset({C}), consumers=2)
    assert placed(at(0, 1, 2), load, at(0, 1, 2), cordoned) == at(0, 1, 0)


def test_where_only_closed_consumers_are_chosen_an_open_one_is_added() -> None:
    rules = Rules(cordoned=frozenset({A}), frozen=True, consumers=1)
    assert placed({}, rates(30, 40), at(0), rules) == at(0, 1)


def test_a_group_at_its_minimum_keeps_to_the_rules() -> None:
    rules = Rules(pins=pinned(0, 0), cordoned=frozenset({B}))
    load = rates(20, 20, 20, 20)
    found = ensure_min_slots(
        at(0, 0, 0, 0), load, CAPACITIES, at(0, 0, 0, 0), 2, rules=rules, max_slots=4
    )
    assert (found[P[0]], found[P[1]]) == (A, A)
    assert set(found.values()) == {A, C}
    all_pinned = Rules(pins={("t", None): A})
    same = at(0, 0, 0, 0)
    assert ensure_min_slots(same, load, CAPACITIES, same, 3, rules=all_pinned) == same
    closed = Rules(drained=frozenset({B}))
    assert ensure_min_slots(same, load, CAPACITIES, same, 2, rules=closed, max_slots=2) == same
    one_free = Rules(pins=pinned(0, 0, 0))
    found = ensure_min_slots(same, load, CAPACITIES, same, 2, rules=one_free)
    assert found == at(0, 0, 0, 1)
    back = ensure_min_slots(same, load, CAPACITIES, at(0, 0, 1, 1), 2, rules=closed)
    assert set(back.values()) == {A, C}, "a drained consumer gets nothing back"
    idle, beside = rates(0, 0), Rules(pins=pinned(0))
    found = ensure_min_slots(at(0, 0), idle, CAPACITIES, at(0, 0), 2, rules=beside)
    assert found == at(0, 1)


def test_how_many_consumers_can_read() -> None:
    readers = dict.fromkeys(P[:3], A)
    assert most_consumers(readers, NO_RULES, 10) == 3
    assert most_consumers(readers, NO_RULES, 2) == 2
    assert most_consumers(readers, Rules(pins={("t", None): B}), 10) == 1
    assert most_consumers(readers, Rules(pins=pinned(1)), 10) == 3
    closed = Rules(cordoned=frozenset({A, B}), drained=frozenset({C}))
    assert most_consumers(readers, closed, 4) == 2
    assert most_consumers({P[0]: None}, NO_RULES, 4) == 1


@given(
    some.lists(some.integers(0, 90), min_size=1, max_size=6),
    some.lists(some.none() | some.integers(0, 4), min_size=6, max_size=6),
    some.lists(some.none() | some.integers(3, 4), min_size=6, max_size=6),
    some.none() | some.integers(1, 5),
    some.booleans(),
)
def test_any_placement_keeps_to_the_rules_and_leaves_nothing_out(
    values: list[int],
    current: list[int | None],
    pins: list[int | None],
    consumers: int | None,
    frozen: bool,
) -> None:
    load = rates(*values)
    owners = {p: slot for p, slot in at(*current).items() if p in load}
    rules = Rules(pinned(*pins), frozenset({A}), frozenset({B}), consumers, frozen)
    opened = open_load(Load(load, CAPACITIES, owners), rules)
    found = placed(Sticky()(opened), load, owners, rules, most=5)
    assert found.keys() == load.keys()
    for partition, slot in found.items():
        assert rules.allow(partition, slot, owners.get(partition))
    assert found == placed(Sticky()(opened), load, owners, rules, most=5)
