"""What an object's approve annotation does, and what its status shows."""

from dataclasses import replace

import pytest
from tests.builders import changed, group

from binwright.controller.decide.orders import PLAN_HELD
from binwright.controller.decide.states import Sentinel, State
from binwright.controller.group_objects.plan_events import (
    MAX_SHOWN,
    PlanEvents,
    handle_annotation,
    shown_proposal,
)
from binwright.group.group import Group
from binwright.group.people import Proposal
from binwright.kubernetes.events import EventRecorder
from binwright.kubernetes.objects import Obj, Owner
from binwright.kubernetes.status import APPROVE_ANNOTATION, Approvals
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Accepted, Proposed
from binwright.protocol.model import Slot, TopicPartition

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
PLAN = Proposed(
    term=0,
    reasons=("why",),
    consumers=2,
    rscore=0.5,
    owners={P: Slot(0)},
    targets={P: Slot(1), Q: Slot(1)},
    waits=True,
)
PROPOSAL = Proposal(PLAN, 812)


class RecordingLeader:
    """A controller that only remembers what was approved."""

    def __init__(self, known: Group) -> None:
        self.known = known
        self.approved: list[int] = []

    @property
    def state(self) -> State:
        return Sentinel(self.known, 0.0)

    def approve(self, plan: int, by: str) -> None:
        assert APPROVE_ANNOTATION in by
        self.approved.append(plan)


def leading(proposal: Proposal | None = PROPOSAL) -> RecordingLeader:
    return RecordingLeader(changed(group({}), proposal=proposal))


def annotated(value: str) -> Obj:
    return {"metadata": {"annotations": {APPROVE_ANNOTATION: value}}}


def test_an_approval_is_sent_until_it_was_read_and_then_handled_once() -> None:
    approvals, leader = Approvals(), leading()
    for _ in range(2):
        assert handle_annotation(approvals, annotated("812"), leader) is None
    assert (leader.approved, approvals.seen) == ([812, 812], None)
    leader.known = changed(leader.known, proposal=replace(PROPOSAL, approved=True))
    assert handle_annotation(approvals, annotated("812"), leader) is None
    assert len(leader.approved) == 2
    leader.known = changed(
        leader.known, proposal=None, approved_plan=Accepted(term=1, plan=812, targets=PLAN.targets)
    )
    assert handle_annotation(approvals, annotated("812"), leader) is None
    assert approvals.fields() == {"proposal": None, "approvalSeen": "812"}


@pytest.mark.parametrize(
    ("value", "proposal", "message"),
    [
        ("811", PROPOSAL, "plan 811 does not wait; plan 812 does"),
        ("812", None, "plan 812 does not wait; none does"),
        ("812", replace(PROPOSAL, plan=replace(PLAN, waits=False)), "plan 812 does not wait; none"),
        ("yes", PROPOSAL, "expected a plan's number, as in status.proposal, got 'yes'"),
        ("²", PROPOSAL, "expected a plan's number"),
    ],
)
def test_an_impossible_approval_is_refused_once(
    value: str, proposal: Proposal | None, message: str
) -> None:
    """It is not carried out later, when a plan gets that number."""
    approvals, leader = Approvals(), leading(proposal)
    assert message in (handle_annotation(approvals, annotated(value), leader) or "")
    assert handle_annotation(approvals, annotated(value), leader) is None
    later = Approvals(None, approvals.fields()["approvalSeen"])
    assert (
        handle_annotation(later, annotated(value), leading(replace(PROPOSAL, number=811))) is None
    )
    assert not leader.approved


def test_annotations_are_not_handled_before_the_claim_was_read() -> None:
    leader = leading(None)
    leader.known = replace(leader.known, term=None)
    approvals = Approvals()
    assert handle_annotation(approvals, annotated("812"), leader) is None
    assert approvals.seen is None
    assert handle_annotation(approvals, None, leader) is None


def test_the_status_shows_what_would_change() -> None:
    shown = shown_proposal(PROPOSAL, None)
    assert shown is not None
    assert (shown["plan"], shown["waits"], shown["approved"]) == (812, True, False)
    assert (shown["moves"], shown["starts"], shown["consumers"]) == (1, 1, 2)
    assert shown["changes"] == [
        {"partition": "orders-0", "from": 0, "to": 1},
        {"partition": "orders-1", "to": 1},
    ]
    since = shown["time"] = "2026-01-01T00:00:00Z"
    approved = shown_proposal(replace(PROPOSAL, approved=True), shown)
    assert approved is not None
    assert (approved["time"], approved["approved"]) == (since, True)
    assert shown_proposal(replace(PROPOSAL, number=None), approved) is None


def test_the_changes_of_a_long_plan_are_cut_to_fit_an_object() -> None:
    many = {TopicPartition("orders", n): Slot(1) for n in range(2 * MAX_SHOWN)}
    shown = shown_proposal(Proposal(replace(PLAN, owners={}, targets=many), 5), None)
    assert shown is not None
    assert (len(shown["changes"]), shown["starts"]) == (MAX_SHOWN, 2 * MAX_SHOWN)


class Notes(EventRecorder):
    """A recorder that only remembers."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, str]] = []  # reasons and messages

    def note(self, about: Owner, reason: str, message: str, *, warning: bool = False) -> None:
        assert (about.name, warning) == ("orders", False)
        self.noted.append((reason, message))


def test_what_orders_hold_back_becomes_an_event_of_the_object() -> None:
    notes, owner = Notes(), Owner("v1", "ConsumerGroup", "orders", "an id", "eu")
    reasons = ("moves are frozen by alice; waits: a drain", "a pin is not followed")
    PlanEvents(notes, owner, None).observe(Log(PLAN_HELD, {"reasons": reasons}))
    assert notes.noted == [("PlanHeld", "; ".join(reasons))]
