"""An idle consumer is reused before a new one is started."""

from dataclasses import replace

from tests.controller.decide.driver import (
    CONFIG,
    A,
    B,
    ControllerDriver,
    P,
    Q,
    leading,
    sent_commands,
)

from binwright.controller.decide.events import Reconcile
from binwright.protocol.messages import StartReading
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot

C = Slot(2)
RATES = {P: 90.0, Q: 90.0}


def half_assigned() -> ControllerDriver:
    """Return a leader where A reads P, C has restarted, and Q has no reader."""
    driver = ControllerDriver()
    for slot in (A, C):
        driver.hello(slot)
    driver.claim()
    driver.report(A, reading=[P])
    driver.report(C)
    driver.measure(dict(RATES))
    return driver


def test_a_restarted_consumer_gets_what_a_new_one_would() -> None:
    driver = half_assigned()
    actions = driver.pack({P: A, Q: B})
    (start,) = sent_commands(actions, StartReading)
    assert start.offsets.keys() == {Q}
    assert Reconcile(frozenset({A, C})) in actions


def test_ready_consumers_are_reused_first() -> None:
    driver = leading(RATES, B)
    driver.hello(A)
    assert Reconcile(frozenset({B})) in driver.pack({P: C, Q: C})


def test_a_draining_consumer_is_not_reused() -> None:
    driver = half_assigned()
    driver.report(C, leaving=True)
    assert Reconcile(frozenset({A, B})) in driver.pack({P: A, Q: B})


def test_a_consumer_with_a_lower_limit_is_not_reused() -> None:
    driver = half_assigned()
    config = replace(CONFIG, limits=PerSlot(CONFIG.limits.default, {C: BytesPerSecond(60.0)}))
    driver.state = replace(driver.state, group=replace(driver.group, config=config))
    assert Reconcile(frozenset({A, B})) in driver.pack({P: A, Q: B})


def test_a_new_consumer_starts_when_none_is_idle() -> None:
    driver = leading(RATES, A)
    assert Reconcile(frozenset({A, B})) in driver.pack({P: A, Q: B})
