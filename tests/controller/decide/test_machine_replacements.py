"""The machine moves all that a consumer reads to its replacement before that one ends."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from tests.builders import TERM, changed
from tests.controller.decide.approvals import published_of, with_approved_plan
from tests.controller.decide.driver import ControllerDriver, published, sent_commands
from tests.controller.decide.running_group import (
    CORDONED,
    FREEZE,
    LONG_S,
    ROLL,
    A,
    B,
    C,
    D,
    Kind,
    P,
    at,
    carry_out,
    disruptions,
    packed,
    plans,
    ready,
    running,
)

from binwright.controller.decide.events import Action, Disrupted, Packed, Reconcile, Renew
from binwright.controller.decide.states import Manage, Sentinel
from binwright.protocol.commands import StopReading
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Accepted, Goodbye
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.ports.fleet import Disruption


def disrupt(driver: ControllerDriver, found: dict[Slot, Disruption]) -> list[Action]:
    """Report these disruptions, all there are; let a second pass."""
    return driver.feed(Disrupted(driver.now, found)) + driver.tick()


def logged(actions: Iterable[Action], event: str) -> list[Log]:
    return [a for a in actions if isinstance(a, Log) and a.event == event]


def reconciled(actions: Iterable[Action]) -> list[frozenset[Slot]]:
    return [a.slots for a in actions if isinstance(a, Reconcile)]


def renewals(actions: Iterable[Action]) -> list[frozenset[Slot]]:
    return [a.slots for a in actions if isinstance(a, Renew)]


def leave(driver: ControllerDriver, slot: Slot) -> None:
    """Let a consumer that owns nothing end."""
    epoch = driver.group.members.get(slot).epoch
    assert epoch is not None
    driver.read(Goodbye(slot=slot, epoch=epoch, next={}))


def test_a_replacement_is_ready_before_a_partition_stops_and_then_the_old_one_ends() -> None:
    driver = running(at(0, 0, 1, 1))
    begun = disrupt(driver, disruptions("node", A))
    (plan,) = plans(begun)
    assert plan.targets == at(2, 2, 1, 1)
    assert reconciled(begun) == [frozenset({A, B, C})]
    assert not sent_commands(begun, StopReading)

    moved = ready(driver, C)
    assert {p for stop in sent_commands(moved, StopReading) for p in stop.partitions} == {*P[:2]}
    assert not reconciled(moved)
    driver.actions.clear()
    carry_out(driver, moved)
    assert driver.phase() is Sentinel
    assert reconciled(driver.actions) == [frozenset({B, C})]
    assert driver.group.members.assignment() == at(2, 2, 1, 1)


def test_a_roll_moves_each_partition_once() -> None:
    """Slots that have become free are used again, so two more than before are enough."""
    driver = running(at(0, 1, 2, 3), max_slots=6)
    moves: list[TopicPartition] = []
    older = disruptions("roll", A, B, C, D)
    texts = []
    while older:
        (plan,) = plans(disrupt(driver, older))
        texts.append(plan.reasons[0])
        (moved,) = plan.moves
        moves.append(moved)
        ended = driver.group.members.partitions[moved].slot
        assert ended is not None
        (new,) = plan.moves.values()
        carry_out(driver, ready(driver, new))
        assert ended not in driver.group.fleet.desired
        del older[ended]
        leave(driver, ended)
    assert sorted(moves) == P
    assert [text.rpartition(", ")[2] for text in texts] == [f"{n} of 4 done" for n in range(4)]
    assert renewals(driver.actions) == []


def test_a_roll_stops_at_a_replacement_that_never_becomes_ready() -> None:
    driver = running(at(0, 1, 2, 3))
    actions = disrupt(driver, disruptions("roll", A, B, C, D)) + driver.tick(LONG_S)
    assert set(reconciled(actions)) == {frozenset({A, B, C, D, Slot(4)})}
    assert driver.group.members.assignment() == at(0, 1, 2, 3)
    assert len(logged(actions, "plan.overdue")) > 1


def test_a_replacement_that_never_starts_delays_no_plan_that_is_necessary() -> None:
    driver = running(at(0, 0, 1, 1), rate=70.0)
    driver.feed(Disrupted(driver.now, disruptions("node", A)))
    packed(driver, at(0, 2, 1, 3))
    plan = plans(driver.actions)[-1]
    assert plan.targets == at(4, 2, 1, 3)
    assert plan.reasons[0].startswith("consumer 4 replaces consumer 0: ")
    assert "of its limit" in plan.reasons[1]


def test_a_packing_that_is_rejected_is_followed_by_replacements() -> None:
    driver = running(at(0, 0, 1, 1), rate=70.0, max_slots=3)
    driver.feed(Disrupted(driver.now, disruptions("node", A)))
    driver.tick()
    full = driver.group.config.with_settings(max_slots=2)
    driver.state = replace(driver.state, group=replace(driver.group, config=full))
    actions = driver.feed(Packed(driver.now, at(0, 1, 2, 3)))
    assert plans(actions) == []
    assert driver.phase() is Sentinel
    roomy = full.with_settings(max_slots=4)
    driver.state = replace(driver.state, group=replace(driver.group, config=roomy))
    driver.tick()
    again = driver.feed(Packed(driver.now, {}))
    assert plans(again)[0].reasons[0].endswith(CORDONED)


def test_a_freeze_holds_a_roll_and_is_shown_with_it() -> None:
    driver = running(at(0, 0, 1, 1))
    driver.read(FREEZE)
    actions = disrupt(driver, disruptions("roll", A)) + driver.tick(LONG_S)
    assert plans(actions) == []
    assert renewals(actions) == []
    assert any(ROLL in reason for reason in driver.group.people.held)


def test_a_freeze_holds_no_replacement_of_a_consumer_whose_node_goes() -> None:
    driver = running(at(0, 0, 1, 1))
    driver.read(FREEZE)
    disrupt(driver, disruptions("node", A))
    carry_out(driver, ready(driver, C))
    assert driver.group.members.assignment() == at(2, 2, 1, 1)
    driver.tick()
    (writer,) = driver.group.members.writers.values()
    assert writer.slot != A


def test_a_freeze_that_begins_later_leaves_the_moves_off_nodes_that_go() -> None:
    driver = running(at(0, 0, 1, 1))
    disrupt(driver, disruptions("node", A))
    driver.read(FREEZE)
    carry_out(driver, ready(driver, C))
    assert driver.group.members.assignment() == at(2, 2, 1, 1)


def test_moves_off_nodes_that_go_wait_for_no_budget() -> None:
    driver = running(at(0, 0, 1, 1), moves_at_a_time=1, moves_per_hour=1)
    disrupt(driver, disruptions("node", A))
    stops = sent_commands(ready(driver, C), StopReading)
    assert {p for stop in stops for p in stop.partitions} == {*P[:2]}


def test_a_plan_is_given_up_for_a_consumer_whose_node_goes_and_it_is_replaced_at_once() -> None:
    driver = running(at(0, 0, 1, 1))
    disrupt(driver, disruptions("roll", B))
    assert driver.phase() is Manage
    actions = disrupt(driver, {**disruptions("roll", B), **disruptions("node", A)})
    (log,) = logged(actions, "plan.interrupted")
    assert log.facts == {"reason": CORDONED}
    assert plans(actions)[0].targets == at(2, 2, 1, 1)


def test_a_plan_goes_on_where_the_node_of_a_consumer_without_part_in_it_goes() -> None:
    driver = running(at(0, 0, 1, 1))
    disrupt(driver, disruptions("roll", B))
    since = driver.state.since
    disrupt(driver, {**disruptions("roll", B), **disruptions("node", D)})
    assert (driver.phase(), driver.state.since) == (Manage, since)


def test_an_idle_consumer_on_a_node_that_goes_ends() -> None:
    driver = running(at(0, 0, 1, 1))
    ready(driver, C)
    driver.state = replace(driver.state, group=changed(driver.group, desired=frozenset({A, B, C})))
    assert reconciled(disrupt(driver, disruptions("node", C))) == [frozenset({A, B})]


def test_an_idle_consumer_of_an_older_template_is_restarted_and_not_in_a_freeze() -> None:
    driver = running(at(0, 0, 1, 1), max_slots=3)
    ready(driver, C)
    assert renewals(disrupt(driver, disruptions("roll", C))) == [frozenset({C})]
    driver.read(FREEZE)
    assert renewals(driver.tick()) == [frozenset()]


def test_where_no_slot_is_left_one_consumer_is_restarted_in_its_place() -> None:
    driver = running(at(0, 0, 1, 1), max_slots=2)
    actions = disrupt(driver, disruptions("roll", A, B))
    assert renewals(actions) == [frozenset({A})]
    assert plans(actions) == []
    assert renewals(disrupt(driver, {})) == [frozenset()]


def test_no_consumer_is_restarted_in_its_place_while_a_slot_becomes_free() -> None:
    driver = running(at(0, 0, 1, 1), max_slots=3)
    ready(driver, C)  # it lives, and is not desired any more
    actions = disrupt(driver, disruptions("roll", A, B))
    assert renewals(actions) == []
    assert plans(actions) == []
    leave(driver, C)
    assert plans(driver.tick())[0].targets == at(2, 2, 1, 1)


@pytest.mark.parametrize(("kind", "slots"), [("roll", {A, B}), ("node", set())])
def test_a_group_that_only_observes_restarts_those_of_an_older_template(
    kind: Kind, slots: set[Slot]
) -> None:
    driver = running(at(0, 0, 1, 1), mode="observe", moves_per_hour=1)
    actions = disrupt(driver, disruptions(kind, A, B))
    assert plans(actions) == []
    assert renewals(actions) == ([frozenset(slots)] if slots else [])
    assert not any(ROLL in reason for reason in driver.group.people.held)


def test_an_approved_plan_is_kept_with_the_replacement_in_it() -> None:
    driver = with_approved_plan(at(0, 1), dict.fromkeys(P[:2], 40.0))
    actions = disrupt(driver, disruptions("node", A))
    (accepted,) = published_of(actions, Accepted)
    assert (accepted.plan, accepted.term, accepted.targets) == (0, driver.group.term, at(2, 1))
    assert plans(actions)[0].keeps == 0
    for message in published(actions):
        driver.read(message)
    carry_out(driver, ready(driver, C))
    assert driver.group.members.assignment() == at(2, 1)
    assert C in driver.group.fleet.desired
    assert A not in driver.group.fleet.desired
    assert not plans(driver.tick(LONG_S))


def test_an_approved_plan_that_waits_for_a_replacement_chooses_no_second_one() -> None:
    driver = with_approved_plan(at(0, 1), dict.fromkeys(P[:2], 40.0))
    config = replace(driver.group.config.with_settings(consumer_timeout_s=1e6), stale_s=1e6)
    driver.state = replace(driver.state, group=replace(driver.group, config=config))
    first = disrupt(driver, disruptions("node", A))
    later = driver.tick(LONG_S)
    assert driver.group.people.approved_plan is not None
    assert driver.group.people.approved_plan.targets == at(2, 1)
    assert published_of([*first, *later], Accepted) == published_of(first, Accepted)
    ready(driver, C)
    driver.feed(Packed(driver.now, driver.group.members.assignment()))  # nothing is better
    carry_out(driver, driver.tick())
    assert driver.group.members.assignment() == at(2, 1)


def test_without_an_approved_plan_a_group_that_awaits_approval_replaces_too() -> None:
    driver = running(at(0, 0, 1, 1), mode="approve")
    actions = disrupt(driver, disruptions("node", A))
    assert published_of(actions, Accepted) == []
    assert plans(actions)[0].targets == at(2, 2, 1, 1)


def test_what_an_approved_plan_does_not_name_stays_with_the_replacement() -> None:
    driver = running(at(0, 0, 1, 1), mode="approve")
    driver.read(Accepted(term=TERM, plan=0, targets=at(0)))
    (accepted,) = published_of(disrupt(driver, disruptions("node", A)), Accepted)
    assert accepted.targets == at(2, 2)
