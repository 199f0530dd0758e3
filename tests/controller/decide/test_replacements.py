"""Consumers on nodes that go, or of an older template, are replaced before they end."""

from dataclasses import replace
from typing import Any

from tests.builders import CONFIG, S0, S1, S2, alive, changed, group, owned, released
from tests.controller.decide.running_group import (
    CORDONED,
    ROLL,
    A,
    C,
    Kind,
    P,
    at,
    disruptions,
    drain,
    pin,
    running,
)

from binwright.controller.decide.drain import drain_plan, drained
from binwright.controller.decide.moves import candidates
from binwright.controller.decide.orders import held_reasons
from binwright.controller.decide.replacements import begin_replacements, replacements
from binwright.group.budgets import count_moves
from binwright.group.group import Group
from binwright.group.members import Member
from binwright.group.plans import Plan
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot

S3 = Slot(3)


def two(kind: Kind = "node", *slots: Slot, **more: Any) -> Group:
    """Return a group of two consumers that read two partitions each."""
    partitions = {p: owned(slot, slot + 1) for p, slot in at(0, 0, 1, 1).items()}
    found = disruptions(kind, *slots)
    known: dict[str, Any] = {"disruptions": found, "desired": frozenset({S0, S1}), **more}
    members: dict[Slot, Member] = {S0: alive(1), S1: alive(2), **known.pop("others", {})}
    return group(members, partitions, **known)


def plan_of(known: Group) -> Plan | None:
    """Return the plan that replaces consumers now."""
    _, plan, _ = begin_replacements(known)
    return plan


def with_limits(**named: float) -> Any:
    limits = {Slot(int(name[1:])): BytesPerSecond(limit) for name, limit in named.items()}
    return replace(CONFIG, limits=PerSlot(CONFIG.limits.default, limits))


# --- which consumers, by which others -----------------------------------------------------------


def test_all_consumers_whose_nodes_go_are_replaced_at_once() -> None:
    assert replacements(two("node", S0, S1)) == {S0: S2, S1: S3}


def test_consumers_of_an_older_template_are_replaced_one_after_the_other() -> None:
    assert replacements(two("roll", S0, S1)) == {S0: S2}


def test_a_node_that_goes_comes_before_a_roll() -> None:
    found = {**disruptions("roll", S0), **disruptions("node", S1)}
    assert replacements(two(disruptions=found)) == {S1: S2}


def test_an_evicted_consumer_is_not_replaced_by_another_slot() -> None:
    assert replacements(two("evicted", S0)) == {}


def test_a_consumer_that_is_asked_to_end_or_reads_nothing_is_not_replaced() -> None:
    others = {S0: alive(1, leaving=True), S2: alive(3)}
    assert replacements(two("node", S0, S2, others=others)) == {}


def test_a_group_that_only_observes_replaces_none() -> None:
    assert replacements(two("node", S0, config=CONFIG.with_settings(mode="observe"))) == {}


def test_an_idle_ready_consumer_takes_over_before_another_is_started() -> None:
    others = {S2: alive(8, ready=False), S3: alive(9)}
    known = two("node", S0, S1, others=others, desired=frozenset({S0, S1, S2, S3}))
    assert replacements(known) == {S0: S3, S1: S2}


def test_a_slot_whose_process_died_takes_over_before_one_that_does_not_run() -> None:
    left, died = Member(hello=8, goodbye=8), Member(hello=9, dead=9)
    known = two("node", S0, others={S2: left, S3: died})
    assert replacements(known) == {S0: S3}


def test_a_consumer_on_its_way_out_takes_nothing_over() -> None:
    retired = two("node", S0, others={S2: alive(8)})  # it lives, and is not desired any more
    asked = two("node", S0, others={S2: alive(8, leaving=True)}, desired=frozenset({S0, S1, S2}))
    assert replacements(retired) == replacements(asked) == {S0: S3}


def test_a_replacement_has_the_same_limit() -> None:
    known = two("node", S0, S1, config=with_limits(s1=500.0, s2=300.0, s4=500.0))
    assert replacements(known) == {S0: S3, S1: Slot(4)}


