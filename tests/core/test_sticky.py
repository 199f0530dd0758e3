"""Our own packing: what must hold whatever comes, and single rules one by one."""

from collections.abc import Mapping
from math import inf, nan
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.packings import loads, owners_of, p, rates_of

from binwright.core.errors import PackingError
from binwright.core.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition
from binwright.core.packing.capacity import PerSlot
from binwright.core.packing.sticky.board import NOWHERE, Board, Costs
from binwright.core.packing.sticky.chain import place
from binwright.core.packing.sticky.close import save
from binwright.core.packing.sticky.evict import cheapest
from binwright.core.packing.sticky.policy import Sticky
from binwright.core.packing.sticky.repack import Effort, widen
from binwright.core.packing.sticky.tidy import tidy
from binwright.core.packing.sticky.value import Value
from binwright.core.score import lower_bound

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


def feasible(rates: Rates, capacities: PerSlot, target: Assignment) -> bool:
    return all(
        load <= capacities.of(slot) * (1 + 1e-9) or list(target.values()).count(slot) == 1
        for slot, load in loads(rates, target).items()
    )


# --- whatever comes ----------------------------------------------------------------------------


@settings(max_examples=300)
@given(PRICES, CHANGES, RATES, OWNERS, NAMED)
def test_every_partition_has_an_owner_and_no_owner_too_much(
    price: float,
    change: float | None,
    rates: Rates,
    current: Assignment,
    named: Mapping[Slot, BytesPerSecond],
) -> None:
    capacities = PerSlot(CAPACITY, named)
    target = Sticky(price)(rates, capacities, current, change=change)

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

    one = Sticky(price)(rates, CAPACITY, current)
    other = Sticky(price)(dict(shuffled), CAPACITY, dict(owners))

    assert list(one.items()) == list(other.items())


@given(RATES)
def test_who_has_room_keeps_everything_while_no_consumer_can_be_saved(rates: Rates) -> None:
    """As many as the lower bound, none too full: nothing must move, and nothing pays."""
    current = Sticky()(rates, CAPACITY, {})
    if len(loads(rates, current)) == lower_bound(rates, CAPACITY):
        assert Sticky()(rates, CAPACITY, current) == current


@given(RATES, OWNERS)
def test_partitions_that_have_left_are_ignored(rates: Rates, current: Assignment) -> None:
    known = {q: slot for q, slot in current.items() if q in rates}

    assert Sticky()(rates, CAPACITY, current) == Sticky()(rates, CAPACITY, known)


