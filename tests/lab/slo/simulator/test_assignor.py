"""Who reads what: Kafka's assignors count partitions, a plan names them."""

from binwright.lab.slo.simulator.assignor import GroupAssignor, partition
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
