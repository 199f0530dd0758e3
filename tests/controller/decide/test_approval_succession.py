"""Proposed and approved plans under the next controller, and errors of the caller."""

from dataclasses import replace

import pytest
from tests.controller.decide.approvals import (
    APART,
    APPROVE,
    BOTH_AT_A,
    RATES,
    C,
    approve,
    in_mode,
    overloaded,
    published_of,
    reconciled,
    with_approved_plan,
)
from tests.controller.decide.driver import A, B, ControllerDriver, P, Q

from binwright.controller.decide.approval import accept_proposal, reevaluate, withdraw_proposal
from binwright.controller.decide.events import Action
from binwright.group.fold import StateRecord
from binwright.group.plans import Rejected
from binwright.protocol.metadata import Accepted, Planned, Proposed, Withdrawn
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.orders import Approved

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
