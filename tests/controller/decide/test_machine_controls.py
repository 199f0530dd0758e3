"""The machine keeps to orders and budgets, and gives what has no reader one all the same."""

from dataclasses import replace
from typing import Any

from tests.builders import changed
from tests.controller.decide.driver import (
    CONFIG,
    ControllerDriver,
    published,
    sent_commands,
)
from tests.controller.decide.running_group import (
    FREEZE,
    A,
    B,
    C,
    P,
    at,
    carry_out,
    drain,
    packed,
    pin,
    plans,
    ready,
    running,
)

from binwright.controller.decide.carry_out import PLAN_REJECTED
from binwright.controller.decide.events import Packed, Reconcile
from binwright.controller.decide.states import Manage, Reassign, Sentinel
from binwright.group.plans import Pack
from binwright.protocol.commands import StartReading, StartWriting, StopReading, StopWriting
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Accepted, Planned, Proposed
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import Approved, ScaleOrder

# --- freeze -------------------------------------------------------------------------------------


def test_a_freeze_holds_a_plan_that_is_necessary() -> None:
    driver = running(at(0, 0, 1))
    driver.measure(dict.fromkeys(P[:3], 70.0))
    driver.read(FREEZE)
    actions = driver.tick(200)
    assert not any(isinstance(a, Pack) for a in actions)
    driver.read(replace(FREEZE, frozen=False))
    assert any(isinstance(a, Pack) for a in driver.tick())


def test_in_a_freeze_what_a_dead_consumer_read_gets_a_reader_and_nothing_else_moves() -> None:
    driver = running(at(0, 0, 1), rate=30.0)
    driver.read(FREEZE)
    driver.dead(B)
    (plan,) = plans(packed(driver, {P[2]: A}))
    assert (plan.targets, plan.moves) == (at(0, 0, 0), {})


def test_a_freeze_in_the_middle_of_a_plan_leaves_what_has_not_begun_to_move() -> None:
    driver = running(at(0, 0, 0), moves_at_a_time=1)
    driver.measure(dict.fromkeys(P[:3], 70.0))
    ready(driver, B, C)
    (stop,) = sent_commands(packed(driver, at(0, 1, 2)), StopReading)
    assert stop.partitions == (P[1],)
    driver.read(FREEZE)
    assert driver.phase() is Manage
    carry_out(driver, driver.stopped(stop, A))
    assert driver.group.members.assignment() == at(0, 1, 0)
    assert driver.phase() is Sentinel


def test_a_freeze_does_not_hold_what_a_consumer_reads_that_is_asked_to_end() -> None:
    driver = running(at(0, 1), rate=10.0)
    driver.read(FREEZE)
    actions = driver.report(B, reading={P[1]: 7}, leaving=True)
    carry_out(driver, actions)
    assert driver.group.members.assignment() == at(0, 0)


def test_a_freeze_leaves_a_table_its_writer_unless_that_is_asked_to_end() -> None:
    driver = running(at(0, 1), rate=10.0)
    writer = driver.group.members.writers["orders"].slot
    assert writer is not None
    driver.read(FREEZE)
    driver.read(drain(writer))
    assert not sent_commands(driver.tick(5), StopWriting)
    assert sent_commands(driver.read(replace(FREEZE, frozen=False)), StopWriting)


def test_a_pin_is_carried_out_and_its_consumer_is_started() -> None:
    driver = running(at(0, 0), rate=10.0)
    driver.read(pin(P[1], C))
    actions = packed(driver, at(0, 0))
    (plan,) = plans(actions)
    assert plan.moves == {P[1]: C}
    assert plan.reasons[0] == "1 partition not at the consumer of the pin: orders-1"
    assert Reconcile(frozenset({A, C})) in actions


# --- pins ---------------------------------------------------------------------------------------


def test_a_pin_waits_at_another_consumer_and_the_packing_does_not_get_it() -> None:
    driver = running(at(0, 2), rate=10.0)
    ready(driver, B)
    driver.read(pin(P[1], C))
    driver.read(pin(P[0], A))
    driver.dead(C)
    (request,) = (a for a in driver.tick() if isinstance(a, Pack))
    assert request.load.rates == {}
    (start,) = sent_commands(driver.feed(Packed(driver.now, {})), StartReading)
    assert start.offsets.keys() == {P[1]}, "the wait for its consumer is spent elsewhere"
    assert driver.group.people.last_plan == at(0, 2)


def test_without_measurements_a_partition_finds_its_pin_and_no_closed_consumer() -> None:
    driver = running(at(1, 1), rate=10.0, stale_s=30.0)
    ready(driver, A, C)
    driver.tick(31)
    driver.read(pin(P[0], C))
    driver.read(drain(A, "cordoned"))
    driver.dead(B)
    (plan,) = plans(driver.tick())
    assert plan.targets == {P[0]: C, P[1]: C}


