"""The sticky packing: properties for any input, and single rules."""

from collections.abc import Mapping
from math import inf, nan
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packing.packings import fewest_consumers, loads, owners_of, p, rates_of

from binwright.packing.inputs import Load, SlotCapacities
from binwright.packing.sticky.close_consumer import Effort, close_consumers, repack
from binwright.packing.sticky.draft import NO_SLOT, Costs, Draft, SpareValue
from binwright.packing.sticky.place import place, undo_moves
from binwright.packing.sticky.policy import Sticky, cheapest_eviction
from binwright.protocol.errors import PackingError
from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition

CAPACITY = BytesPerSecond(100)
STILL = 0.0  # nothing is expected to change: room is worth nothing

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["clicks", "orders"]), st.integers(0, 19))
# Few values: many duplicates, zeros, and rates above capacity.
RATES = st.dictionaries(
    PARTITIONS,
    st.one_of(st.integers(0, 130), st.sampled_from([0, 10, 50, 100])).map(BytesPerSecond),
    max_size=40,
)
OWNERS = st.dictionaries(PARTITIONS, st.integers(0, 12).map(Slot), max_size=40)
NAMED = st.dictionaries(st.integers(0, 9).map(Slot), st.integers(1, 200).map(BytesPerSecond))
PRICES = st.sampled_from([0.1, 0.4, 2.0, 10.0])
CHANGES = st.sampled_from([None, 0.0, 25.0, 400.0, 1e9])


def feasible(rates: Rates, capacities: SlotCapacities, target: Assignment) -> bool:
    return all(
        load <= capacities.for_slot(slot) * (1 + 1e-9) or list(target.values()).count(slot) == 1
        for slot, load in loads(rates, target).items()
    )


# --- properties --------------------------------------------------------------------------------


@settings(max_examples=300)
@given(PRICES, CHANGES, RATES, OWNERS, NAMED)
def test_every_partition_has_an_owner_and_no_owner_is_overloaded(
    price: float,
    variance: float | None,
    rates: Rates,
    current: Assignment,
    named: Mapping[Slot, BytesPerSecond],
) -> None:
    capacities = SlotCapacities(CAPACITY, named)
    target = Sticky(price)(Load(rates, capacities, current, variance=variance))

    assert list(target) == sorted(rates)
    assert all(slot >= 0 for slot in target.values())
    assert feasible(rates, capacities, target)


