"""What the options of an order mean, and what a group does not have."""

from dataclasses import replace
from typing import Any

import pytest
from tests.look.test_status import now, two_consumers

from binwright.look.commands.give_order import (
    OrderOptions,
    adopt_order,
    check_replaces,
    check_slot,
    parse_pinned,
    signature,
    unadopt_order,
    until_ms,
)
from binwright.look.group_view import GroupView
from binwright.protocol.errors import SettingsError, UserError
from binwright.protocol.model import Slot
from binwright.protocol.orders import (
    REASON_LENGTH,
    AdoptOrder,
    CordonOrder,
    FreezeOrder,
    PinOrder,
    Savings,
    ScaleOrder,
    SimulatedCost,
)
from binwright.runtime.settings.group import load_settings

NOW_MS = 1_764_165_600_000
"""2025-11-26 14:00 UTC."""
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("30m", 0.5),
        ("2h", 2),
        ("1d", 24),
        ("18:00", 4),
        ("13:00", 23),
        ("2025-11-26T15:00", 1),
        ("2025-11-26 16:00+01:00", 1),
    ],
)
def test_an_order_ends_after_a_time_or_at_one(text: str, hours: float) -> None:
    assert until_ms(text, NOW_MS) == NOW_MS + hours * HOUR_MS


def test_an_order_without_a_time_does_not_end() -> None:
    assert until_ms("", NOW_MS) == 0


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("soon", "is no time"),
        ("0h", "is no time"),
        ("25:00", "is no time"),
        ("2025-11-26T13:00", "is over"),
        ("99999d", None),
        ("9999-12-31T23:59:59+00:00", None),
    ],
)
def test_what_is_no_time_to_come_is_refused(text: str, fault: str | None) -> None:
    if fault is None:
        assert until_ms(text, NOW_MS) > NOW_MS
        return
    with pytest.raises(SettingsError, match=fault):
        until_ms(text, NOW_MS)


@pytest.mark.parametrize("names", [("orders",), ("orders", "orders_raw")])
def test_a_pin_names_a_partition_or_a_topic_of_the_group(names: tuple[str, ...]) -> None:
    seen = now(two_consumers())
    (table,) = seen.tables
    seen = replace(seen, tables=tuple(replace(table, name=name) for name in names))
    assert parse_pinned("orders-1", seen) == ("orders", 1)
    assert parse_pinned("orders", seen) == ("orders", None)
    for unknown in ("orders-7", "payments-0", "payments"):
        with pytest.raises(UserError, match=f"{unknown}: no partition or topic of group g; its"):
            parse_pinned(unknown, seen)


@pytest.mark.parametrize(
    "order",
    [
        PinOrder(topic="a", partition=None, slot=Slot(4), by="x"),
        CordonOrder(slot=Slot(4), state="drained", by="x"),
        ScaleOrder(consumers=5, by="x"),
    ],
)
def test_a_consumer_that_cannot_be_is_refused(order: Any) -> None:
    with pytest.raises(UserError, match=r"controller\.max_slots is 4"):
        check_slot(order, 4)
    check_slot(order, 5)


def test_what_names_no_consumer_is_not_refused() -> None:
    for order in (
        PinOrder(topic="a", partition=None, slot=None, by="x"),
        FreezeOrder(frozen=True, by="x"),
        ScaleOrder(consumers=None, by="x"),
    ):
        check_slot(order, 1)


def test_an_order_is_signed() -> None:
    given = OrderOptions(None, None, 1.0, "why", "1h")
    signed = signature(given, NOW_MS)
    assert (signed["reason"], signed["until_ms"]) == ("why", NOW_MS + HOUR_MS)
    assert "@" in signed["by"]
    with pytest.raises(SettingsError, match="501 characters, 500 at most"):
        signature(OrderOptions(None, None, 1.0, "x" * (REASON_LENGTH + 1)), NOW_MS)


# --- adoption of what savings propose -----------------------------------------------------------

WHO = signature(OrderOptions(None, None, 1.0, "cheaper"), NOW_MS, by="carol")


def proposing(change: str | None, replaces: str = "sticky") -> GroupView:
    """Return a group with a proposal, whose number is 812."""
    view, own = two_consumers(), SimulatedCost(rule="binwright", replica_minutes=9, within_sla=1)
    changed = None if change is None else replace(own, change=change, replica_minutes=8)
    found = Savings(from_ms=0, until_ms=1, sla_s=5, own=own, proposed=changed, replaces=replaces)
    view.apply(812, 0, found)
    return view


def test_the_proposal_that_is_published_is_adopted() -> None:
    order = adopt_order(now(proposing("packing=sticky:4")), WHO, 812)
    assert order == AdoptOrder(
        setting="packing", value="sticky:4", replaces="sticky", proposal=812, **WHO
    )
    lifted = unadopt_order(WHO, "packing")
    assert (lifted.setting, lifted.value) == ("packing", None)


@pytest.mark.parametrize(
    ("view", "number", "fault"),
    [
        (two_consumers(), 812, "nothing is proposed to group g"),
        (proposing(None), 812, "nothing is proposed to group g"),
        (proposing("packing=sticky:4"), 811, "811 is not the one .* that is 812, packing=sticky:4"),
        (proposing("packing=sticky:4", ""), 812, "of a version that did not publish"),
        (proposing("mode=act"), 812, "812 cannot be adopted: controller.mode is not changed"),
        (proposing("replan_interval_s=0.1"), 812, "812 cannot be adopted: .* out of range"),
    ],
)
def test_what_cannot_be_adopted_is_refused(view: GroupView, number: int, fault: str) -> None:
    with pytest.raises(UserError, match=fault):
        adopt_order(now(view), WHO, number)


def test_a_proposal_is_adopted_once_and_again_when_that_is_lifted() -> None:
    view = proposing("packing=sticky:4")
    order = adopt_order(now(view), WHO, 812)
    view.apply(813, 0, order)
    with pytest.raises(UserError, match="is adopted"):
        adopt_order(now(view), WHO, 812)
    view.apply(814, 0, unadopt_order(WHO, "packing"))
    assert adopt_order(now(view), WHO, 812) == order


def test_a_setting_that_no_proposal_changes_is_refused() -> None:
    with pytest.raises(UserError, match="mode is not one of packing, replan_interval_s"):
        unadopt_order(WHO, "mode")


def test_a_proposal_for_other_settings_is_refused() -> None:
    order = adopt_order(now(proposing("packing=sticky:4")), WHO, 812)
    check_replaces(order, load_settings())
    check_replaces(FreezeOrder(frozen=True, by="x"), load_settings())
    other = load_settings(controller={"packing": "mwf"})
    check_replaces(unadopt_order(WHO, "packing"), other)
    expected = "for controller.packing = sticky, and the settings give mwf"
    with pytest.raises(UserError, match=expected):
        check_replaces(order, other)
