"""Partitions are added to an assignment where the load is least."""

from binwright.packing.spread import spread
from binwright.protocol.model import BytesPerSecond, Slot, TopicPartition

P, Q, R = (TopicPartition("orders", number) for number in range(3))
A, B = Slot(0), Slot(1)


def rates(*values: float) -> dict[TopicPartition, BytesPerSecond]:
    return {p: BytesPerSecond(rate) for p, rate in zip((P, Q, R), values, strict=False)}


def test_the_largest_goes_first_and_to_the_least_loaded() -> None:
    assert spread(rates(10, 20, 30), {}, [P, Q, R], [A, B]) == {R: A, Q: B, P: B}


def test_what_is_assigned_stays_and_counts() -> None:
    assert spread(rates(30, 20, 20), {P: A}, [Q, R], [A, B]) == {P: A, Q: B, R: B}


def test_without_rates_partitions_are_counted() -> None:
    assert spread({}, {P: A}, [Q, R], [B, A]) == {P: A, Q: B, R: A}


def test_a_slot_that_may_not_be_chosen_keeps_what_it_has_and_gets_nothing() -> None:
    assert spread(rates(1, 9, 9), {P: A}, [Q, R], [B]) == {P: A, Q: B, R: B}


def test_nothing_to_add_needs_no_slot() -> None:
    assert spread({}, {P: A}, [], []) == {P: A}