def test_a_lifted_pin_leaves_its_partition_where_it_is_while_the_packing_knows_it_not() -> None:
    driver = running(at(0, 0), rate=10.0)
    driver.read(pin(P[1], A))
    driver.measure({P[0]: 70.0, P[1]: 70.0})
    driver.tick(61)
    driver.read(replace(pin(P[1], A), slot=None))
    driver.feed(Packed(driver.now, {P[0]: A}))
    assert driver.group.members.assignment() == at(0, 0)


def test_a_drained_consumer_gives_up_all_and_is_ended() -> None:
    driver = running(at(0, 1), rate=10.0)
    driver.read(drain(B))
    actions = packed(driver, at(0, 0))
    (plan,) = plans(actions)
    assert plan.reasons[0] == "consumer 1 is drained by bob"
    carry_out(driver, actions)
    assert driver.group.members.assignment() == at(0, 0)
    assert [a for a in driver.actions if isinstance(a, Reconcile)][-1] == Reconcile(frozenset({A}))


# --- drains and cordons -------------------------------------------------------------------------


def test_a_drained_consumer_that_owns_nothing_is_ended_once() -> None:
    driver = running(at(0, 0), rate=10.0)
    ready(driver, B)
    driver.read(drain(B))
    assert Reconcile(frozenset({A})) in driver.tick()
    assert not any(isinstance(a, Reconcile) for a in driver.tick(5))
    driver.read(drain(B, "open"))
    assert not any(isinstance(a, Reconcile) for a in driver.tick())
    assert driver.group.fleet.retired == set()


def test_an_idle_consumer_that_is_cordoned_is_not_used_instead_of_a_new_one() -> None:
    driver = running(at(0, 0), rate=70.0)
    ready(driver, B)
    driver.read(drain(B, "cordoned"))
    (plan,) = plans(packed(driver, at(0, 2)))
    assert plan.targets == at(0, 2)


def test_while_all_others_are_gone_a_cordoned_consumer_takes_over() -> None:
    driver = running(at(0, 1), rate=10.0)
    driver.read(drain(B, "cordoned"))
    driver.dead(A)
    actions = packed(driver, at(2, 1))
    carry_out(driver, actions)
    assert driver.group.members.assignment() == at(1, 1), (
        "for the meantime, until consumer 2 is ready"
    )


def test_a_table_gets_no_writer_that_is_closed_unless_there_is_no_other() -> None:
    driver = running(at(0, 1), rate=10.0)
    writer = driver.group.members.writers["orders"].slot
    other = B if writer == A else A
    driver.read(drain(other, "cordoned"))
    driver.dead(Slot(writer or 0))
    ready(driver, C)
    driver.tick()
    assert driver.group.members.writers["orders"].slot == C or sent_commands(
        driver.actions, StartWriting
    )


# --- scale --------------------------------------------------------------------------------------


def test_a_number_of_consumers_is_reached_and_kept() -> None:
    driver = running(at(0, 0, 0, 0), rate=10.0)
    driver.read(ScaleOrder(consumers=3, by="bob"))
    (plan,) = plans(packed(driver, at(0, 0, 0, 0)))
    assert plan.consumers == 3
    assert plan.reasons[0] == "1 of 3 consumers read: scaled to 3 consumers by bob"


def test_a_number_below_what_the_load_needs_is_kept_and_moves_nothing_for_ever() -> None:
    driver = running(at(0, 0, 0, 0), rate=40.0)
    driver.read(ScaleOrder(consumers=1, by="bob"))
    actions = packed(driver, at(0, 0, 1, 1))
    rejected = {"reason": "all consumers that people's orders leave are full"}
    assert Log(PLAN_REJECTED, rejected) in actions
    assert driver.group.members.assignment() == at(0, 0, 0, 0)


def test_a_least_number_of_consumers_does_not_ask_for_more_than_orders_leave() -> None:
    driver = running(at(0, 0), rate=10.0, min_slots=2, max_slots=2)
    driver.read(drain(B))
    assert not any(isinstance(a, Pack) for a in driver.tick(5))


# --- budgets ------------------------------------------------------------------------------------


def test_a_plan_has_no_more_moves_than_the_budget_of_the_hour() -> None:
    driver = running(at(0, 0, 0), moves_per_hour=1)
    driver.measure(dict.fromkeys(P[:3], 70.0))
    ready(driver, B, C)
    actions = packed(driver, at(0, 1, 2))
    (plan,) = plans(actions)
    assert len(plan.moves) == 1
    assert plan.moved == ((0, 1),)
    carry_out(driver, actions)
    driver.tick(2)
    assert driver.group.people.over_budget == (
        "1 of 2 moves wait: 1 are left of the budget of 1 per hour (controller.moves_per_hour)",
    )
    assert driver.phase() is Sentinel
    assert not any(isinstance(a, Pack) for a in driver.tick(30)), "it is asked about less often"
    asked = [a for a in driver.tick(30) if isinstance(a, Pack)]
    assert len(asked) == 1
    assert driver.phase() is Reassign
    actions = driver.feed(Packed(driver.now, at(0, 1, 2)))
    assert not plans(actions)
    assert "0 are left" in driver.group.people.over_budget[0]
    driver.dead(B)
    assert any(isinstance(a, Pack) for a in driver.tick()), "what has no reader does not wait"


