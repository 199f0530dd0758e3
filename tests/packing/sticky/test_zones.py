"""Zones in the sticky packing: properties for any input, and single rules."""

from collections.abc import Mapping
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing.packings import owners_of, p, rates_of
from tests.packing.sticky.test_policy import (
    CAPACITY,
    CHANGES,
    NAMED,
    OWNERS,
    PARTITIONS,
    PRICES,
    RATES,
    STILL,
    feasible,
)

from binwright.packing.inputs import Load, SlotCapacities
from binwright.packing.score import moved_partitions
from binwright.packing.sticky import zones as step
from binwright.packing.sticky.policy import Sticky
from binwright.packing.zones import NO_ZONES, Zones, total
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition

T = TypeVar("T")
NAMES = st.sampled_from(["a", "b", "c"])
OF_SLOT = st.dictionaries(st.integers(0, 12).map(Slot), NAMES)
OF_PARTITION = st.dictionaries(PARTITIONS, st.frozensets(NAMES, max_size=2), max_size=40)
ZONE_PRICES = st.sampled_from([0.3, 1.0, 2.0, 10.0])
ZONES = st.builds(Zones, OF_SLOT, OF_PARTITION, ZONE_PRICES)


def moved(rates: Rates, current: Assignment, target: Assignment) -> float:
    return total(rates, moved_partitions(current, target))


def brought_near(current: Assignment, target: Assignment, zones: Zones) -> list[TopicPartition]:
    return [
        q
        for q, slot in current.items()
        if zones.crosses(q, slot) and q in target and not zones.crosses(q, target[q])
    ]


def packed(
    rates: Rates, current: Assignment, zones: Zones, named: Mapping[Slot, BytesPerSecond]
) -> tuple[dict[TopicPartition, Slot], dict[TopicPartition, Slot]]:
    """Return the assignments without and with zones."""
    capacities = SlotCapacities(CAPACITY, named)
    return (
        Sticky()(Load(rates, capacities, current, variance=4.0)),
        Sticky()(Load(rates, capacities, current, variance=4.0, zones=zones)),
    )


# --- properties --------------------------------------------------------------------------------


@settings(max_examples=300)
@given(PRICES, CHANGES, RATES, OWNERS, NAMED, ZONES)
def test_zones_overload_no_consumer_and_need_none_more(  # noqa: PLR0917 - any input
    price: float,
    variance: float | None,
    rates: Rates,
    current: Assignment,
    named: Mapping[Slot, BytesPerSecond],
    zones: Zones,
) -> None:
    capacities, pack = SlotCapacities(CAPACITY, named), Sticky(price)
    target = pack(Load(rates, capacities, current, variance=variance, zones=zones))
    without = pack(Load(rates, capacities, current, variance=variance))

    assert list(target) == sorted(rates)
    assert feasible(rates, capacities, target)
    assert set(target.values()) <= set(without.values())


@settings(max_examples=300)
@given(RATES, OWNERS, NAMED, ZONES)
def test_fewer_bytes_cross_and_each_move_for_a_zone_pays(
    rates: Rates, current: Assignment, named: Mapping[Slot, BytesPerSecond], zones: Zones
) -> None:
    """What moves more than without zones is paid by what crossed where it was, and does no more."""
    without, target = packed(rates, current, zones, named)
    more = moved(rates, current, target) - moved(rates, current, without)
    fewer = zones.crossing(rates, without) - zones.crossing(rates, target)

    assert fewer >= -1e-6
    assert more <= zones.price * fewer + 1e-6
    assert more <= zones.price * total(rates, brought_near(current, target, zones)) + 1e-6


@given(RATES, OWNERS, NAMED, OF_SLOT, OF_PARTITION)
def test_a_price_of_nothing_changes_nothing(
    rates: Rates,
    current: Assignment,
    named: Mapping[Slot, BytesPerSecond],
    of_slot: Mapping[Slot, str],
    of_partition: Mapping[TopicPartition, frozenset[str]],
) -> None:
    without, target = packed(rates, current, Zones(of_slot, of_partition), named)

    assert list(target.items()) == list(without.items())


@given(RATES, OWNERS, OF_SLOT, ZONE_PRICES)
def test_what_is_not_known_changes_nothing(
    rates: Rates, current: Assignment, of_slot: Mapping[Slot, str], price: float
) -> None:
    without, target = packed(rates, current, Zones(of_slot, {}, price), {})
    assert target == without

    everywhere = dict.fromkeys(rates, frozenset("abc"))
    assert packed(rates, current, Zones(of_slot, everywhere, price), {})[1] == without
    assert packed(rates, current, Zones({}, everywhere, price), {})[1] == without


