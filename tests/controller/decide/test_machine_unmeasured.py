"""Partitions without a reader are assigned even without a monitor."""

from dataclasses import replace

from tests.controller.decide.driver import (
    CONFIG,
    A,
    B,
    ControllerDriver,
    P,
    Q,
    assigned,
    leading,
    sent_commands,
)

from binwright.controller.decide.events import Packed, Reconcile
from binwright.controller.decide.states import Sentinel
from binwright.group.plans import Pack
from binwright.protocol.commands import StartReading
from binwright.protocol.metadata import Planned
from binwright.protocol.model import TopicPartition

R = TopicPartition("orders", 2)
RATES = {P: 50.0, Q: 40.0}
PLAN = Planned(term=0, reasons=(), consumers=1, moves={}, rscore=0.0, rates={}, targets={})


def test_without_a_monitor_partitions_without_a_reader_are_assigned() -> None:
    """B1: by their last known rates; without measurements no consumer is retired."""
    driver = assigned({P: 50.0, Q: 40.0, R: 1.0}, {P: A, Q: B, R: A})
    unmeasured = replace(driver.group, config=replace(CONFIG, stale_s=30.0))
    driver.state = replace(driver.state, group=unmeasured)
    before = len(driver.actions)
    for _ in range(40):
        driver.tick()
        driver.report(A, reading={P: 8, R: 9})
        driver.report(B, reading={Q: 5})
    driver.dead(B)
    actions = driver.tick()
    (start,) = sent_commands(actions, StartReading)
    assert start.offsets == {Q: 5}
    done = driver.started(start, A)
    assert driver.phase() == Sentinel
    assert Reconcile(frozenset({A, B})) in done
    assert not any(isinstance(a, Pack) for a in driver.actions[before:])


def test_without_a_monitor_and_without_consumers_one_is_started() -> None:
    driver = ControllerDriver()
    driver.hello(B)
    driver.claim()
    driver.report(B, reading={P: 8})
    driver.dead(B)
    actions = driver.tick()
    assert Reconcile(frozenset({A})) in actions
    driver.hello(A)
    (start,) = sent_commands(driver.report(A), StartReading)
    assert start.offsets == {P: 8}


def test_without_any_measurement_the_partitions_of_the_last_plan_are_read() -> None:
    """The consumers died, then the controller, and no monitor runs: partition 0 has the plan."""
    driver = ControllerDriver()
    driver.read(replace(PLAN, targets={P: A, Q: A}))
    driver.hello(B)
    driver.claim()
    driver.report(B)
    for _ in range(90):
        assert not sent_commands(driver.tick(), StartReading)
        driver.report(B)
    (start,) = sent_commands(driver.tick(), StartReading)
    assert start.offsets == {P: None, Q: None}


def test_in_mode_observe_no_partition_is_assigned() -> None:
    driver = assigned(RATES, {P: A, Q: B})
    driver.state = replace(
        driver.state,
        group=replace(
            driver.group, config=replace(CONFIG.with_settings(mode="observe"), stale_s=0.0)
        ),
    )
    driver.dead(B)
    assert sent_commands(driver.tick(5), StartReading) == []


def test_a_partition_whose_rate_is_never_known_is_assigned() -> None:
    """B9: it is packed with rate 0."""
    driver = leading({}, A)
    driver.measure({P: None, Q: 40.0})
    [request] = [a for a in driver.tick() if isinstance(a, Pack)]
    assert request.load.rates == {P: 0.0, Q: 40.0}
    (start,) = sent_commands(driver.feed(Packed(driver.now, {P: A, Q: A})), StartReading)
    assert start.offsets.keys() == {P, Q}
