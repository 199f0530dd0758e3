"""Plans that need approval, and what the controller does without one."""

from dataclasses import replace

import pytest
from tests.controller.decide.approvals import (
    APART,
    APPROVE,
    BOTH_AT_A,
    RATES,
    C,
    R,
    approve,
    in_mode,
    logged,
    overloaded,
    propose,
    published_of,
    reconciled,
    with_approved_plan,
)
from tests.controller.decide.driver import (
    A,
    B,
    ControllerDriver,
    P,
    Q,
    published,
    sent_commands,
)

from binwright.controller.decide.approval import (
    accept_proposal,
    outdated_reason,
    reevaluate,
    withdraw_proposal,
)
from binwright.controller.decide.events import Action
from binwright.controller.decide.states import Manage, Sentinel
from binwright.group.fold import StateRecord
from binwright.group.plans import Pack, Rejected
from binwright.protocol.commands import StartReading, StopReading
from binwright.protocol.metadata import Accepted, Planned, Proposed, Withdrawn
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import Approved

# --- a plan waits ------------------------------------------------------------------------------


def test_a_plan_is_proposed_at_once_and_waits() -> None:
    driver, number = overloaded()
    (proposed,) = published_of(driver.actions, Proposed)
    assert (proposed.owners, proposed.targets, proposed.moves) == (BOTH_AT_A, APART, {Q: (A, B)})
    assert proposed.waits
    assert logged(driver.actions, "plan.proposed")[0]["plan"] == number
    before = len(driver.actions)
    for _ in range(3 * 60):
        driver.report(A, reading=[P, Q])
        driver.measure(dict(RATES))
        driver.tick()
    assert driver.phase() == Sentinel
    assert driver.actions[before:] == [], "it stays, whatever a packing would return by now"


def test_a_proposal_is_not_repeated_before_it_is_read_back() -> None:
    driver = with_approved_plan(BOTH_AT_A, RATES)
    driver.pack(APART)
    assert driver.tick(3.0) == []


def test_an_approval_that_is_read_before_the_plan_counts_for_this_plan_alone() -> None:
    """They have topics of their own, of which one may be read sooner."""
    driver = with_approved_plan(BOTH_AT_A, RATES)
    (proposed,) = published(driver.pack(APART))
    number = driver.offset + 2
    assert driver.read(Approved(plan=number, by="me")) == []
    logs = driver.read(proposed)
    assert logged(logs, "plan.approved") == [{"plan": number, "by": "me"}]
    assert published_of(driver.tick(), Accepted)

    driver = with_approved_plan(BOTH_AT_A, RATES)
    (proposed,) = published(driver.pack(APART))
    driver.read(Approved(plan=number + 1, by="me"))
    reason = f"it is not the plan that waits: that is {number}"
    assert logged(driver.read(proposed), "approval.refused") == [
        {"plan": number + 1, "by": "me", "reason": reason}
    ]
    driver.measure(dict(RATES))
    assert not published_of(driver.tick(70), Accepted)


def test_the_approved_plan_is_carried_out() -> None:
    driver, number = overloaded()
    actions = approve(driver, number)
    assert logged(actions, "plan.approved") == [{"plan": number, "by": "a person"}]
    (accepted,) = published_of(actions, Accepted)
    assert (accepted.plan, accepted.targets) == (number, APART)
    (planned,) = published_of(actions, Planned)
    assert (planned.moves, planned.keeps) == ({Q: B}, number)
    assert reconciled(actions) == [{A, B}]
    assert driver.phase() == Manage
    driver.hello(B)
    (stop,) = sent_commands(driver.report(B), StopReading)
    (start,) = sent_commands(driver.stopped(stop, A), StartReading)
    driver.started(start, B)
    assert driver.phase() == Sentinel
    driver.measure(dict(RATES))
    assert driver.tick(3.0) == []


