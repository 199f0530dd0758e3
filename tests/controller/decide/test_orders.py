"""Orders hold from their record to their end, and what they hold back is published."""

from collections.abc import Mapping
from dataclasses import replace

from tests.builders import CONFIG, alive, changed, group, owned, record_read
from tests.controller.decide.driver import published

from binwright.controller.decide.apply import ORDER_RECEIVED, apply_record
from binwright.controller.decide.orders import (
    ORDER_EXPIRED,
    PLAN_HELD,
    PLAN_RELEASED,
    held_reasons,
    publish_held,
    refresh_controls,
)
from binwright.group.group import Group
from binwright.group.plans import reader_triggers
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Held
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import (
    MAX_SHOWN,
    MAX_TEXT,
    CordonOrder,
    FreezeOrder,
    GroupOrder,
    PinOrder,
    ScaleOrder,
)

P = [TopicPartition("orders", n) for n in range(4)]
A, B = Slot(0), Slot(1)
FREEZE = FreezeOrder(frozen=True, by="alice", reason="release", until_ms=5_000)
SCALE = ScaleOrder(consumers=1, by="bob")


def seen(owners: Mapping[TopicPartition, Slot], rate: float = 70.0) -> Group:
    return group(
        {slot: alive(slot + 1) for slot in (A, B)},
        {p: owned(slot, slot + 1) for p, slot in owners.items()},
        rates=dict.fromkeys(owners, rate),
    )


def with_order(known: Group, order: GroupOrder) -> Group:
    return replace(known, people=known.people.with_order(order, known.config))


def test_an_order_holds_at_once_and_is_logged_by_the_leader_alone() -> None:
    after, actions = apply_record(seen({}), record_read(FREEZE))
    assert after.people.controls.frozen
    facts = {"order": "moves are frozen", "by": "alice", "reason": "release"}
    assert actions == (Log(ORDER_RECEIVED, facts),)
    history, actions = apply_record(replace(seen({}), term=None), record_read(FREEZE))
    assert (bool(history.people.controls.frozen), actions) == (True, ())


def test_an_order_ends_by_itself() -> None:
    frozen = with_order(seen({}), FREEZE)
    same, actions = refresh_controls(frozen, 4_999)
    assert (same.people.controls is frozen.people.controls, actions) == (True, ())
    ended, actions = refresh_controls(same, 5_000)
    assert not ended.people.controls.frozen
    until = "1970-01-01 00:00 UTC"
    assert actions == (
        Log(ORDER_EXPIRED, {"order": f"moves are frozen by alice until {until}: 'release'"}),
    )


def test_what_a_freeze_holds_back_is_named_with_its_reason() -> None:
    frozen = with_order(seen(dict.fromkeys(P[:2], A)), FREEZE)
    (held,) = held_reasons(frozen)
    assert held.startswith("moves are frozen by alice until")
    assert held.endswith("'release'; waits: consumer 0 carries 116.7% of its limit")


def test_an_overload_by_orders_is_named() -> None:
    both = seen(dict.fromkeys(P[:2], A))
    assert held_reasons(both) == ()
    scaled = with_order(both, SCALE)
    overload = "consumer 0 carries 116.7% of its limit: "
    assert held_reasons(scaled) == (f"{overload}scaled to 1 consumer by bob",)
    assert held_reasons(with_order(seen({P[0]: A}, 900.0), SCALE)) == ()
    pin = PinOrder(topic="orders", partition=None, slot=A, by="alice")
    pinned = with_order(both, pin)
    assert held_reasons(pinned) == (f"{overload}all of it is pinned there",)
    assert reader_triggers(pinned) == (), "no plan would help"
    half = with_order(both, replace(pin, partition=0))
    assert held_reasons(half) == ()


def test_a_group_that_observes_names_the_orders_that_wait() -> None:
    observing = replace(seen({P[0]: A}), config=CONFIG.with_settings(mode="observe"))
    drained = with_order(observing, CordonOrder(slot=A, state="drained", by="bob"))
    expected = "the group only observes; waits: consumer 0 is drained by bob"
    assert held_reasons(drained) == (expected,)


def test_what_is_held_back_is_published_when_it_changes() -> None:
    nothing = seen({})
    assert publish_held(nothing) == (nothing, ())
    waits = changed(nothing, over_budget=("3 of 4 moves wait",))
    held, actions = publish_held(waits)
    assert published(actions) == [Held(term=50, reasons=("3 of 4 moves wait",))]
    assert actions[0] == Log(PLAN_HELD, {"reasons": ("3 of 4 moves wait",)})
    assert publish_held(held) == (held, ())
    actions = publish_held(changed(held, over_budget=()))[1]
    assert published(actions) == [Held(term=50, reasons=())]
    assert actions[0] == Log(PLAN_RELEASED, {"was": ("3 of 4 moves wait",)})
    assert publish_held(replace(waits, term=None))[1] == ()


def test_the_next_controller_knows_what_was_published() -> None:
    record = record_read(Held(term=1, reasons=("x",)))
    history, _ = apply_record(replace(seen({}), term=None), record)
    assert history.people.held == ("x",)
    assert published(publish_held(replace(history, term=60))[1]) == [Held(term=60, reasons=())]
    assert apply_record(seen({}), record)[0].people.held == ()


def test_what_is_published_is_bounded() -> None:
    long = changed(seen({}), over_budget=("x" * 9_999,) * 99)
    assert list(map(len, held_reasons(long))) == [MAX_TEXT] * MAX_SHOWN


def test_a_load_that_changes_is_not_published_again_and_again() -> None:
    frozen = with_order(seen(dict.fromkeys(P[:2], A)), FREEZE)
    published_once, actions = publish_held(frozen)
    assert len(published(actions)) == 1
    heavier = seen(dict.fromkeys(P[:2], A), rate=90.0)
    after = changed(published_once, rates=heavier.load.rates)
    assert held_reasons(after) != held_reasons(frozen)
    assert publish_held(after)[1] == ()
