"""A controller in mode `observe`: it only publishes its plans."""

from dataclasses import replace

from tests.controller.decide.driver import (
    CONFIG,
    A,
    B,
    ControllerDriver,
    P,
    Q,
    assigned,
    published,
    sent_commands,
)

from binwright.controller.decide.carry_out import PLAN_REJECTED
from binwright.controller.decide.events import Reconcile
from binwright.controller.decide.states import Sentinel
from binwright.group.plans import Pack
from binwright.protocol.commands import StopReading
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Planned, Proposed
from binwright.protocol.orders import Approved

RATES = {P: 90.0, Q: 80.0}


def observing() -> ControllerDriver:
    """Return a leader in mode `observe` with an overloaded consumer."""
    driver = assigned(RATES, {P: A, Q: A})
    config = CONFIG.with_settings(mode="observe")
    driver.state = replace(driver.state, group=replace(driver.group, config=config))
    return driver


def pass_a_minute(driver: ControllerDriver) -> None:
    """Let a minute pass in which no packing is requested."""
    for _ in range(60):
        assert not any(isinstance(a, Pack) for a in driver.tick())
        driver.report(A, reading=[P, Q])


def test_a_plan_is_published_now_and_then_and_nothing_is_moved() -> None:
    driver = observing()
    pass_a_minute(driver)
    (proposed,) = published(driver.pack({P: A, Q: B}))
    assert isinstance(proposed, Proposed)
    assert (proposed.consumers, proposed.moves, proposed.waits) == (2, {Q: (A, B)}, False)
    (log,) = driver.read(proposed)
    assert isinstance(log, Log)
    assert (log.event, log.facts["plan"]) == ("plan.proposed", driver.offset)
    pass_a_minute(driver)
    assert driver.phase() == Sentinel
    assert not sent_commands(driver.actions, StopReading)
    assert len([m for m in published(driver.actions) if isinstance(m, Planned)]) == 1  # the first


def test_an_approval_is_refused_because_no_plan_is_carried_out() -> None:
    driver = observing()
    pass_a_minute(driver)
    (proposed,) = published(driver.pack({P: A, Q: B}))
    driver.read(proposed)
    (log,) = driver.read(Approved(plan=driver.offset, by="me"))
    assert isinstance(log, Log)
    assert log.facts["reason"] == "the group's mode is to observe only"


def test_no_consumer_is_retired_when_nothing_would_change() -> None:
    driver = observing()
    driver.hello(B)
    driver.report(B)
    pass_a_minute(driver)
    actions = driver.pack({P: A, Q: A})
    assert actions == [Log(PLAN_REJECTED, {"reason": "nothing would change"})]
    assert not [a for a in actions if isinstance(a, Reconcile)]