@settings(max_examples=300)
@given(RATES, OWNERS, ZONES)
def test_a_group_whose_rates_and_zones_stay_comes_to_rest(
    rates: Rates, current: Assignment, zones: Zones
) -> None:
    """Nothing flaps: once as many consumers do as before, less crosses with all that moves."""
    for _ in range(60):
        target = Sticky()(Load(rates, CAPACITY, current, variance=4.0, zones=zones))
        if target == current:
            return
        before, after = len(set(current.values())), len(set(target.values()))
        if current.keys() == target.keys() and before == after:
            assert zones.crossing(rates, target) <= zones.crossing(rates, current) + 1e-6
        current = target
    raise AssertionError("partitions still move after 60 decisions")


@given(RATES, OWNERS, ZONES, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(
    rates: Rates, current: Assignment, zones: Zones, random: Random
) -> None:
    def shuffled(known: Mapping[TopicPartition, T]) -> dict[TopicPartition, T]:
        items = list(known.items())
        random.shuffle(items)
        return dict(items)

    one = packed(rates, current, zones, {})
    other = Zones(zones.of_slot, shuffled(zones.of_partition), zones.price)
    assert packed(shuffled(rates), shuffled(current), other, {}) == one


# --- single rules ------------------------------------------------------------------------------


def zones_of(*near: str, slots: str, price: float = 2.0) -> Zones:
    """Give the topic's first partitions these zones, a letter each, and the first slots theirs."""
    return Zones(
        {Slot(number): zone for number, zone in enumerate(slots) if zone != "-"},
        {p(number): frozenset(names) for number, names in enumerate(near)},
        price,
    )


def with_zones(rates: Rates, current: Assignment, zones: Zones) -> dict[TopicPartition, Slot]:
    return Sticky(0.1)(Load(rates, CAPACITY, current, variance=STILL, zones=zones))


def test_what_crosses_goes_to_a_near_consumer_with_room() -> None:
    rates, zones = rates_of(60, 30, 60), zones_of("a", "b", "b", slots="ab")

    assert with_zones(rates, owners_of(0, 0, 1), zones) == owners_of(0, 1, 1)


@pytest.mark.parametrize(("price", "owner"), [(1.0, 0), (1.1, 1)])
def test_nothing_moves_for_its_zone_alone_at_a_price_up_to_that_of_a_move(
    price: float, owner: int
) -> None:
    rates, zones = rates_of(60, 30, 60), zones_of("a", "b", "b", slots="ab", price=price)

    assert with_zones(rates, owners_of(0, 0, 1), zones) == owners_of(0, owner, 1)


def test_at_a_low_price_what_is_at_home_makes_no_room_for_what_moves_anyway() -> None:
    """The new 40 would come near, and the other one, for one move: still that moves for a zone."""
    rates, zones = rates_of(60, 40, 60, 40), zones_of("a", "b", "b", "a", slots="ab", price=0.9)

    assert with_zones(rates, owners_of(0, 0, 1), zones) == owners_of(0, 0, 1, 1)


def test_what_moves_anyway_goes_to_a_near_consumer() -> None:
    """A new partition fits best beside 50, and reads near beside 30."""
    rates = rates_of(50, 30, 40)
    zones = zones_of("a", "b", "b", slots="ab", price=0.1)

    assert with_zones(rates, owners_of(0, 1), NO_ZONES) == owners_of(0, 1, 0)
    assert with_zones(rates, owners_of(0, 1), zones) == owners_of(0, 1, 1)


def test_of_near_consumers_that_with_the_least_ample_room_is_taken() -> None:
    rates, zones = rates_of(60, 20, 30, 60), zones_of("a", "b", "b", "b", slots="abb")

    assert with_zones(rates, owners_of(0, 0, 1, 2), zones) == owners_of(0, 2, 1, 2)


def test_full_consumers_swap_what_crosses_both_ways() -> None:
    rates = rates_of(60, 40, 55, 45)
    zones = zones_of("a", "b", "b", "a", slots="ab")

    assert with_zones(rates, owners_of(0, 0, 1, 1), zones) == owners_of(0, 0, 1, 1)
    rates = rates_of(60, 40, 60, 40)
    assert with_zones(rates, owners_of(0, 0, 1, 1), zones) == owners_of(0, 1, 1, 0)


def test_a_swap_takes_the_partition_that_loses_least() -> None:
    """40 cannot go to consumer 1 unless something leaves it: 30 can be read in both zones."""
    rates = rates_of(50, 40, 50, 30)
    zones = zones_of("a", "b", "b", "ab", slots="ab")

    assert with_zones(rates, owners_of(0, 0, 1, 1), zones) == owners_of(0, 1, 1, 0)


def test_a_swap_that_moves_more_than_it_brings_near_is_left_alone() -> None:
    """40 would come near for 40 that moves with it, and at a price of 2 that is as much."""
    rates = rates_of(60, 40, 60, 40)
    zones = zones_of("a", "b", "b", "ab", slots="ab")

    assert with_zones(rates, owners_of(0, 0, 1, 1), zones) == owners_of(0, 0, 1, 1)


def test_what_has_moved_displaces_nothing_that_has_not() -> None:
    """The new 40 fits beside 60 only; the 40 of consumer 1 stays, although 40 x 10 would pay."""
    rates = rates_of(60, 60, 40, 40)
    zones = zones_of("a", "b", "ab", "b", slots="ab", price=10.0)

    assert with_zones(rates, owners_of(0, 1, 1), zones) == owners_of(0, 1, 1, 0)


def test_of_two_that_move_anyway_the_faster_one_gets_the_near_room() -> None:
    """Both are new, and only one of them fits near the others of its zone."""
    rates, zones = rates_of(59.5, 59, 40, 30), zones_of("a", "b", "b", "b", slots="ab")
    current = owners_of(0, 1)

    assert with_zones(rates, current, NO_ZONES) == owners_of(0, 1, 0, 1)
    assert with_zones(rates, current, zones) == owners_of(0, 1, 1, 0)


def test_a_consumer_that_is_left_without_partitions_is_closed() -> None:
    rates, zones = rates_of(10, 30), zones_of("b", "b", slots="ab")
    price = 1e-9  # not worth closing one by itself

    target = Sticky(price)(Load(rates, CAPACITY, owners_of(0, 1), variance=STILL, zones=zones))
    assert target == owners_of(1, 1)


def test_partitions_without_a_load_stay() -> None:
    rates, zones = rates_of(60, 0, 60), zones_of("a", "b", "b", slots="ab")

    assert with_zones(rates, owners_of(0, 0, 1), zones) == owners_of(0, 0, 1)


def test_room_is_kept_where_rates_change() -> None:
    """Near, 10 would fill its consumer to the brim, and that costs more than it saves."""
    rates, current = rates_of(40, 10, 89), owners_of(0, 0, 1)
    zones = zones_of("a", "b", "b", slots="ab", price=1.5)

    still = Sticky(0.1)(Load(rates, CAPACITY, current, variance=STILL, zones=zones))
    changing = Sticky(0.1)(Load(rates, CAPACITY, current, variance=100.0, zones=zones))
    assert (still[p(1)], changing[p(1)]) == (1, 0)


def test_room_that_is_better_spread_pays_for_no_move() -> None:
    """40 and 10 would change places for 49.6 that no longer cross, and move 50."""
    rates, current = rates_of(60, 40, 55, 10), owners_of(0, 0, 1, 1)
    zones = zones_of("a", "b", "b", "ab", slots="ab", price=1.24)
    pack = Sticky(0.1)

    assert pack(Load(rates, CAPACITY, current, variance=165.0, zones=zones)) == current
    dearer = zones_of("a", "b", "b", "ab", slots="ab", price=1.26)
    swapped = pack(Load(rates, CAPACITY, current, variance=165.0, zones=dearer))
    assert swapped == owners_of(0, 1, 1, 0)


def test_what_came_near_for_moves_that_it_pays_stays_near() -> None:
    """A new partition could take its place and cross less; then nothing would pay for the moves."""
    rates = rates_of(20, 45, 50, 30, 35, 50, 35)
    current = owners_of(None, 1, None, 0, None, 0, 0)
    zones = zones_of("b", "a", "a", "a", "a", "a", "b", slots="abbbaa", price=1.1)
    target = Sticky()(Load(rates, CAPACITY, current, variance=4.0, zones=zones))
    without = Sticky()(Load(rates, CAPACITY, current, variance=4.0))
    more = moved(rates, current, target) - moved(rates, current, without)

    assert more <= zones.price * total(rates, brought_near(current, target, zones))


def test_a_large_group_tries_few_partitions_of_full_consumers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates = rates_of(50, 40, 50, 30)
    zones = zones_of("a", "b", "b", "ab", slots="ab")
    monkeypatch.setattr(step, "MAX_STEPS", 1)

    assert with_zones(rates, owners_of(0, 0, 1, 1), zones) == owners_of(0, 0, 1, 1)


def test_what_crosses_both_ways_is_swapped_in_a_group_of_any_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates, zones = rates_of(60, 40, 60, 40), zones_of("a", "b", "b", "a", slots="ab")
    monkeypatch.setattr(step, "MAX_STEPS", 0)

    assert with_zones(rates, owners_of(0, 0, 1, 1), zones) == owners_of(0, 1, 1, 0)


def test_crossing_bytes_are_those_of_known_zones_only() -> None:
    zones = zones_of("a", "b", "", "ab", slots="a-")
    rates = rates_of(1, 2, 4, 8, 16)

    assert zones.crossing(rates, owners_of(0, 0, 0, 0, 0)) == 2.0
    assert zones.crossing(rates, owners_of(1, 1, 1, 1, 1)) == 0.0
    assert zones.crossing({}, owners_of(0, 0)) == 0.0
