"""What orders and settings allow at a moment, and which orders cannot be followed."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from binwright.group.controls import NO_CONTROLS, Controls, controls, with_adopted
from binwright.packing.rules import Rules
from binwright.protocol.daily_windows import DailyWindow
from binwright.protocol.model import Slot
from binwright.protocol.orders import (
    AdoptOrder,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    PinOrder,
    ScaleOrder,
    SettingName,
)

A, B, C = Slot(0), Slot(1), Slot(2)
PIN = PinOrder(topic="orders", partition=3, slot=B, by="alice")
DRAIN = CordonOrder(slot=B, state="drained", by="bob", reason="a disk")
CORDON = replace(DRAIN, state="cordoned", slot=A)
PACKING = AdoptOrder(
    setting="packing", value="sticky:4", replaces="sticky", proposal=812, by="carol"
)
INTERVAL = replace(PACKING, setting="replan_interval_s", value="240", replaces="60")
NIGHT = DailyWindow.parse("22:00-06:00")
NOON_MS = 12 * 3600 * 1000


def found(
    standing: Iterable[GroupOrder] = (),
    pins: Iterable[PinOrder] = (),
    hours: Iterable[DailyWindow] = (),
    max_slots: int = 3,
    wall_ms: int = NOON_MS,
) -> Controls:
    return controls(standing, pins, hours, max_slots, wall_ms)


def test_without_orders_there_are_no_rules() -> None:
    assert found(hours=[NIGHT]) is NO_CONTROLS


def test_orders_become_rules() -> None:
    scale = ScaleOrder(consumers=2, by="bob")
    made = found([PIN, CORDON, scale], max_slots=9)
    pins: dict[tuple[str, int | None], Slot] = {("orders", 3): B}
    assert made.rules == Rules(pins, frozenset({A}), frozenset(), 2)
    assert (made.scale, made.ignored) == ("scaled to 2 consumers by bob", ())
    assert made.of_slot(A) == "consumer 0 is cordoned by bob: 'a disk'"
    assert (made.of_slot(B), found([PIN]).scale) == ("", "")


def test_a_freeze_and_frozen_hours_freeze() -> None:
    freeze = FreezeOrder(frozen=True, by="alice", reason="release")
    by_order, by_hours = found([freeze]), found(hours=[NIGHT], wall_ms=0)
    assert (by_order.rules.frozen, by_hours.rules.frozen) == (True, True)
    assert by_order.frozen == "moves are frozen by alice: 'release'"
    assert by_hours.frozen == "moves are frozen 22:00-06:00 UTC (controller.frozen_hours)"


def test_an_order_about_the_same_comes_before_a_pin_of_the_settings() -> None:
    settings = replace(PIN, slot=C, by="controller.pins")
    assert found(pins=[settings]).rules.pins == {("orders", 3): C}
    assert found([PIN], pins=[settings]).rules.pins == {("orders", 3): B}


def test_a_pin_to_a_closed_consumer_is_not_followed_and_named() -> None:
    for closing in (DRAIN, replace(DRAIN, state="cordoned")):
        made = found([PIN, closing])
        assert made.rules.pins == {}
        expected = "orders-3 is pinned to consumer 1 by alice; that consumer is closed"
        assert made.ignored == (expected,)


def test_an_order_about_a_consumer_that_cannot_be_is_named() -> None:
    made = found([replace(PIN, slot=Slot(9)), replace(DRAIN, slot=Slot(8))])
    assert made.rules == Rules()
    assert [text.partition("; ")[2] for text in made.ignored] == [
        "there is no such consumer: controller.max_slots is 3"
    ] * 2


def test_one_slot_at_least_stays_open() -> None:
    orders = [CORDON, DRAIN, replace(DRAIN, slot=C)]
    made = found(orders)
    assert (made.rules.drained, made.rules.cordoned) == (frozenset({B, C}), frozenset())
    assert made.ignored == (
        "consumer 0 is cordoned by bob: 'a disk'; it is the last open one (controller.max_slots)",
    )


def test_more_consumers_than_slots_are_named() -> None:
    made = found([ScaleOrder(consumers=3, by="bob"), DRAIN])
    assert made.ignored == ("scaled to 3 consumers by bob; there are 2 slots for it",)


# --- adopted values of settings -----------------------------------------------------------------

GIVEN: dict[SettingName, str | None] = {"packing": "sticky", "replan_interval_s": "60"}


def test_adopted_values_replace_those_of_the_settings() -> None:
    made = with_adopted(found([PACKING, INTERVAL, PIN]), GIVEN)
    assert (made.packing, made.replan_interval_s) == ("sticky:4", 240.0)
    assert (made.ignored, made.rules.pins) == ((), {("orders", 3): B})
    one = with_adopted(found([PACKING]), GIVEN)
    assert (one.packing, one.replan_interval_s) == ("sticky:4", None)


def test_without_adoptions_nothing_changes() -> None:
    assert with_adopted(NO_CONTROLS, GIVEN) is NO_CONTROLS


@pytest.mark.parametrize(
    ("order", "given", "why"),
    [
        (PACKING, "mwf", "the settings give mwf by now"),
        (PACKING, None, "the group's object gives it, and is to be changed instead"),
        (
            replace(PACKING, value="sticky:5000"),
            "sticky",
            "controller.packing = 'sticky:5000' is out of range",
        ),
    ],
)
def test_an_adoption_that_does_not_hold_is_named(
    order: AdoptOrder, given: str | None, why: str
) -> None:
    made = with_adopted(found([order, INTERVAL]), {**GIVEN, "packing": given})
    assert (made.packing, made.replan_interval_s) == (None, 240.0)
    adoption = (
        f"controller.packing is {order.value} instead of sticky, as proposal 812 has it by carol"
    )
    (ignored,) = made.ignored
    assert ignored.startswith(f"{adoption}; {why}")
