from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.packing.packings import fewest_consumers

from binwright.packing.score import (
    cardinal_bin_score,
    expected_rscore,
    fewest_of,
    moved_partitions,
    pareto_front,
    rscore,
)
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

A, B, C = (TopicPartition("orders", number) for number in range(3))
RATES = {A: BytesPerSecond(30), B: BytesPerSecond(50), C: BytesPerSecond(70)}
CAPACITY = BytesPerSecond(100)


def test_only_a_change_of_owner_is_a_move() -> None:
    """A stays, B moves, C starts for the first time."""
    current = {A: Slot(0), B: Slot(0)}
    target = {A: Slot(0), B: Slot(1), C: Slot(1)}

    assert list(moved_partitions(current, target)) == [B]
    assert rscore(RATES, CAPACITY, current, target) == pytest.approx(0.5)


def test_a_partition_without_a_new_owner_has_not_moved() -> None:
    assert rscore({}, CAPACITY, {A: Slot(0)}, {}) == 0


def test_the_rscore_is_in_units_of_capacity() -> None:
    """The unit is a consumer's capacity, whatever the load."""
    current, target = {A: Slot(0), C: Slot(0)}, {A: Slot(1), C: Slot(1)}

    assert rscore(RATES, CAPACITY, current, target) == pytest.approx(1)
    assert rscore(RATES, BytesPerSecond(200), current, target) == pytest.approx(0.5)


def test_expected_rscore_is_a_mean_over_every_decision() -> None:
    assert expected_rscore([0.0, 1.0, 2.0]) == pytest.approx(1)


def test_cbs_compares_each_decision_with_the_best_algorithm() -> None:
    """11 instead of 10 is a tenth too many, 12 instead of 12 is none too many."""
    fewest = fewest_of([[10, 13], [11, 12]])

    assert fewest == [10, 12]
    assert cardinal_bin_score([11, 12], fewest) == pytest.approx(0.05)


def test_means_need_decisions_of_equal_number() -> None:
    with pytest.raises(ValueError, match="at least one"):
        expected_rscore([])
    with pytest.raises(ValueError, match="at least one"):
        cardinal_bin_score([], [])
    with pytest.raises(ValueError, match="argument 2"):
        cardinal_bin_score([1], [1, 2])


@pytest.mark.parametrize(
    ("shares", "least"),
    [
        ([], 0),
        ([0.0], 1),
        ([0.5, 0.5], 1),
        ([0.6, 0.6, 0.6], 3),  # the sum alone gives 2
        ([0.4, 0.4, 0.4, 0.6, 0.6], 3),
        ([0.3, 0.3, 0.9, 0.9], 3),
        ([0.45, 0.45, 0.45, 0.7, 0.7], 4),  # nothing fits beside the large ones
        ([2.5, 0.1], 2),
        ([0.1] * 10, 1),
    ],
)
def test_l2_counts_partitions_that_cannot_share_a_consumer(shares: list[float], least: int) -> None:
    rates = {TopicPartition("t", n): BytesPerSecond(100 * s) for n, s in enumerate(shares)}

    assert fewest_consumers(rates, CAPACITY) == least


@given(st.lists(st.integers(0, 120), max_size=7))
def test_l2_is_at_least_the_sum_and_never_above_the_optimum(numbers: list[int]) -> None:
    rates = {TopicPartition("t", n): BytesPerSecond(rate) for n, rate in enumerate(numbers)}
    least = fewest_consumers(rates, CAPACITY)

    assert ceil(sum(min(rate, 100) for rate in numbers) / 100) <= least <= optimum(numbers)


@given(st.lists(st.integers(0, 120), max_size=60))
def test_l2_is_the_best_of_all_thresholds(numbers: list[int]) -> None:
    rates = {TopicPartition("t", n): BytesPerSecond(rate) for n, rate in enumerate(numbers)}
    thresholds = {0} | {rate for rate in numbers if rate <= 50}

    assert fewest_consumers(rates, CAPACITY) == max(
        [with_threshold(numbers, least) for least in thresholds] + [1 if numbers else 0]
    )


def with_threshold(numbers: list[int], least: int) -> int:
    """Those above half a capacity, and what is left of the small ones beside them."""
    large = [rate for rate in numbers if rate > 50]
    small = sum(rate for rate in numbers if least <= rate <= 50)
    room = sum(100 - rate for rate in large if rate <= 100 - least)
    return len(large) + max(0, ceil((small - room) / 100))


def optimum(numbers: list[int]) -> int:
    """Every way to fill consumers, partition by partition."""
    best = len(numbers)

    def fill(left: list[int], loads: list[int]) -> None:
        nonlocal best
        if len(loads) >= best and left:
            return
        if not left:
            best = min(best, len(loads))
            return
        for index, load in enumerate(loads):
            if load + left[0] <= 100:
                fill(left[1:], [*loads[:index], load + left[0], *loads[index + 1 :]])
        fill(left[1:], [*loads, left[0]])

    fill(sorted(numbers, reverse=True), [])
    return best


def test_the_front_holds_the_points_that_are_not_dominated() -> None:
    points = {
        "cost-saving": (0.0, 25.0),
        "stable": (0.1, 1.0),
        "beaten": (0.1, 2.0),
        "between": (0.05, 5.0),
        "twin": (0.05, 5.0),
        "worse": (0.06, 5.0),
    }
    assert pareto_front(points) == ["cost-saving", "between", "twin", "stable"]