@given(PRICES, RATES, OWNERS, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(
    price: float, rates: Rates, current: Assignment, random: Random
) -> None:
    shuffled, owners = list(rates.items()), list(current.items())
    random.shuffle(shuffled)
    random.shuffle(owners)

    one = Sticky(price)(Load(rates, CAPACITY, current))
    other = Sticky(price)(Load(dict(shuffled), CAPACITY, dict(owners)))

    assert list(one.items()) == list(other.items())


@given(RATES)
def test_nothing_moves_while_no_consumer_is_overloaded_or_can_be_closed(rates: Rates) -> None:
    """With as many consumers as the lower bound and none overloaded, no move is needed or pays."""
    current = Sticky()(Load(rates, CAPACITY, {}))
    if len(loads(rates, current)) == fewest_consumers(rates, CAPACITY):
        assert Sticky()(Load(rates, CAPACITY, current)) == current


@given(RATES, OWNERS)
def test_removed_partitions_are_ignored(rates: Rates, current: Assignment) -> None:
    known = {q: slot for q, slot in current.items() if q in rates}

    assert Sticky()(Load(rates, CAPACITY, current)) == Sticky()(Load(rates, CAPACITY, known))


@pytest.mark.parametrize("delta", [2, 25])
@pytest.mark.parametrize("price", [0.4, 2.0, 100.0])
def test_assignments_stay_feasible_when_partitions_and_capacities_change(
    delta: int, price: float
) -> None:
    random = Random(delta)
    rates, current = (
        rates_of(*[random.uniform(0, 100) for _ in range(60)]),
        dict[TopicPartition, Slot](),
    )
    for step in range(40):
        capacities = SlotCapacities(
            BytesPerSecond(100 + 10 * (step // 10)), {Slot(3): BytesPerSecond(60)}
        )
        rates = {
            q: BytesPerSecond(min(120.0, max(0.0, rate + random.uniform(-delta, delta))))
            for q, rate in rates.items()
            if random.random() > 0.03
        }
        rates |= {p(1_000 + step): BytesPerSecond(random.uniform(0, 130))}
        current = Sticky(price)(Load(rates, capacities, current, variance=delta**2 / 3))
        assert feasible(rates, capacities, current)


# --- single rules ------------------------------------------------------------------------------


def test_the_cheapest_partitions_that_make_room_leave() -> None:
    """5 too much: 10 goes, and 60 and 35 stay; a fit exactly as large as the room is one."""
    rates, current = rates_of(60, 35, 10, 50, 40), owners_of(0, 0, 0, 1, 1)

    assert Sticky()(Load(rates, CAPACITY, current, variance=STILL)) == owners_of(0, 0, 1, 1, 1)


def test_two_slow_partitions_leave_rather_than_a_fast_one() -> None:
    value = SpareValue.for_deviation(1e-3, 100.0)

    assert cheapest_eviction([60.0, 30.0, 20.0, 15.0], 34.0, 100.0, value) == (2, 3)
    assert cheapest_eviction([60.0, 35.0, 20.0, 15.0], 35.0, 100.0, value) == (1,)


@pytest.mark.parametrize("deviation", [1e-3, 10.0, 40.0])
def test_of_partitions_that_are_each_enough_the_cheapest_leaves(deviation: float) -> None:
    value, rates = SpareValue.for_deviation(deviation, 100.0), [70.0, 52.0, 40.0, 36.0, 3.0]
    costs = [rate + value(rate - 35.0) for rate in rates[:4]]

    assert cheapest_eviction(rates, 35.0, 100.0, value) == (costs.index(min(costs)),)


def test_a_slower_partition_makes_room_and_goes_elsewhere() -> None:
    """No consumer has room for 45; consumer 1 has if its 30 leaves, for which 2 has room."""
    rates = rates_of(60, 45, 50, 30, 65)
    target = Sticky()(Load(rates, CAPACITY, owners_of(0, 0, 1, 1, 2), variance=STILL))

    assert target == owners_of(0, 1, 1, 2, 2)


def test_a_consumer_is_opened_when_that_is_cheaper_than_a_chain() -> None:
    rates = rates_of(60, 45, 50, 30, 65)
    target = Sticky(0.2)(Load(rates, CAPACITY, owners_of(0, 0, 1, 1, 2), variance=STILL))

    assert len(set(target.values())) == 4


def test_room_is_kept_where_rates_change() -> None:
    """10 fits beside 85 exactly enough, and beside 40 with room to spare."""
    rates = rates_of(85, 40, 10)

    assert Sticky()(Load(rates, CAPACITY, owners_of(0, 1), variance=STILL))[p(2)] == 0
    assert Sticky()(Load(rates, CAPACITY, owners_of(0, 1), variance=25.0))[p(2)] == 1


def test_a_consumer_is_closed_when_that_pays() -> None:
    rates, current = rates_of(60, 30, 50), owners_of(0, 1, 2)

    assert Sticky(0.2)(Load(rates, CAPACITY, current, variance=STILL)) == current
    assert Sticky(0.4)(Load(rates, CAPACITY, current, variance=STILL)) == owners_of(0, 0, 2)


def test_consumers_are_repacked_when_none_can_be_emptied() -> None:
    """Each carries 66: no single consumer has room for another's partitions, all together have."""
    rates, current = rates_of(34, 32, 34, 32, 34, 32), owners_of(0, 0, 1, 1, 2, 2)
    target = Sticky(10.0)(Load(rates, CAPACITY, current, variance=STILL))

    assert len(set(target.values())) == 2


def test_a_consumer_is_closed_when_its_last_partition_returns_home() -> None:
    costs = Costs(200.0, SpareValue.for_deviation(0.1, 100.0))
    draft = Draft([60.0, 30.0], [Slot(0), Slot(0)], SlotCapacities(CAPACITY), costs)
    draft.offer_all([Slot(0)])
    draft.move(1, NO_SLOT)
    draft.open(1)
    assert list(draft.owners) == [0, 1]

    undo_moves(draft)

    assert list(draft.owners) == [0, 0]
    assert draft.offered == {0}


def test_the_repacking_in_one_decision_is_limited() -> None:
    effort = Effort(5)

    assert effort.spend(3)
    assert not effort.spend(3)
    assert effort.spend(2)


@pytest.mark.parametrize(("left", "found"), [(0, False), (100, True)])
def test_a_consumer_is_repacked_only_within_the_effort(left: int, *, found: bool) -> None:
    slots = [Slot(n) for n in range(6)]
    costs = Costs(200.0, SpareValue.for_deviation(0.1, 100.0))
    draft = Draft([20.0] * len(slots), slots, SlotCapacities(CAPACITY), costs)
    draft.offer_all(slots)

    assert (repack(draft, slots[0], Effort(left)) is not None) == found


def test_nothing_moves_if_the_last_consumer_cannot_be_emptied() -> None:
    slots = [Slot(0)]
    draft = Draft(
        [60.0], slots, SlotCapacities(CAPACITY), Costs(200.0, SpareValue.for_deviation(0.1, 100.0))
    )
    draft.offer_all(slots)

    assert close_consumers(draft, 1) == 0
    assert list(draft.owners) == slots


@pytest.mark.parametrize(("budget", "found"), [(0.0, None), (19.0, None), (21.0, 20.0)])
def test_a_chain_must_cost_less_than_the_budget(budget: float, found: float | None) -> None:
    costs = Costs(200.0, SpareValue.for_deviation(0.1, 100.0))
    draft = Draft([20.0, 30.0], [Slot(0), Slot(1)], SlotCapacities(CAPACITY), costs)
    draft.offer_all([Slot(1)])

    assert place(draft, 0, budget) == found
    assert list(draft.owners) == ([0, 1] if found is None else [1, 1])


def test_a_partition_that_can_stay_at_home_does() -> None:
    costs = Costs(200.0, SpareValue.for_deviation(0.1, 100.0))
    draft = Draft([20.0, 30.0, 50.0], [Slot(0), Slot(1), Slot(2)], SlotCapacities(CAPACITY), costs)
    draft.offer_all([Slot(0), Slot(2)])
    draft.move(0, NO_SLOT)
    draft.move(1, NO_SLOT)

    assert not draft.assign_elsewhere(0, 0.0)
    assert draft.assign_elsewhere(1, 10.0)
    assert list(draft.owners) == [NO_SLOT, 2, 2]
    assert not draft.assign_elsewhere(0, 0.0)


def test_partitions_without_load_stay_at_home_if_it_is_open() -> None:
    target = Sticky()(Load(rates_of(0, 50, 0, 0), CAPACITY, owners_of(1, 1, 7)))

    assert target == owners_of(1, 1, 1, 1)


def test_partitions_without_load_alone_go_to_the_home_of_most() -> None:
    assert Sticky()(Load(rates_of(0, 0, 0), CAPACITY, owners_of(4, 2, 2))) == owners_of(2, 2, 2)
    assert Sticky()(Load(rates_of(0, 0), CAPACITY, {})) == owners_of(0, 0)
    assert Sticky()(Load(rates_of(150, 0, 0), CAPACITY, owners_of(0, 0, 0))) == owners_of(0, 1, 1)


def test_with_different_capacities_the_lowest_slot_that_carries_the_rate_is_opened() -> None:
    capacities = SlotCapacities(BytesPerSecond(50), {Slot(4): BytesPerSecond(100)})

    assert Sticky()(Load(rates_of(80), capacities, {})) == owners_of(4)
    assert Sticky()(Load(rates_of(120), capacities, {})) == owners_of(0)
    assert Sticky()(Load(rates_of(80, 80), capacities, {})) == owners_of(4, 0)


def test_no_partitions_need_no_consumers() -> None:
    assert Sticky()(Load({}, CAPACITY, owners_of(0, 1))) == {}


@pytest.mark.parametrize("price", [0, -1, inf, nan])
def test_an_invalid_price_is_rejected(price: float) -> None:
    with pytest.raises(PackingError, match="price must be finite and > 0"):
        Sticky(price)


@pytest.mark.parametrize("variance", [-1.0, inf, nan])
def test_an_invalid_variance_is_rejected(variance: float) -> None:
    with pytest.raises(PackingError, match="variance of rates must be finite"):
        Sticky()(Load(rates_of(1), CAPACITY, {}, variance=variance))


# --- the value of spare capacity ------------------------------------------------------------------


def test_the_cost_decreases_with_more_room() -> None:
    value = SpareValue.for_deviation(10.0, 100.0)
    costs = [value(spare) for spare in range(0, 60, 5)]

    assert value(0.0) == pytest.approx(10 * 0.39894 + 10 * 0.5, rel=1e-3)
    assert costs == sorted(costs, reverse=True)
    assert value(40.0) == 0
    assert value(value.ample_spare) <= 0.05 + 1e-9
    assert value.cost_of_taking(30.0, 20.0) == pytest.approx(value(10.0) - value(30.0))
    assert value.cost_of_taking(90.0, 20.0) == 0
