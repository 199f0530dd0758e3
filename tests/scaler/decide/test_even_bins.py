"""Bins that are evened out by few moves."""

from hypothesis import given
from hypothesis import strategies as some

from binwright.protocol.model import Slot, TopicPartition
from binwright.scaler.decide.even_bins import even_out, imbalance

TWELVE = [TopicPartition("orders", number) for number in range(12)]


def owned(*slots: int) -> dict[TopicPartition, Slot]:
    return {p: Slot(slot) for p, slot in zip(TWELVE, slots, strict=False)}


def rated(*rates: float) -> dict[TopicPartition, float]:
    return dict(zip(TWELVE, rates, strict=False))


def numbers(bins: tuple[tuple[TopicPartition, ...], ...]) -> list[list[int]]:
    return [[p.partition for p in inside] for inside in bins]


def test_an_even_group_stays_as_it_is() -> None:
    bins = even_out(rated(5, 5, 5, 5), owned(1, 0, 1, 0), 2, 0.1)
    assert numbers(bins) == [[1, 3], [0, 2]]


def test_one_partition_moves_where_one_is_enough() -> None:
    bins = even_out(rated(6, 3, 3, 1, 1), owned(0, 0, 0, 1, 1), 2, 0.15)
    assert numbers(bins) == [[1, 2], [0, 3, 4]]


def test_two_partitions_are_exchanged_where_no_move_helps() -> None:
    bins = even_out(rated(10, 10, 6, 6), owned(0, 0, 1, 1), 2, 0.1)
    assert numbers(bins) == [[1, 2], [0, 3]]


def test_a_partition_that_exceeds_the_others_together_stays_alone() -> None:
    bins = even_out(rated(10, 1, 1), owned(0, 1, 1), 2, 0.1)
    assert numbers(bins) == [[0], [1, 2]]


def test_partitions_without_a_reader_go_to_the_least_loaded() -> None:
    bins = even_out(rated(4, 3, 2, 2), owned(0), 2, 0.1)
    assert numbers(bins) == [[0, 3], [1, 2]]


def test_a_reader_that_is_gone_counts_as_none() -> None:
    bins = even_out(rated(4, 4), owned(5, 0), 2, 0.1)
    assert numbers(bins) == [[1], [0]]


def test_partitions_without_load_are_dealt_by_number() -> None:
    assert numbers(even_out(rated(0, 0, 0, 0), {}, 2, 0.1)) == [[0, 2], [1, 3]]


def test_a_new_member_takes_fewer_partitions_than_their_number_would_give_it() -> None:
    """Four hot partitions of twelve: two of them are a third of the load; by count it were four."""
    current = owned(*(n % 2 for n in range(12)))
    bins = even_out(rated(9, 9, 9, 9, *([1] * 8)), current, 3, 0.15)
    moved = len(bins[2]) + sum(current[p] != n for n in (0, 1) for p in bins[n])
    assert moved < 12 / 3
    assert imbalance(bins, rated(9, 9, 9, 9, *([1] * 8))) <= 1.36


@given(some.lists(some.floats(0, 100), min_size=1, max_size=12), some.integers(1, 5))
def test_every_partition_is_in_one_bin(rates: list[float], members: int) -> None:
    bins = even_out(rated(*rates), owned(*([0] * 12)), members, 0.1)
    assert sorted(p for inside in bins for p in inside) == TWELVE[: len(rates)]
    assert len(bins) == members


@given(some.lists(some.floats(0, 100), min_size=1, max_size=12), some.integers(1, 5))
def test_no_step_makes_a_group_less_even(rates: list[float], members: int) -> None:
    before = [tuple(TWELVE[: len(rates)]), *([()] * (members - 1))]
    after = even_out(rated(*rates), owned(*([0] * 12)), members, 0.1)
    assert imbalance(after, rated(*rates)) <= imbalance(before, rated(*rates)) + 1e-9


def test_a_group_without_load_is_even() -> None:
    assert imbalance([(TWELVE[0],), ()], {}) == 1.0
