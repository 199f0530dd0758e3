"""Least-Loaded: few bins, evenly filled, by rate and by lag; and who gets which."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.scaler.decide.groups import PARTITIONS

from binwright.protocol.model import Slot, TopicPartition
from binwright.scaler.decide.least_loaded import (
    Bins,
    assign,
    clip,
    exceeds,
    least_loaded,
    least_loaded_below,
    owned,
)
from binwright.scaler.decide.policy import Bin, Loads, PartitionLoad

CAPACITY = Bin(180, 90)


def loads(*pairs: tuple[float, float]) -> dict[TopicPartition, PartitionLoad]:
    return {p: PartitionLoad(*pair) for p, pair in zip(PARTITIONS, pairs, strict=False)}


def sizes(bins: Bins) -> list[int]:
    return sorted(map(len, bins), reverse=True)


def test_rate_alone_is_spread_evenly() -> None:
    bins = least_loaded(loads(*[(60, 0)] * 5), CAPACITY)

    assert sizes(bins) == [3, 2]


def test_lag_alone_can_need_another_bin() -> None:
    assert sizes(least_loaded(loads(*[(10, 40)] * 5), CAPACITY)) == [2, 2, 1]


def test_an_exact_fit_fits() -> None:
    assert len(least_loaded(loads(*[(0.1 * 180, 9)] * 10), CAPACITY)) == 1


def test_a_partition_above_capacity_fills_one_bin_alone() -> None:
    assert sizes(least_loaded(loads((900, 0), (1, 0)), CAPACITY)) == [1, 1]
    assert sizes(least_loaded(loads((1, 900), (1, 1)), CAPACITY)) == [1, 1]
    assert clip(PartitionLoad(900, 900), CAPACITY) == PartitionLoad(180, 90)


def test_a_bin_without_room_for_the_lag_is_passed_over() -> None:
    """The third goes beside the first: the second has more rate left, but no room for its lag."""
    bins = least_loaded(loads((100, 0), (90, 80), (50, 50)), CAPACITY)

    assert set(bins) == {(PARTITIONS[0], PARTITIONS[2]), (PARTITIONS[1],)}


def test_a_second_bin_is_tried_when_rate_and_lag_do_not_fit_together() -> None:
    """Two bins suffice by either bound: the third finds lag where no rate is, and vice versa."""
    items = loads((120, 0), (110, 80), (80, 50))

    assert sizes(least_loaded(items, CAPACITY)) == [1, 1, 1]


def test_at_least_so_many_bins_are_used_as_are_wanted() -> None:
    assert sizes(least_loaded(loads((0, 0), (0, 0), (0, 0)), CAPACITY, 2)) == [2, 1]
    assert sizes(least_loaded(loads((1, 0), (1, 0)), CAPACITY, 9)) == [1, 1]


def test_an_overfull_bin_exceeds_its_capacity_by_rate_or_by_lag() -> None:
    items = loads((90, 45), (90, 45), (1, 0), (0, 1))
    both = PARTITIONS[:2]

    assert not exceeds([both, PARTITIONS[2:4]], items, CAPACITY)
    assert exceeds([[*both, PARTITIONS[2]]], items, CAPACITY)
    assert exceeds([[*both, PARTITIONS[3]]], items, CAPACITY)


def test_what_is_above_capacity_alone_does_not_exceed_it() -> None:
    """No other assignment would help."""
    assert not exceeds([PARTITIONS[:1]], loads((900, 900)), CAPACITY)


QUARTERS = 0.25
LOADS = st.lists(
    st.tuples(
        st.integers(0, 1_200).map(lambda n: n * QUARTERS),
        st.integers(0, 600).map(lambda n: n * QUARTERS),
    ),
    min_size=1,
    max_size=len(PARTITIONS),
)
"""Sums of these are exact, so that the two ways to add them fit the same bins."""


@given(LOADS, st.integers(1, 6))
def test_every_partition_is_in_one_bin_that_holds_it(
    pairs: list[tuple[float, float]], fewest: int
) -> None:
    items = loads(*pairs)
    bins = least_loaded(items, CAPACITY, fewest)

    assert sorted(p for inside in bins for p in inside) == sorted(items)
    assert min(fewest, len(items)) <= len(bins) <= len(items)
    assert all(bins)
    assert not exceeds(bins, items, CAPACITY)


@given(LOADS)
def test_the_bins_are_those_of_trying_one_more_at_a_time(pairs: list[tuple[float, float]]) -> None:
    """The lower bound skips only tries that must fail."""
    items = loads(*pairs)

    assert len(least_loaded(items, CAPACITY)) == _naive(items)


@given(LOADS, st.integers(1, len(PARTITIONS) + 1), st.integers(1, 3))
def test_bins_below_a_number_are_the_same_bins_or_none(
    pairs: list[tuple[float, float]], replicas: int, fewest: int
) -> None:
    items = loads(*pairs)
    bins = least_loaded(items, CAPACITY, fewest)

    found = least_loaded_below(replicas, items, CAPACITY, fewest)
    assert found == (bins if len(bins) < replicas else None)


def _naive(items: Loads) -> int:
    """Return how many bins the algorithm needs as it is published: all bins sorted before each."""
    order = sorted(items, key=lambda p: (-min(items[p].rate, CAPACITY.rate), p))
    for number in count(1):
        room = [[CAPACITY.rate, 0, at, CAPACITY.lag] for at in range(number)]
        for partition in order:
            load = clip(items[partition], CAPACITY)
            room.sort(key=lambda one: (-one[0], one[1], one[2]))
            fits = [one for one in room if one[0] >= load.rate and one[3] >= load.lag]
            if not fits:
                break
            fits[0][0] -= load.rate
            fits[0][1] += 1
            fits[0][3] -= load.lag
        else:
            return number
    raise AssertionError


@pytest.mark.parametrize("number", [1, 7, 40])
def test_the_same_loads_give_the_same_bins(number: int) -> None:
    items = loads(*[(n % 3 * 40, n % 4 * 20) for n in range(number)])

    assert least_loaded(items, CAPACITY) == least_loaded(dict(reversed(items.items())), CAPACITY)


@pytest.mark.parametrize("number", [30, 35, 40])
def test_far_above_the_bound_the_last_bin_is_still_needed(number: int) -> None:
    """Small partitions with a full lag are packed last and each needs an empty bin by then."""
    items = loads(*[(60.0, 1.0)] * (number - 12), *[(1.0, 90.0)] * 12)

    assert len(least_loaded(items, CAPACITY)) == _naive(items) > 20


A, B, C, D, E = PARTITIONS[:5]


def test_a_bin_goes_to_the_replica_that_keeps_most_of_it() -> None:
    current = {A: Slot(0), B: Slot(1), C: Slot(1), D: Slot(0), E: Slot(1)}

    assert assign(((B, C, E), (A, D)), current) == {
        B: Slot(1),
        C: Slot(1),
        E: Slot(1),
        A: Slot(0),
        D: Slot(0),
    }


def test_new_replicas_get_what_is_left() -> None:
    """Both bins hold partitions of slot 0; the larger stays."""
    current = dict.fromkeys((A, B, C), Slot(0))

    assert assign(((A,), (B, C)), current) == {A: Slot(1), B: Slot(0), C: Slot(0)}


def test_replicas_that_are_to_go_keep_nothing() -> None:
    assert assign(((A, B),), {A: Slot(3), B: Slot(3)}) == {A: Slot(0), B: Slot(0)}


def test_an_empty_bin_leaves_a_replica_empty() -> None:
    assert assign(((A,), ()), {A: Slot(1)}) == {A: Slot(1)}


def test_partitions_are_listed_by_owner() -> None:
    assert list(owned({C: Slot(2), A: Slot(2), B: Slot(0)})) == [[B], [A, C]]


@given(st.lists(st.integers(0, 5), min_size=5, max_size=40), st.integers(1, 6))
def test_each_bin_has_a_slot_of_its_own(owners: list[int], number: int) -> None:
    current = {p: Slot(slot) for p, slot in zip(PARTITIONS, owners, strict=False)}
    bins = tuple(tuple(sorted(current)[at::number]) for at in range(number))
    slots = [{assign(bins, current)[p] for p in inside} for inside in bins if inside]

    assert all(len(one) == 1 for one in slots)
    assert len(set().union(*slots)) == len(slots)
    assert max(set().union(*slots)) < number
