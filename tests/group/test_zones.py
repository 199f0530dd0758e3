"""Zones in the controller: what it knows of them, and which plans they pay for."""

from dataclasses import replace

import pytest
from immutables import Map
from tests.builders import CONFIG, alive, dead, group, measurement, owned
from tests.controller.decide.driver import A, ControllerDriver
from tests.packing.packings import owners_of, p, rates_of

from binwright.group.budgets import affordable
from binwright.group.fold import Measured, fold_measurement
from binwright.group.group import Group
from binwright.group.load import MeasuredLoad
from binwright.group.plans import Plan, Rejected, evaluate, packing_request, plan
from binwright.group.zones import near_moves, zones
from binwright.packing.catalogue import algorithm
from binwright.packing.zones import NO_ZONES
from binwright.protocol.metadata import Report
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import Assignment, BytesPerSecond, Slot

PRICED = CONFIG.with_settings(zone_price=2.0)


def measured(number: int, count: int, **zones: tuple[int, ...]) -> Measurement:
    """Return a part of a measurement of `count` partitions: those from `number` on, two of them."""
    parts = [
        PartitionRate(n, BytesPerSecond(1.0), 30, 0, 0, None)
        for n in range(number, min(number + 2, count))
    ]
    return measurement("orders", parts, count=count, zones=zones)


def in_zones(
    rates: tuple[float, ...],
    current: tuple[int | None, ...],
    near: str,
    slots: str,
    price: float = 2.0,
) -> Group:
    """Return a group whose partitions and slots have these zones, a letter each."""
    owners = {q: owned(slot, 1 + slot) for q, slot in owners_of(*current).items()}
    members = {Slot(n): alive(1 + n, zone=zone) for n, zone in enumerate(slots)}
    known = Map({"orders": {n: frozenset(zone) for n, zone in enumerate(near)}})
    config = PRICED.with_settings(zone_price=price)
    return group(members, owners, rates=rates_of(*rates), config=config, readable_in=known)


def evaluated(found: Group, *target: int) -> Plan | Rejected:
    return evaluate(found, owners_of(*target), ())


# --- what is known -----------------------------------------------------------------------------


def test_zones_of_partitions_are_those_of_the_last_measurement() -> None:
    found = MeasuredLoad().with_zones(measured(0, 4, a=(0, 1), b=(1,)))
    found = found.with_zones(measured(2, 4, b=(2,)))
    assert dict(found.readable_in["orders"]) == {
        0: frozenset("a"), 1: frozenset("ab"), 2: frozenset("b"), 3: frozenset(),
    }  # fmt: skip
    assert found.with_zones(measured(0, 4, a=(0, 1), b=(1,))) is found
    found = found.with_zones(measured(0, 4))
    assert dict(found.readable_in["orders"])[0] == frozenset()
    assert dict(found.readable_in["orders"])[2] == frozenset("b")


def test_zones_are_kept_if_they_have_a_price() -> None:
    near = measured(0, 2, a=(0,))
    for config, names in ((CONFIG, []), (PRICED, ["orders"])):
        after, _ = fold_measurement(group({}, config=config), Measured(0.0, near))
        assert list(after.load.readable_in) == names
    assert MeasuredLoad().with_zones(measured(0, 2)) == MeasuredLoad()


def test_zones_of_consumers_are_those_of_living_ones() -> None:
    members = {Slot(0): alive(1, zone="a"), Slot(1): alive(2), Slot(2): replace(dead(), zone="b")}
    known = zones(group(members, config=PRICED))
    assert known.of_slot == {0: "a"}
    assert known.price == 2.0
    assert zones(group(members)) is NO_ZONES


def test_a_consumer_reports_its_zone_and_the_packing_gets_it() -> None:
    controller = ControllerDriver(PRICED)
    controller.tick()
    epoch = controller.hello(A)
    report = Report(slot=A, epoch=epoch, term=0, ready=True, reading={}, writing={}, zone="a")
    controller.read(report)
    assert controller.group.members.get(A).zone == "a"

    found = in_zones((10, 10), (0, 0), "ab", "ab")
    request = packing_request(found)
    assert request.load.zones.of_partition == {p(0): frozenset("a"), p(1): frozenset("b")}
    assert request.load.zones.of_slot == {0: "a", 1: "b"}
    assert packing_request(group({})).load.zones is NO_ZONES


