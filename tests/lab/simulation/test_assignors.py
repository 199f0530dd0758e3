"""Who reads what: Kafka's assignors count partitions, a plan names them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from binwright.lab.simulation.assignors import GroupAssignor, partition, sticky_assignment
from binwright.protocol.model import Slot


def test_range_gives_neighbours_to_the_same_member() -> None:
    assert GroupAssignor("range", 5)(2) == [[0, 1, 2], [3, 4]]
    assert GroupAssignor("range", 2)(3) == [[0], [1], []]


def test_round_robin_deals_in_turns() -> None:
    assert GroupAssignor("round-robin", 5)(2) == [[0, 2, 4], [1, 3]]


def test_a_plan_is_followed() -> None:
    assignor = GroupAssignor("range", 3)
    assignor.plan = {partition(0): Slot(1), partition(1): Slot(0), partition(2): Slot(1)}

    assert assignor(2) == [[1], [0, 2]]
    assert assignor(3) == [[1], [0, 2], []]


def test_what_planned_replicas_that_are_not_there_yet_would_read_goes_to_the_least_loaded() -> None:
    assignor = GroupAssignor("range", 4)
    assignor.rates = (1, 5, 4, 3)
    assignor.plan = {partition(number): Slot(number) for number in range(4)}

    assert assignor(2) == [[0, 2, 3], [1]]


@given(
    owners=st.dictionaries(st.integers(0, 9), st.integers(0, 6).map(Slot)),
    consumers=st.integers(1, 12),
)
def test_an_assignor_gives_each_consumer_as_many_partitions_or_one_more(
    owners: dict[int, Slot], consumers: int
) -> None:
    """And moves no more than that takes: who has too few keeps all."""
    slots = [Slot(number) for number in range(consumers)]
    found = sticky_assignment(owners, 10, slots)

    count = Counter(dict.fromkeys(slots, 0)) + Counter(found.values())
    sizes = [count[slot] for slot in slots]
    assert list(found) == list(range(10))
    assert max(sizes) - min(sizes) <= 1
    before = Counter(slot for slot in owners.values() if slot in slots)
    kept = sum(found[index] == slot for index, slot in owners.items())
    assert kept >= sum(min(number, 10 // consumers) for number in before.values())


def test_a_group_that_is_steered_keeps_its_assignment() -> None:
    owners = {0: Slot(0), 1: Slot(0), 2: Slot(0), 3: Slot(2)}

    kept = {0: Slot(0), 1: Slot(0), 2: Slot(0)}
    found = sticky_assignment(owners, 5, [Slot(0), Slot(1)], most=5)
    assert found == {**kept, 3: Slot(1), 4: Slot(1)}