def test_an_approval_is_refused_while_no_plan_waits() -> None:
    driver = with_approved_plan(BOTH_AT_A, RATES)
    assert logged(driver.read(Approved(plan=7, by="me")), "approval.refused") == [
        {"plan": 7, "by": "me", "reason": "no plan waits"}
    ]
    assert driver.group.people.early_approval is None


def test_another_number_is_refused() -> None:
    driver, number = overloaded()
    actions = approve(driver, number + 5)
    reason = f"it is not the plan that waits: that is {number}"
    assert logged(actions, "approval.refused")[0]["reason"] == reason
    assert driver.phase() == Sentinel


def test_without_measurements_even_an_approved_plan_waits() -> None:
    driver, number = overloaded()
    for _ in range(200):
        driver.report(A, reading=[P, Q])
        driver.tick()
    assert not published_of(approve(driver, number), Accepted)
    driver.measure(dict(RATES))
    assert published_of(driver.tick(), Accepted)


# --- outdated plans ----------------------------------------------------------------------------


def test_a_plan_that_would_overload_a_consumer_by_now_is_outdated() -> None:
    driver = with_approved_plan({P: A, Q: A, R: B}, {P: 70.0, Q: 60.0, R: 30.0})
    number = propose(driver, {P: A, Q: B, R: B})
    assert published_of(approve(driver, number), Accepted)

    driver = with_approved_plan({P: A, Q: A, R: B}, {P: 70.0, Q: 60.0, R: 30.0})
    number = propose(driver, {P: A, Q: B, R: B})
    driver.measure({P: 70.0, Q: 60.0, R: 80.0})
    (withdrawn,) = published_of(approve(driver, number), Withdrawn)
    assert withdrawn.reason == "consumer 1 would carry 116.7% of its limit by now"


def test_at_max_slots_an_overloading_plan_is_still_carried_out() -> None:
    driver = with_approved_plan({P: A, Q: A, R: B}, {P: 70.0, Q: 60.0, R: 80.0})
    group = replace(driver.group, config=APPROVE.with_settings(max_slots=2))
    driver.state = replace(driver.state, group=group)
    number = propose(driver, {P: A, Q: B, R: B})
    assert published_of(approve(driver, number), Accepted)


def drained_to_b() -> tuple[ControllerDriver, int]:
    """Return a leader where B reads what A was approved for, and an older proposal's number."""
    driver, number = overloaded()
    driver.hello(B)
    driver.report(B)
    driver.report(A, reading=[P, Q], leaving=True)  # its partitions go to B without approval
    assert driver.phase() == Manage
    (stop,) = sent_commands(driver.actions, StopReading)
    (start,) = sent_commands(driver.stopped(stop, A), StartReading)
    driver.started(start, B)
    assert driver.phase() == Sentinel
    return driver, number


def test_an_approved_plan_waits_while_a_consumer_restarts() -> None:
    driver, number = drained_to_b()
    assert not published_of(approve(driver, number), Accepted)
    driver.hello(A)
    driver.report(A)
    (stop,) = sent_commands(driver.tick(), StopReading)
    (start,) = sent_commands(driver.stopped(stop, B), StartReading)
    driver.started(start, A)
    assert published_of(driver.tick(), Accepted), "the assignment is as approved again"


def test_partitions_that_stay_with_other_readers_outdate_the_plan() -> None:
    driver, number = drained_to_b()
    done: list[Action] = []
    for _ in range(61):
        driver.report(B, reading=[P, Q])
        driver.measure(dict(RATES))
        done += driver.tick()
    (withdrawn,) = published_of(done, Withdrawn)
    assert (withdrawn.plan, withdrawn.reason) == (number, "partitions have other readers")
    assert any(isinstance(a, Pack) for a in done)


def test_approved_slots_above_max_slots_are_not_restored() -> None:
    driver = with_approved_plan(APART, RATES)
    group = replace(driver.group, config=APPROVE.with_settings(max_slots=1))
    driver.state = replace(driver.state, group=group)
    actions = driver.dead(B) + driver.tick()
    assert reconciled(actions) == [{A}]


