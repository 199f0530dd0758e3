"""Plans that wait for a person, under the next controller; and our own faults."""

from dataclasses import replace

import pytest

from binwright.core.approval import accept, reviewed, withdraw
from binwright.core.events import Action
from binwright.core.messages import (
    Accepted,
    Approved,
    Inbound,
    Planned,
    Proposed,
    Withdrawn,
)
from binwright.core.model import Slot, TopicPartition
from binwright.core.plan import Rejected

from .approvals import (
    APART,
    APPROVE,
    BOTH_AT_A,
    RATES,
    C,
    approve,
    beginning,
    fleet,
    of,
    overloaded,
    switched,
)
from .reign import A, B, P, Q, Reign

# --- another controller takes over -------------------------------------------------------------


def successor(*history: Inbound) -> Reign:
    """Return a reign that begins after these records, with A and B living."""
    later = Reign(APPROVE)
    for message in history:
        later.hear(message)
    later.hello(A)
    later.hello(B)
    later.claim()
    return later


def answered(reign: Reign, a: list[TopicPartition], b: list[TopicPartition]) -> list[Action]:
    return reign.report(A, reading=a) + reign.report(B, reading=b)


def shown(target: dict[TopicPartition, Slot]) -> Proposed:
    return Proposed(
        term=0, reasons=(), consumers=2, rscore=0.0, owners=BOTH_AT_A, targets=target, waits=True
    )


def test_what_is_there_when_approvals_begin_counts_as_approved() -> None:
    reign = successor(shown(APART))
    actions = answered(reign, [P], [Q])
    (kept,) = of(actions, Accepted)
    assert (kept.plan, kept.targets) == (reign.group.term, APART)
    assert fleet(actions) == [{A, B}]
    assert reign.group.offer is None


def test_a_plan_that_waits_survives_the_controller_that_made_it() -> None:
    accepted = Accepted(term=0, plan=1, targets=BOTH_AT_A)
    reign = successor(replace(accepted, targets={P: A, Q: C}), shown(APART))
    assert fleet(reign.actions) == [{A, B, C}], "who was approved runs, also if it died"

    reign = successor(accepted, shown(APART))
    actions = answered(reign, [P, Q], [])
    assert fleet(actions) == [{A}], "who is not in the approved plan, and has nothing, goes"
    assert not of(actions, Accepted)
    reign.measure(dict(RATES))
    assert of(approve(reign, 2), Accepted)


def test_an_approval_that_nobody_obeyed_yet_is_obeyed_by_the_next() -> None:
    accepted, approved = Accepted(term=0, plan=1, targets=BOTH_AT_A), Approved(plan=2, by="me")
    reign = successor(accepted, shown(APART), approved, Approved(plan=1, by="old"))
    answered(reign, [P, Q], [])
    reign.measure(dict(RATES))
    assert of(reign.tick(), Accepted)


def test_a_plan_that_was_withdrawn_or_carried_out_waits_no_more() -> None:
    gone = Withdrawn(term=0, plan=1, reason="")
    assert successor(shown(APART), gone).group.offer is None
    done = Accepted(term=0, plan=1, targets=APART)
    assert successor(shown(APART), done).group.offer is None
    other = Withdrawn(term=0, plan=0, reason="")
    assert successor(shown(APART), other).group.offer is not None


def test_what_a_controller_did_that_asked_nobody_voids_what_was_approved() -> None:
    kept = Accepted(term=3, plan=1, targets=APART)
    plan = Planned(term=2, reasons=(), consumers=1, moves={}, rscore=0.0, rates={}, targets={})
    old = successor(kept, plan).group.kept
    assert old == kept, "it was deposed"
    later = successor(kept, replace(plan, term=3))
    assert later.group.kept == replace(kept, targets={})
    bringing_back = replace(plan, term=3, keeps=1)
    assert successor(kept, bringing_back).group.kept == kept
    (anew,) = of(answered(later, [P, Q], []), Accepted)
    assert anew.targets == BOTH_AT_A


def test_a_plan_that_waited_is_not_heeded_by_who_asks_nobody() -> None:
    reign, number = overloaded()
    switched(reign, "act")
    reign.hear(Approved(plan=number, by="me"))
    (planned,) = of(reign.pack(APART), Planned)
    assert planned.keeps is None
    reign.hear(planned)
    assert reign.group.offer is None


# --- our own faults ----------------------------------------------------------------------------


def test_only_a_plan_that_waits_can_be_accepted_or_withdrawn() -> None:
    reign = beginning(BOTH_AT_A, RATES)
    with pytest.raises(ValueError, match="no plan waits"):
        accept(reign.group)
    with pytest.raises(ValueError, match="no plan waits"):
        withdraw(reign.group, "why")


def test_a_review_tells_when_nothing_would_change() -> None:
    reign = beginning(APART, RATES)
    plan = replace(shown(APART), owners=APART)
    assert reviewed(reign.group, plan, ()) == Rejected("nothing would change")
