"""Bins go to the replicas that have most of them already."""

from hypothesis import given
from hypothesis import strategies as st
from tests.scaler.decide.policies.groups import PARTITIONS

from binwright.protocol.model import Slot
from binwright.scaler.decide.policies.owners import assign, owned

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