@pytest.mark.parametrize("delta", [2, 25])
@pytest.mark.parametrize("price", [0.4, 2.0, 100.0])
def test_through_arrivals_departures_and_changes_of_capacity(delta: int, price: float) -> None:
    random = Random(delta)
    rates, current = (
        rates_of(*[random.uniform(0, 100) for _ in range(60)]),
        dict[TopicPartition, Slot](),
    )
    for step in range(40):
        capacities = PerSlot(BytesPerSecond(100 + 10 * (step // 10)), {Slot(3): BytesPerSecond(60)})
        rates = {
            q: BytesPerSecond(min(120.0, max(0.0, rate + random.uniform(-delta, delta))))
            for q, rate in rates.items()
            if random.random() > 0.03
        }
        rates |= {p(1_000 + step): BytesPerSecond(random.uniform(0, 130))}
        current = Sticky(price)(rates, capacities, current, change=delta**2 / 3)
        assert feasible(rates, capacities, current)


# --- single rules ------------------------------------------------------------------------------


def test_the_cheapest_that_make_room_leave() -> None:
    """5 too much: 10 goes, and 60 and 35 stay; a fit exactly as large as the room is one."""
    rates, current = rates_of(60, 35, 10, 50, 40), owners_of(0, 0, 0, 1, 1)

    assert Sticky()(rates, CAPACITY, current, change=STILL) == owners_of(0, 0, 1, 1, 1)


def test_two_small_ones_leave_rather_than_a_large_one() -> None:
    value = Value.of(1e-3, 100.0)

    assert cheapest([60.0, 30.0, 20.0, 15.0], 34.0, 100.0, value) == (2, 3)
    assert cheapest([60.0, 35.0, 20.0, 15.0], 35.0, 100.0, value) == (1,)


@pytest.mark.parametrize("deviation", [1e-3, 10.0, 40.0])
def test_of_those_that_are_each_enough_the_cheapest_leaves(deviation: float) -> None:
    value, rates = Value.of(deviation, 100.0), [70.0, 52.0, 40.0, 36.0, 3.0]
    costs = [rate + value(rate - 35.0) for rate in rates[:4]]

    assert cheapest(rates, 35.0, 100.0, value) == (costs.index(min(costs)),)


def test_a_smaller_one_makes_room_and_goes_elsewhere() -> None:
    """Nobody has room for 45; consumer 1 has if its 30 leaves, and 2 has room for that."""
    rates = rates_of(60, 45, 50, 30, 65)
    target = Sticky()(rates, CAPACITY, owners_of(0, 0, 1, 1, 2), change=STILL)

    assert target == owners_of(0, 1, 1, 2, 2)


def test_a_consumer_is_opened_when_that_is_cheaper_than_a_chain() -> None:
    rates = rates_of(60, 45, 50, 30, 65)
    target = Sticky(0.2)(rates, CAPACITY, owners_of(0, 0, 1, 1, 2), change=STILL)

    assert len(set(target.values())) == 4


def test_room_is_kept_where_rates_change() -> None:
    """10 fits beside 85 exactly enough, and beside 40 with room to spare."""
    rates = rates_of(85, 40, 10)

    assert Sticky()(rates, CAPACITY, owners_of(0, 1), change=STILL)[p(2)] == 0
    assert Sticky()(rates, CAPACITY, owners_of(0, 1), change=25.0)[p(2)] == 1


def test_a_consumer_is_saved_when_that_pays() -> None:
    rates, current = rates_of(60, 30, 50), owners_of(0, 1, 2)

    assert Sticky(0.2)(rates, CAPACITY, current, change=STILL) == current
    assert Sticky(0.4)(rates, CAPACITY, current, change=STILL) == owners_of(0, 0, 2)


def test_all_are_packed_anew_when_no_single_one_can_be_emptied() -> None:
    """Each carries 66: nobody has room for what another gives up, all together have."""
    rates, current = rates_of(34, 32, 34, 32, 34, 32), owners_of(0, 0, 1, 1, 2, 2)
    target = Sticky(10.0)(rates, CAPACITY, current, change=STILL)

    assert len(set(target.values())) == 2


def test_a_consumer_that_its_last_partition_left_for_home_is_closed() -> None:
    costs = Costs(200.0, Value.of(0.1, 100.0))
    board = Board([60.0, 30.0], [Slot(0), Slot(0)], PerSlot(CAPACITY), costs)
    board.offer_all([Slot(0)])
    board.shift(1, NOWHERE)
    board.open(1)
    assert list(board.at) == [0, 1]

    tidy(board)

    assert list(board.at) == [0, 0]
    assert board.offered == {0}


def test_what_is_packed_anew_in_one_decision_is_limited() -> None:
    effort = Effort(5)

    assert effort.spend(3)
    assert not effort.spend(3)
    assert effort.spend(2)


@pytest.mark.parametrize(("left", "found"), [(0, False), (100, True)])
def test_a_consumer_is_packed_away_only_while_the_effort_lasts(left: int, *, found: bool) -> None:
    slots = [Slot(n) for n in range(6)]
    costs = Costs(200.0, Value.of(0.1, 100.0))
    board = Board([20.0] * len(slots), slots, PerSlot(CAPACITY), costs)
    board.offer_all(slots)

    assert (widen(board, slots[0], Effort(left)) is not None) == found


def test_where_the_last_consumer_cannot_be_emptied_everybody_stays() -> None:
    slots = [Slot(0)]
    board = Board([60.0], slots, PerSlot(CAPACITY), Costs(200.0, Value.of(0.1, 100.0)))
    board.offer_all(slots)

    assert save(board, 1) == 0
    assert list(board.at) == slots


@pytest.mark.parametrize(("budget", "found"), [(0.0, None), (19.0, None), (21.0, 20.0)])
def test_nothing_is_done_that_costs_as_much_as_it_may(budget: float, found: float | None) -> None:
    costs = Costs(200.0, Value.of(0.1, 100.0))
    board = Board([20.0, 30.0], [Slot(0), Slot(1)], PerSlot(CAPACITY), costs)
    board.offer_all([Slot(1)])

    assert place(board, 0, budget) == found
    assert list(board.at) == ([0, 1] if found is None else [1, 1])


def test_who_can_stay_at_home_goes_nowhere_else() -> None:
    costs = Costs(200.0, Value.of(0.1, 100.0))
    board = Board([20.0, 30.0, 50.0], [Slot(0), Slot(1), Slot(2)], PerSlot(CAPACITY), costs)
    board.offer_all([Slot(0), Slot(2)])
    board.shift(0, NOWHERE)
    board.shift(1, NOWHERE)

    assert not board.settle(0, 0.0)
    assert board.settle(1, 10.0)
    assert list(board.at) == [NOWHERE, 2, 2]
    assert not board.settle(0, 0.0)


def test_partitions_without_load_cost_nothing_and_stay_where_anybody_is() -> None:
    target = Sticky()(rates_of(0, 50, 0, 0), CAPACITY, owners_of(1, 1, 7))

    assert target == owners_of(1, 1, 1, 1)


def test_partitions_without_load_among_themselves_stay_with_most() -> None:
    assert Sticky()(rates_of(0, 0, 0), CAPACITY, owners_of(4, 2, 2)) == owners_of(2, 2, 2)
    assert Sticky()(rates_of(0, 0), CAPACITY, {}) == owners_of(0, 0)
    assert Sticky()(rates_of(150, 0, 0), CAPACITY, owners_of(0, 0, 0)) == owners_of(0, 1, 1)


def test_of_capacities_that_differ_the_lowest_that_carries_it_is_opened() -> None:
    capacities = PerSlot(BytesPerSecond(50), {Slot(4): BytesPerSecond(100)})

    assert Sticky()(rates_of(80), capacities, {}) == owners_of(4)
    assert Sticky()(rates_of(120), capacities, {}) == owners_of(0)
    assert Sticky()(rates_of(80, 80), capacities, {}) == owners_of(4, 0)


def test_nothing_needs_nobody() -> None:
    assert Sticky()({}, CAPACITY, owners_of(0, 1)) == {}


@pytest.mark.parametrize("price", [0, -1, inf, nan])
def test_a_price_that_is_none_is_refused(price: float) -> None:
    with pytest.raises(PackingError, match="price must be finite and > 0"):
        Sticky(price)


@pytest.mark.parametrize("change", [-1.0, inf, nan])
def test_a_change_that_is_none_is_refused(change: float) -> None:
    with pytest.raises(PackingError, match="squared change must be finite"):
        Sticky()(rates_of(1), CAPACITY, {}, change=change)


# --- what room is worth ------------------------------------------------------------------------


def test_room_is_worth_less_the_more_there_is() -> None:
    value = Value.of(10.0, 100.0)
    costs = [value(room) for room in range(0, 60, 5)]

    assert value(0.0) == pytest.approx(10 * 0.39894 + 10 * 0.5, rel=1e-3)
    assert costs == sorted(costs, reverse=True)
    assert value(40.0) == 0
    assert value(value.enough) <= 0.05 + 1e-9
    assert value.taking(30.0, 20.0) == pytest.approx(value(10.0) - value(30.0))
    assert value.taking(90.0, 20.0) == 0
