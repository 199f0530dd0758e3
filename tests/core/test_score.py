import pytest

from binwright.core.model import BytesPerSecond, Slot, TopicPartition
from binwright.core.score import moved, rscore

A, B, C = (TopicPartition("orders", number) for number in range(3))
RATES = {A: BytesPerSecond(30), B: BytesPerSecond(50), C: BytesPerSecond(70)}
CAPACITY = BytesPerSecond(100)


def test_only_what_had_an_owner_and_has_another_counts() -> None:
    """A stays, B moves, C starts for the first time."""
    current = {A: Slot(0), B: Slot(0)}
    target = {A: Slot(0), B: Slot(1), C: Slot(1)}

    assert list(moved(current, target)) == [B]
    assert rscore(RATES, CAPACITY, current, target) == pytest.approx(0.5)


def test_what_nobody_reads_any_more_has_not_moved() -> None:
    assert rscore({}, CAPACITY, {A: Slot(0)}, {}) == 0


def test_the_rates_of_now_count_in_units_of_capacity() -> None:
    """A consumer's worth of bytes moved is 1, whatever a consumer carries."""
    current, target = {A: Slot(0), C: Slot(0)}, {A: Slot(1), C: Slot(1)}

    assert rscore(RATES, CAPACITY, current, target) == pytest.approx(1)
    assert rscore(RATES, BytesPerSecond(200), current, target) == pytest.approx(0.5)