def test_moves_that_were_planned_and_have_not_begun_do_not_count() -> None:
    for ending in ("overdue", "frozen"):
        driver = running(at(0, 0, 0), moves_per_hour=5, plan_timeout_s=3.0)
        driver.measure(dict.fromkeys(P[:3], 70.0))
        packed(driver, at(0, 1, 2))
        assert driver.group.people.moved == ((0, 2),)
        if ending == "overdue":
            driver.tick(5)
        else:
            driver.read(FREEZE)
        assert driver.phase() in {Sentinel, Reassign}
        assert driver.group.people.moved == ((0, 0),)


def test_a_writer_that_a_freeze_keeps_does_not_keep_the_plan_from_its_end() -> None:
    driver = running(at(0, 1), rate=10.0)
    writer = driver.group.members.writers["orders"].slot
    assert writer is not None
    driver.read(drain(writer))
    actions = packed(driver, at(1 - writer, 1 - writer))
    assert driver.phase() is Manage
    driver.acknowledge_writers = False
    driver.read(FREEZE)
    carry_out(driver, actions)
    assert driver.phase() is Sentinel


def test_the_next_controller_counts_on() -> None:
    driver = ControllerDriver(CONFIG.with_settings(moves_per_hour=5))
    plan = Planned(term=0, reasons=(), consumers=1, moves={}, rscore=0.0, rates={}, targets={})
    driver.read(replace(plan, moved=((0, 4),)))
    driver.claim()
    assert driver.group.people.moved == ((0, 4),)


# --- approval -----------------------------------------------------------------------------------


def approving(
    target: dict[TopicPartition, Slot], rate: float = 10.0, **config: Any
) -> ControllerDriver:
    driver = running(target, rate, mode="approve", **config)
    driver.read(Accepted(term=0, plan=1, targets=target))
    return driver


def test_in_mode_approve_drains_and_pins_need_no_approval() -> None:
    driver = approving(at(0, 1, 1))
    driver.read(drain(B))
    driver.read(pin(P[2], C))
    actions = driver.tick()
    assert Reconcile(frozenset({A, B, C})) in actions, "the consumer of the pin is started"
    carry_out(driver, actions)
    carry_out(driver, ready(driver, C))
    assert driver.group.members.assignment() == at(0, 0, 2)
    assert not plans(driver.tick(30))


def test_in_mode_approve_a_pin_waits_where_it_is_read_while_its_consumer_starts() -> None:
    driver = approving(at(0, 1), min_slots=1)
    driver.hello(C)
    driver.read(pin(P[1], C))
    assert not plans(driver.tick(3)), "it lives and is not ready"
    carry_out(driver, [*driver.report(C), *driver.tick()])
    assert driver.group.members.assignment() == at(0, 2)


def test_an_approved_plan_waits_for_the_end_of_a_freeze_and_for_the_budget() -> None:
    for config, order in (({}, FREEZE), ({"moves_per_hour": 1}, None)):
        driver = approving(at(0, 0), **config)
        ready(driver, B)
        driver.measure(dict.fromkeys(P[:2], 70.0))
        driver.tick()
        actions = driver.feed(Packed(driver.now, at(0, 1)))
        (shown,) = (m for m in published(actions) if isinstance(m, Proposed))
        driver.read(shown)
        number = driver.offset
        if order is not None:
            driver.read(order)
        else:
            driver.state = replace(driver.state, group=changed(driver.group, moved=((0, 1),)))
        driver.read(Approved(plan=number, by="carol"))
        driver.tick(100)
        assert driver.group.people.proposal is not None
        assert driver.group.members.assignment() == at(0, 0)
        assert f"plan {number}, which is approved" in driver.group.people.held[-1]
        lifted = changed(driver.group, moved=())
        driver.state = replace(driver.state, group=lifted)
        driver.read(replace(FREEZE, frozen=False))
        carry_out(driver, driver.tick())
        assert driver.group.members.assignment() == at(0, 1)


def test_a_group_that_observes_ends_no_drained_consumer() -> None:
    driver = running(at(0, 0), rate=10.0, mode="observe")
    ready(driver, B)
    driver.read(drain(B))
    assert not any(isinstance(a, Reconcile) for a in driver.tick(3))
