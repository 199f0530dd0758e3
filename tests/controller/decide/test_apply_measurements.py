"""What each measurement does, and what those of other monitors must not do."""

from typing import Any

from tests.builders import (
    P,
    Q,
    group,
    measurement,
)
from tests.controller.decide.driver import A, ControllerDriver, assigned, sent_commands

from binwright.controller.decide.apply import (
    MONITOR_DISCOVERED,
    apply_measurement,
    drop_silent_monitors,
)
from binwright.controller.decide.events import Action
from binwright.controller.decide.states import Sentinel
from binwright.group.fold import Measured
from binwright.group.plans import Pack
from binwright.protocol.commands import StopReading
from binwright.protocol.log_events import Log
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition

RATES = {P: 50.0, Q: 40.0}


def rate(partition: TopicPartition, value: float | None) -> PartitionRate:
    known = None if value is None else BytesPerSecond(value)
    return PartitionRate(partition.partition, known, 30, 10, 0, None)


def measure_orders(driver: ControllerDriver, *rates: PartitionRate, **more: Any) -> list[Action]:
    return driver.feed(Measured(driver.now, measurement("orders", rates, **more)))


def test_a_topic_measured_in_parts_is_complete_in_any_order() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    measure_orders(driver, rate(Q, 45.0), count=2)
    assert driver.group.load.rates == {P: 50.0, Q: 45.0}
    assert not any(isinstance(a, Pack) for a in driver.tick(2))
    measure_orders(driver, rate(P, 55.0), count=2)
    assert driver.group.load.rates == {P: 55.0, Q: 45.0}


def test_measurements_of_a_second_monitor_change_nothing() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    measure_orders(driver, rate(P, 500.0), rate(Q, 500.0), monitor="another")
    assert driver.group.load.rates == RATES
    assert not any(isinstance(a, Pack) for a in driver.tick(2))


def test_a_second_monitor_is_followed_when_the_first_is_silent() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    measure_orders(driver, rate(P, 50.0), rate(Q, 40.0))
    driver.tick(6)
    measure_orders(driver, rate(P, 51.0), rate(Q, 41.0), monitor="another")
    assert driver.group.load.rates == {P: 51.0, Q: 41.0}


def test_a_silent_monitor_is_logged_and_the_assignment_stays() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    measure_orders(driver, rate(P, 50.0), rate(Q, 40.0))
    done: list[Action] = []
    for _ in range(200):
        done += driver.tick()
        driver.report(A, reading=[P, Q])
    silent = [a for a in done if isinstance(a, Log) and a.event == "monitor.silent"]
    assert [log.facts["effect"] for log in silent] == ["the assignment stays as it is"]
    assert driver.group.members.assignment() == {P: A, Q: A}
    assert driver.phase() == Sentinel


def test_a_monitor_is_logged_once_and_again_when_it_comes_back() -> None:
    one = measurement("orders", (), monitor="one")
    known, logs = apply_measurement(group({}), Measured(0.0, one))
    assert logs == (Log(MONITOR_DISCOVERED, {"monitor": "one"}),)
    assert apply_measurement(known, Measured(1.0, one))[1] == ()
    known, _ = apply_measurement(known, Measured(2.0, measurement("clicks", (), monitor="two")))
    assert drop_silent_monitors(known, 5.0) == (known, ())
    known, (silent,) = drop_silent_monitors(known, 6.5)
    assert isinstance(silent, Log)
    assert silent.event == "monitor.silent"
    facts = {"monitor": "one", "seconds": 6.5, "others": 1, "effect": "another is followed"}
    assert silent.facts == facts
    assert apply_measurement(known, Measured(7.0, one))[1] == logs


def test_the_partitions_of_a_deleted_topic_are_stopped() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    measure_orders(driver, count=0)
    assert driver.group.load.rates == {}
    (stop,) = sent_commands(driver.pack({}), StopReading)
    assert stop.partitions == (P, Q)
    driver.stopped(stop, A)
    assert driver.group.members.partitions == {}
