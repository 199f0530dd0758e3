"""What an object's annotation approves, and what its status shows."""

from dataclasses import replace

import pytest
from tests.core.builders import group

from binwright.controller.kube.api import Obj
from binwright.controller.kube.approvals import APPROVE_NOTE, SHOWN, Approvals
from binwright.core.group import Group, Offer
from binwright.core.messages import Accepted, Proposed
from binwright.core.model import Slot, TopicPartition
from binwright.core.states import Sentinel, State

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
OFFER = Offer(PLAN, 812)


class Ruler:
    """A controller that only remembers what was approved."""

    def __init__(self, known: Group) -> None:
        self.known = known
        self.approved: list[int] = []

    @property
    def state(self) -> State:
        return Sentinel(self.known, 0.0)

    def approve(self, plan: int, by: str) -> None:
        assert APPROVE_NOTE in by
        self.approved.append(plan)


def ruling(offer: Offer | None = OFFER) -> Ruler:
    return Ruler(replace(group({}), offer=offer))


def noted(value: str) -> Obj:
    return {"metadata": {"annotations": {APPROVE_NOTE: value}}}


def test_it_is_said_until_it_was_heard_and_then_dealt_with_once() -> None:
    approvals, ruler = Approvals(), ruling()
    for _ in range(2):
        assert approvals.heed(noted("812"), ruler) is None
    assert (ruler.approved, approvals.seen) == ([812, 812], None)
    ruler.known = replace(ruler.known, offer=replace(OFFER, approved=True))
    assert approvals.heed(noted("812"), ruler) is None
    assert len(ruler.approved) == 2
    ruler.known = replace(
        ruler.known, offer=None, kept=Accepted(term=1, plan=812, targets=PLAN.targets)
    )
    assert approvals.heed(noted("812"), ruler) is None
    assert approvals.status() == {"proposal": None, "approvalSeen": "812"}


@pytest.mark.parametrize(
    ("value", "offer", "told"),
    [
        ("811", OFFER, "plan 811 does not wait; plan 812 does"),
        ("812", None, "plan 812 does not wait; none does"),
        ("812", replace(OFFER, plan=replace(PLAN, waits=False)), "plan 812 does not wait; none"),
        ("yes", OFFER, "expected a plan's number, as in status.proposal, got 'yes'"),
        ("²", OFFER, "expected a plan's number"),
    ],
)
def test_what_cannot_be_approved_is_told_once(value: str, offer: Offer | None, told: str) -> None:
    """Also not later, when a plan of that number happens to come."""
    approvals, ruler = Approvals(), ruling(offer)
    assert told in (approvals.heed(noted(value), ruler) or "")
    assert approvals.heed(noted(value), ruler) is None
    later = Approvals(None, approvals.status()["approvalSeen"])
    assert later.heed(noted(value), ruling(replace(OFFER, number=811))) is None
    assert not ruler.approved


def test_nothing_is_judged_before_the_reign_has_begun() -> None:
    ruler = ruling(None)
    ruler.known = replace(ruler.known, term=None)
    approvals = Approvals()
    assert approvals.heed(noted("812"), ruler) is None
    assert approvals.seen is None
    assert approvals.heed(None, ruler) is None


def test_the_status_shows_what_would_change() -> None:
    approvals = Approvals()
    approvals.show(OFFER)
    shown = approvals.proposal
    assert shown is not None
    assert (shown["plan"], shown["waits"], shown["approved"]) == (812, True, False)
    assert (shown["moves"], shown["starts"], shown["consumers"]) == (1, 1, 2)
    assert shown["changes"] == [
        {"partition": "orders-0", "from": 0, "to": 1},
        {"partition": "orders-1", "to": 1},
    ]
    since = shown["time"] = "2026-01-01T00:00:00Z"
    approvals.show(replace(OFFER, approved=True))
    assert approvals.proposal is not None
    assert (approvals.proposal["time"], approvals.proposal["approved"]) == (since, True)
    approvals.show(replace(OFFER, number=None))
    assert approvals.proposal is None


def test_a_long_plan_is_cut_to_what_an_object_can_hold() -> None:
    many = {TopicPartition("orders", n): Slot(1) for n in range(2 * SHOWN)}
    approvals = Approvals()
    approvals.show(Offer(replace(PLAN, owners={}, targets=many), 5))
    assert approvals.proposal is not None
    assert (len(approvals.proposal["changes"]), approvals.proposal["starts"]) == (SHOWN, 2 * SHOWN)
