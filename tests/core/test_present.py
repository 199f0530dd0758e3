"""Whoever is there already is not retired for one that would have to be started."""

from dataclasses import replace

from binwright.core.events import Reconcile
from binwright.core.messages import StartReading
from binwright.core.model import BytesPerSecond, Slot

from .reign import RULES, A, B, P, Q, Reign, ruling, told

C = Slot(2)
RATES = {P: 90.0, Q: 90.0}


def half_held() -> Reign:
    """Return a reign in which A reads P, C has come back from a death, and nobody reads Q."""
    reign = Reign()
    for slot in (A, C):
        reign.hello(slot)
    reign.claim()
    reign.report(A, reading=[P])
    reign.report(C)
    reign.measure(dict(RATES))
    return reign


def test_who_came_back_takes_what_a_new_consumer_would() -> None:
    reign = half_held()
    actions = reign.pack({P: A, Q: B})
    (start,) = told(actions, StartReading)
    assert start.offsets.keys() == {Q}
    assert Reconcile(frozenset({A, C})) in actions


def test_the_ready_come_first() -> None:
    reign = ruling(RATES, B)
    reign.hello(A)
    assert Reconcile(frozenset({B})) in reign.pack({P: C, Q: C})


def test_who_wants_to_leave_takes_nothing() -> None:
    reign = half_held()
    reign.report(C, leaving=True)
    assert Reconcile(frozenset({A, B})) in reign.pack({P: A, Q: B})


def test_who_sustains_less_is_no_substitute() -> None:
    reign = half_held()
    unequal = replace(RULES, limits={C: BytesPerSecond(60.0)})
    reign.state = replace(reign.state, group=replace(reign.group, rules=unequal))
    assert Reconcile(frozenset({A, B})) in reign.pack({P: A, Q: B})


def test_who_is_to_start_anyway_starts_when_nobody_is_idle() -> None:
    reign = ruling(RATES, A)
    assert Reconcile(frozenset({A, B})) in reign.pack({P: A, Q: B})
