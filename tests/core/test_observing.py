"""A controller that only tells what it would do."""

from dataclasses import replace

from binwright.core.events import Pack, Reconcile, Say
from binwright.core.messages import Approved, Planned, Proposed, StopReading
from binwright.core.states import Sentinel

from .reign import RULES, A, B, P, Q, Reign, holding, published, told

RATES = {P: 90.0, Q: 80.0}


def observing() -> Reign:
    """Return a reign over an overloaded consumer that may do nothing about it."""
    reign = holding(RATES, {P: A, Q: A})
    rules = replace(RULES, mode="observe")
    reign.state = replace(reign.state, group=replace(reign.group, rules=rules))
    return reign


def minute(reign: Reign) -> None:
    """Let a minute pass, in which nothing is asked of the packing."""
    for _ in range(60):
        assert not any(isinstance(a, Pack) for a in reign.tick())
        reign.report(A, reading=[P, Q])


def test_a_plan_is_shown_now_and_then_and_nothing_is_moved() -> None:
    reign = observing()
    minute(reign)
    (shown,) = published(reign.pack({P: A, Q: B}))
    assert isinstance(shown, Proposed)
    assert (shown.consumers, shown.moves, shown.waits) == (2, {Q: (A, B)}, False)
    (said,) = reign.hear(shown)
    assert isinstance(said, Say)
    assert (said.event, said.facts["plan"]) == ("plan.proposed", reign.offset)
    minute(reign)
    assert reign.phase() == Sentinel
    assert not told(reign.actions, StopReading)
    assert len([m for m in published(reign.actions) if isinstance(m, Planned)]) == 1  # the first


def test_who_approves_is_told_that_nothing_is_carried_out() -> None:
    reign = observing()
    minute(reign)
    (shown,) = published(reign.pack({P: A, Q: B}))
    reign.hear(shown)
    (said,) = reign.hear(Approved(plan=reign.offset, by="me"))
    assert isinstance(said, Say)
    assert said.facts["reason"] == "the group's mode is to observe only"


def test_nobody_is_retired_when_nothing_would_change() -> None:
    reign = observing()
    reign.hello(B)
    reign.report(B)
    minute(reign)
    actions = reign.pack({P: A, Q: A})
    assert actions == [Say("plan.rejected", {"reason": "nothing would change"})]
    assert not [a for a in actions if isinstance(a, Reconcile)]