def test_slots_that_are_closed_pinned_or_disrupted_take_nothing_over() -> None:
    driver = running(at(0, 0, 1, 1))
    driver.read(drain(C, "cordoned"))
    driver.read(pin(P[3], Slot(3)))
    found = {**disruptions("node", A), **disruptions("evicted", Slot(4))}
    assert replacements(changed(driver.group, disruptions=found)) == {A: Slot(5)}


def used(known: Group, moves: int) -> Group:
    """Return the group after so many moves within the hour."""
    return replace(known, people=count_moves(known.people, moves))


def test_a_roll_waits_for_the_budget_of_an_hour_and_a_node_does_not() -> None:
    config = CONFIG.with_settings(moves_per_hour=3)
    rolling = used(two("roll", S0, config=config), 2)
    assert replacements(rolling) == {}
    (text,) = held_reasons(rolling)
    exceeds = "its 2 moves exceed controller.moves_per_hour"
    assert text == f"{exceeds}; waits: consumer 0: {ROLL}, 1 of 2 done"
    assert replacements(two("roll", S0, config=config)) == {S0: S2}
    assert replacements(used(two("node", S0, config=config), 2)) == {S0: S2}


def test_a_consumer_that_reads_more_than_the_budget_moves_when_none_of_it_is_used() -> None:
    config = CONFIG.with_settings(moves_per_hour=1)
    assert replacements(two("roll", S0, config=config)) == {S0: S2}
    assert replacements(used(two("roll", S0, config=config), 1)) == {}


# --- the plan -----------------------------------------------------------------------------------


def test_the_plan_moves_all_that_one_reads_to_its_replacement_and_nothing_else() -> None:
    plan = plan_of(two("node", S0))
    assert plan is not None
    assert plan.target == at(2, 2, 1, 1)
    assert plan.reasons[0] == f"consumer 2 replaces consumer 0: {CORDONED}"


def test_the_plan_has_how_far_a_roll_has_come() -> None:
    plan = plan_of(two("roll", S1))
    assert plan is not None
    assert plan.reasons[0] == f"consumer 2 replaces consumer 1: {ROLL}, 1 of 2 done"


def test_the_plan_gives_what_has_no_reader_to_a_consumer_that_stays() -> None:
    known = two("node", S0)
    known = changed(known, partitions=known.members.partitions.changed({P[1]: released()}))
    plan = plan_of(known)
    assert plan is not None
    assert plan.target == at(2, 1, 1, 1)


def test_the_plan_gives_what_has_no_reader_to_a_replacement_where_none_stays() -> None:
    known = two("node", S0, S1)
    known = changed(known, partitions=known.members.partitions.changed({P[1]: released()}))
    plan = plan_of(known)
    assert plan is not None
    assert plan.target == at(2, 2, 3, 3)


def test_the_plan_leaves_partitions_out_that_are_gone() -> None:
    plan = plan_of(two("node", S0, counts={"orders": 3}))
    assert plan is not None
    assert P[3] not in plan.target


def test_without_disruptions_there_is_no_plan() -> None:
    assert plan_of(two()) is None


# --- beside plans -------------------------------------------------------------------------------


def test_what_a_draining_consumer_reads_does_not_wait_for_a_process_that_has_not_begun() -> None:
    members = {S0: alive(1, leaving=True), S1: alive(2), S2: alive(3, ready=False)}
    known = group(members, {P[0]: owned(S0, 1), P[1]: owned(S0, 1)})
    assert drained(known, {P[0]: S3, P[1]: S2}) == {P[0]: S1, P[1]: S2}


def test_a_drain_has_the_reason_why_the_consumer_was_asked_to_end() -> None:
    others = {S0: alive(1, leaving=True)}
    plan = drain_plan(two("evicted", S0, others=others))
    assert plan is not None
    assert plan.reasons[0] == f"consumer 0 was asked to end: {CORDONED}"


def test_tables_leave_consumers_whose_nodes_go() -> None:
    assert candidates(two("node", S0)) == [S1]
    assert candidates(two("node", S0, S1)) == [S0, S1]
    assert candidates(two("roll", S0)) == [S0, S1]