def test_a_topic_that_grows_outdates_the_plan() -> None:
    driver, _ = overloaded()
    plan = driver.group.people.proposal
    assert plan is not None
    driver.measure({**RATES, R: 1.0})
    assert outdated_reason(driver.group, plan.plan) == "partitions have come or gone"


def test_a_plan_of_another_mode_is_withdrawn() -> None:
    driver, _ = overloaded()
    (withdrawn,) = published_of(in_mode(driver, "observe").tick(), Withdrawn)
    assert withdrawn.reason == "the group's mode has changed"


# --- without approval --------------------------------------------------------------------------


def test_partitions_of_a_dead_consumer_go_to_others_and_back_once_it_restarts() -> None:
    driver = with_approved_plan(APART, RATES)
    actions = driver.dead(B) + driver.tick()
    (planned,) = published_of(actions, Planned)
    assert planned.keeps == 0
    assert planned.reasons[0] == "keeps plan 0"
    assert reconciled(actions) == [{A, B}], "its slot keeps running, so that it restarts"
    (start,) = sent_commands(actions, StartReading)
    actions = driver.started(start, A)
    assert reconciled(actions) == [{A, B}]
    driver.hello(B)
    driver.report(B)
    (stop,) = sent_commands(driver.tick(), StopReading)
    (start,) = sent_commands(driver.stopped(stop, A), StartReading)
    driver.started(start, B)
    assert driver.group.members.assignment() == APART
    assert driver.phase() == Sentinel


def test_with_no_consumer_left_partitions_wait_for_the_approved_slots_to_restart() -> None:
    driver = with_approved_plan(APART, RATES)
    for slot in (A, B):
        driver.dead(slot)
    assert reconciled(driver.tick()) == [{A, B}]
    driver.hello(B)
    (start,) = sent_commands(driver.report(B), StartReading)
    assert set(start.offsets) == {P, Q}, "the first ready consumer is the interim owner of all"
    driver.started(start, B)
    driver.hello(A)
    (stop,) = sent_commands(driver.report(A), StopReading)
    assert stop.partitions == (P,)


def test_a_new_partition_waits_for_an_approved_slot_when_no_consumer_runs() -> None:
    driver = with_approved_plan(APART, RATES)
    driver.measure({**RATES, R: 1.0})
    for slot in (A, B):
        driver.dead(slot)
    (planned,) = published_of(driver.tick(), Planned)
    assert planned.targets == {P: A, Q: B, R: B}


