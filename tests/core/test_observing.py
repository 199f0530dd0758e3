"""A controller that only tells what it would do."""

from dataclasses import replace

from binwright.core.events import Pack, Reconcile, Say
from binwright.core.machine import Sentinel
from binwright.core.messages import Planned, StopConsuming

from .reign import RULES, A, B, P, Q, Reign, holding, published, told

RATES = {P: 90.0, Q: 80.0}


def observing() -> Reign:
    """Return a reign over an overloaded consumer that may do nothing about it."""
    reign = holding(RATES, {P: A, Q: A})
    rules = replace(RULES, acts=False)
    reign.state = replace(reign.state, group=replace(reign.group, rules=rules))
    return reign


def minute(reign: Reign) -> None:
    """Let a minute pass, in which nothing is asked of the packing."""
    for _ in range(60):
        assert not any(isinstance(a, Pack) for a in reign.tick())
        reign.report(A, held=[P, Q])


def test_a_plan_is_proposed_now_and_then_and_nothing_is_moved() -> None:
    reign = observing()
    minute(reign)
    actions = reign.pack({P: A, Q: B})
    (said,) = actions
    assert isinstance(said, Say)
    assert said.event == "plan.proposed"
    assert (said.facts["consumers"], said.facts["moves"]) == (2, 1)
    assert reign.phase() == Sentinel
    assert not told(reign.actions[-3:], StopConsuming)
    assert not [m for m in published(actions) if isinstance(m, Planned)]


def test_nobody_is_retired_when_nothing_would_change() -> None:
    reign = observing()
    reign.hello(B)
    reign.report(B)
    minute(reign)
    actions = reign.pack({P: A, Q: A})
    assert actions == [Say("plan.rejected", {"reason": "nothing would change"})]
    assert not [a for a in actions if isinstance(a, Reconcile)]