def test_moves_that_bring_a_partition_near_are_known() -> None:
    found = in_zones((10, 10, 10), (0, 0, 1), "aba", "ab")
    moves = {p(0): (Slot(0), Slot(1)), p(1): (Slot(0), Slot(1)), p(2): (Slot(1), Slot(1))}
    assert near_moves(zones(found), moves) == [p(1)]


# --- which plans they pay for --------------------------------------------------------------------


def test_bytes_that_no_longer_cross_zones_pay_for_moves() -> None:
    found = in_zones((60, 30, 50), (0, 0, 1), "abb", "ab")
    accepted = evaluated(found, 0, 1, 1)
    assert isinstance(accepted, Plan)
    (reason,) = accepted.reasons
    assert reason == (
        "2 consumers; moves 1 of 3 partitions, 21.4% of the bytes; 0.0% of the bytes cross zones, "
        "21.4% before"
    )


@pytest.mark.parametrize("price", [0.0, 0.9])
def test_at_a_low_price_they_do_not(price: float) -> None:
    found = in_zones((60, 30, 50), (0, 0, 1), "abb", "ab", price)
    rejected = evaluated(found, 0, 1, 1)
    assert isinstance(rejected, Rejected)
    paid = "" if not price else ", and bytes that no longer cross zones pay for 19.3% at most"
    assert rejected.reason.endswith(f"; saves no consumer{paid}")


def test_a_plan_after_which_as_much_crosses_gains_nothing() -> None:
    """One comes near, and another one of the same rate no longer is."""
    found = in_zones((30, 30), (0, 1), "ba", "ab", price=9.0)
    assert isinstance(evaluated(found, 1, 0), Plan)
    found = in_zones((30, 30), (0, 1), "bb", "ab", price=9.0)
    assert isinstance(evaluated(found, 1, 0), Rejected)


def test_zones_pay_for_no_further_consumer() -> None:
    found = in_zones((30, 30), (0, 0), "ab", "ab", price=9.0)
    assert isinstance(evaluated(found, 0, 1), Rejected)


def test_a_plan_that_saves_a_consumer_may_move_more_for_zones() -> None:
    """Half of the consumers pays for all bytes: what comes near is paid besides."""
    rates = (10.0, 40.0, 30.0, 20.0)
    free = evaluated(in_zones(rates, (0, 1, 2, 3), "aaab", "aaaa", 0.0), 2, 1, 2, 1)
    assert isinstance(free, Plan)
    found = in_zones(rates, (0, 1, 2, 2), "abab", "abba", price=1.5)
    assert isinstance(evaluated(found, 1, 1, 1, 1), Plan)
    crossing = evaluated(in_zones(rates, (0, 1, 2, 2), "abab", "abba", price=0.0), 1, 1, 1, 1)
    assert isinstance(crossing, Plan)


def test_what_a_packing_gains_by_zones_is_carried_out_and_then_it_rests() -> None:
    found = in_zones((60, 30, 50, 25), (0, 0, 1, 1), "abba", "ab")
    request = packing_request(found)
    target = algorithm("sticky")(request.load)
    accepted = plan(found, target, ())
    assert isinstance(accepted, Plan)
    assert accepted.target == owners_of(0, 1, 1, 0)

    after = in_zones((60, 30, 50, 25), (0, 1, 1, 0), "abba", "ab")
    request = packing_request(after)
    again = algorithm("sticky")(request.load)
    assert plan(after, again, ()) == Rejected("nothing would change")


# --- within the budget of an hour ----------------------------------------------------------------


def affordable_of(found: Group, target: Assignment) -> Assignment:
    moves = {
        q: (slot, target[q]) for q, slot in found.members.assignment().items() if slot != target[q]
    }
    return affordable(found, target, moves, triggered=False)


def test_the_fastest_partitions_come_near_first() -> None:
    found = in_zones((20, 30, 10), (0, 0, 0), "bbb", "ab")
    found = replace(found, config=found.config.with_settings(moves_per_hour=2))
    assert affordable_of(found, owners_of(1, 1, 1)) == owners_of(1, 1, 0)
    free = replace(found, config=found.config.with_settings(zone_price=0.0, moves_per_hour=2))
    assert affordable_of(free, owners_of(1, 1, 1)) == owners_of(0, 0, 0)