def test_a_gone_partition_is_stopped() -> None:
    driver = with_approved_plan(APART, RATES)
    driver.measure({P: 90.0})
    (stop,) = sent_commands(driver.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_the_first_plan_of_a_group_waits() -> None:
    driver = ControllerDriver(APPROVE)
    driver.claim()
    driver.measure(dict(RATES))
    assert not any(reconciled(driver.actions))
    number = propose(driver, APART)
    assert not reconciled(driver.tick(5.0))
    assert reconciled(approve(driver, number)) == [{A, B}]


def test_partitions_without_an_approved_slot_are_assigned_to_running_consumers() -> None:
    driver = ControllerDriver(APPROVE)
    driver.claim()
    driver.measure(dict(RATES))
    driver.hello(A)  # not started by this controller
    driver.report(A)
    (planned,) = published_of(driver.tick(), Planned)
    assert (planned.targets, planned.reasons[0], planned.keeps) == (
        BOTH_AT_A,
        "finds readers",
        None,
    )


def test_a_rejected_plan_retires_no_consumer() -> None:
    driver = with_approved_plan(BOTH_AT_A, RATES)
    driver.hello(B)
    driver.report(B)
    assert reconciled(driver.pack(BOTH_AT_A)) == []


# --- In mode `approve` a restored assignment is compared again only after a change ---------------


def restored() -> ControllerDriver:
    """Return a leader whose last tick found the assignment as approved."""
    driver = with_approved_plan(APART, RATES)
    driver.tick()
    assert isinstance(driver.state, Sentinel)
    assert driver.state.restored_state is not None
    return driver


def test_reports_and_measurements_do_not_repeat_the_comparison() -> None:
    """A comparison is O(partitions), each second."""
    driver = restored()
    assert isinstance(driver.state, Sentinel)
    before = driver.state.restored_state
    for _ in range(3):
        driver.report(A, reading=[P])
        driver.report(B, reading=[Q])
        driver.measure({p: rate + 1 for p, rate in RATES.items()})
        driver.tick()
    assert isinstance(driver.state, Sentinel)
    assert driver.state.restored_state is before


def test_a_partition_that_is_gone_later_is_stopped() -> None:
    driver = restored()
    driver.measure({P: 90.0})
    (stop,) = sent_commands(driver.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_a_partition_that_is_new_later_is_assigned() -> None:
    driver = restored()
    driver.measure({**RATES, R: 1.0})
    (start,) = sent_commands(driver.tick(), StartReading)
    assert start.offsets.keys() == {R}


def test_another_approved_plan_is_carried_out() -> None:
    driver = restored()
    driver.read(Accepted(term=driver.group.term or 0, plan=1, targets=BOTH_AT_A))
    (stop,) = sent_commands(driver.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_an_approved_consumer_that_is_ready_later_gets_its_partitions_back() -> None:
    driver = restored()
    (start,) = sent_commands(driver.dead(B) + driver.tick(), StartReading)
    driver.started(start, A)
    driver.tick()
    assert isinstance(driver.state, Sentinel)
    assert driver.state.restored_state is not None, "until then nothing is to be restored"
    driver.hello(B)
    driver.report(B)
    (stop,) = sent_commands(driver.tick(), StopReading)
    assert stop.partitions == (Q,)


# --- Proposed and approved plans under the next controller, and errors of the caller -------------

# --- another controller takes over -------------------------------------------------------------


def successor(*history: StateRecord) -> ControllerDriver:
    """Return a controller that claims after these records; A and B live."""
    later = ControllerDriver(APPROVE)
    for message in history:
        later.read(message)
    later.hello(A)
    later.hello(B)
    later.claim()
    return later


def reply(
    driver: ControllerDriver, a: list[TopicPartition], b: list[TopicPartition]
) -> list[Action]:
    return driver.report(A, reading=a) + driver.report(B, reading=b)


def proposed(target: dict[TopicPartition, Slot]) -> Proposed:
    return Proposed(
        term=0, reasons=(), consumers=2, rscore=0.0, owners=BOTH_AT_A, targets=target, waits=True
    )


def test_the_assignment_when_approvals_begin_counts_as_approved() -> None:
    driver = successor(proposed(APART))
    actions = reply(driver, [P], [Q])
    (accepted_plan,) = published_of(actions, Accepted)
    assert (accepted_plan.plan, accepted_plan.targets) == (driver.group.term, APART)
    assert reconciled(actions) == [{A, B}]
    assert driver.group.people.proposal is None


def test_a_plan_that_waits_survives_the_controller_that_made_it() -> None:
    accepted = Accepted(term=0, plan=1, targets=BOTH_AT_A)
    driver = successor(replace(accepted, targets={P: A, Q: C}), proposed(APART))
    assert reconciled(driver.actions) == [{A, B, C}], "approved slots run, even after a death"

    driver = successor(accepted, proposed(APART))
    actions = reply(driver, [P, Q], [])
    assert reconciled(actions) == [{A}], "a slot that is not approved and owns nothing is retired"
    assert not published_of(actions, Accepted)
    driver.measure(dict(RATES))
    assert published_of(approve(driver, 2), Accepted)


def test_an_approval_not_carried_out_yet_is_carried_out_by_the_next_controller() -> None:
    accepted, approved = Accepted(term=0, plan=1, targets=BOTH_AT_A), Approved(plan=2, by="me")
    driver = successor(accepted, proposed(APART), approved, Approved(plan=1, by="old"))
    reply(driver, [P, Q], [])
    driver.measure(dict(RATES))
    assert published_of(driver.tick(), Accepted)


def test_a_successor_reads_all_orders_first_and_then_the_plans_that_they_approve() -> None:
    driver = successor(Approved(plan=3, by="me"), Accepted(term=0, plan=1, targets=BOTH_AT_A))
    assert driver.group.people.early_approval is None, (
        "of a plan that does not exist: it is forgotten"
    )
    driver = successor(
        Approved(plan=3, by="me"), Accepted(term=0, plan=1, targets=BOTH_AT_A), proposed(APART)
    )
    reply(driver, [P, Q], [])
    driver.measure(dict(RATES))
    assert published_of(driver.tick(), Accepted)


def test_an_approval_of_a_plan_that_another_topic_had_does_not_count_later() -> None:
    """Who deletes the metadata topic alone has numbers begin anew."""
    driver = successor(Approved(plan=9, by="me"), Accepted(term=0, plan=1, targets=BOTH_AT_A))
    reply(driver, [P, Q], [])
    driver.measure(dict(RATES))
    driver.offset = 8
    driver.read(proposed(APART))
    assert driver.group.people.proposal is not None
    assert not driver.group.people.proposal.approved


def test_a_plan_that_was_withdrawn_or_carried_out_does_not_wait() -> None:
    withdrawn = Withdrawn(term=0, plan=1, reason="")
    assert successor(proposed(APART), withdrawn).group.people.proposal is None
    done = Accepted(term=0, plan=1, targets=APART)
    assert successor(proposed(APART), done).group.people.proposal is None
    other = Withdrawn(term=0, plan=0, reason="")
    assert successor(proposed(APART), other).group.people.proposal is not None


def test_a_plan_carried_out_without_approval_voids_the_approved_one() -> None:
    accepted_plan = Accepted(term=3, plan=1, targets=APART)
    plan = Planned(term=2, reasons=(), consumers=1, moves={}, rscore=0.0, rates={}, targets={})
    older = successor(accepted_plan, plan).group.people.approved_plan
    assert older == accepted_plan, "that controller had stepped down"
    later = successor(accepted_plan, replace(plan, term=3))
    assert later.group.people.approved_plan == replace(accepted_plan, targets={})
    bringing_back = replace(plan, term=3, keeps=1)
    assert successor(accepted_plan, bringing_back).group.people.approved_plan == accepted_plan
    (inherited,) = published_of(reply(later, [P, Q], []), Accepted)
    assert inherited.targets == BOTH_AT_A


def test_in_mode_act_a_proposed_plan_is_dropped() -> None:
    driver, number = overloaded()
    in_mode(driver, "act")
    driver.read(Approved(plan=number, by="me"))
    (planned,) = published_of(driver.pack(APART), Planned)
    assert planned.keeps is None
    driver.read(planned)
    assert driver.group.people.proposal is None


# --- our own faults ----------------------------------------------------------------------------


def test_only_a_plan_that_waits_can_be_accepted_or_withdrawn() -> None:
    driver = with_approved_plan(BOTH_AT_A, RATES)
    with pytest.raises(ValueError, match="no plan waits"):
        accept_proposal(driver.group)
    with pytest.raises(ValueError, match="no plan waits"):
        withdraw_proposal(driver.group, "why")


def test_a_plan_that_would_change_nothing_by_now_is_rejected() -> None:
    driver = with_approved_plan(APART, RATES)
    plan = replace(proposed(APART), owners=APART)
    assert reevaluate(driver.group, plan, ()) == Rejected("nothing would change")
