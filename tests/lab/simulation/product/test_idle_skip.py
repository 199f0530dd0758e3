"""Until when a controller's ticks change nothing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.builders import reconfigured
from tests.controller.decide.driver import ControllerDriver, assigned
from tests.lab.simulation.builders import CONFIG, PARTITIONS, TIMING, scenario

from binwright.controller.decide.machine import transition
from binwright.controller.decide.states import Sentinel, State
from binwright.group.fold import RecordRead
from binwright.lab.simulation.clock import Clock
from binwright.lab.simulation.fluid.data_path import DataPath
from binwright.lab.simulation.outcome import ConsumerCounts
from binwright.lab.simulation.product.controller import SimulatedController
from binwright.lab.simulation.product.idle_skip import next_tick
from binwright.lab.simulation.scenario import Scenario, Timing
from binwright.packing.catalogue import algorithm
from binwright.protocol.metadata import Hello, Inbound
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot

A, B = Slot(0), Slot(1)
STEADY = scenario([[30.0, 30.0, 30.0]] * 9)


def settled() -> tuple[ControllerDriver, float]:
    """Return a controller with a consumer that reads all partitions, and the time of its tick."""
    driver = assigned(dict.fromkeys(PARTITIONS[:3], 30.0), dict.fromkeys(PARTITIONS[:3], A))
    driver.report(A, reading=PARTITIONS[:3])
    driver.tick()
    assert isinstance(driver.state, Sentinel)
    return driver, driver.now


def configured(state: State, **changes: Any) -> State:
    """Return a state with other settings."""
    config = reconfigured(CONFIG, **changes)
    return replace(state, group=replace(state.group, config=config))


def test_a_settled_group_is_looked_at_when_it_is_time_to_replan() -> None:
    driver, now = settled()
    state = configured(driver.state, replan_interval_s=60.0)

    # The first tick of which more than 60 s have passed.
    assert next_tick(state, now, STEADY) == driver.state.since + 61.0


def test_an_overload_is_found_beforehand() -> None:
    """30 becomes 90 bytes/s at 30 s: 90 in all become more than 119 at 45 s."""
    driver, now = settled()
    grows = scenario([[30.0, 30.0, 30.0], *[[90.0, 30.0, 30.0]] * 2])
    state = configured(driver.state, replan_interval_s=600.0, limits=PerSlot(BytesPerSecond(119.0)))

    assert next_tick(state, now, grows) == 45.0
    assert now < 30.0


def test_a_table_whose_writer_has_not_reported_it_is_looked_at_every_second() -> None:
    driver, now = settled()
    driver.report(A, reading=PARTITIONS[:3], writing=())
    assert next_tick(driver.state, now, STEADY) == now + 1.0


def test_a_consumer_that_is_not_ready_is_looked_at_every_second() -> None:
    driver, now = settled()
    hello = Hello(slot=B, process="p", version="1")
    state, _ = transition(driver.state, RecordRead(now, 99, hello))

    assert next_tick(state, now, STEADY) == now + 1.0


def test_fewer_consumers_than_the_minimum_are_looked_at_every_second() -> None:
    driver, now = settled()

    assert next_tick(configured(driver.state, min_slots=2), now, STEADY) == now + 1.0


def test_a_group_with_frozen_hours_is_looked_at_every_second() -> None:
    driver, now = settled()
    hours = ("08:00-09:00",)

    assert next_tick(configured(driver.state, frozen_hours=hours), now, STEADY) == now + 1.0


def test_a_partition_without_a_reader_is_looked_at_every_second() -> None:
    driver, now = settled()
    driver.dead(A)

    assert next_tick(driver.state, now, STEADY) == now + 1.0


def test_a_plan_is_looked_at_when_it_or_a_command_is_overdue() -> None:
    driver, now = settled()
    driver.hello(B)
    driver.report(B)
    driver.measure(dict.fromkeys(PARTITIONS[:3], 60.0))
    driver.pack({PARTITIONS[0]: A, PARTITIONS[1]: A, PARTITIONS[2]: B})
    now = driver.now

    assert driver.group.members.partitions.pending
    assert next_tick(configured(driver.state, command_retry_s=10.0), now, STEADY) == now + 10.0
    assert next_tick(configured(driver.state, plan_timeout_s=7.0), now, STEADY) == now + 7.0


class Watched(SimulatedController):
    """Notes how old measurements are when a record is read, and each period of volatility."""

    def _read(self, offset: int, message: Inbound) -> None:
        super()._read(offset, message)
        measured_at = self.state.group.load.measured_at
        if measured_at is not None:
            self.__dict__.setdefault("ages", []).append(self._clock.now - measured_at)

    def _apply_measurement(self, number: int) -> None:
        super()._apply_measurement(number)
        found = self.state.group.load.volatility
        periods = self.__dict__.setdefault("periods", {})
        periods[found.since] = (found.mean_square, dict(found.rates))


def watched(found: Scenario, *, every_second: bool = False) -> dict[str, Any]:
    """Return what a controller's run has noted."""
    clock = Clock(found.begin)
    data = DataPath(found.load, found.begin)
    packing = algorithm("sticky")
    made = Watched(found, packing, clock, data, ConsumerCounts(), every_second=every_second)
    clock.run_until(found.load.ends_at)
    return vars(made)


WILD = scenario(
    [[30.0 * ((row * column) % 4) for column in range(1, 7)] for row in range(12)],
    timing=Timing(start_up_s=7.3, hand_over_s=1.4),
)


CALM = scenario([[float(5 + row)] * 6 for row in range(12)])


@pytest.mark.parametrize("found", [WILD, CALM], ids=["wild", "calm"])
def test_the_rates_volatility_is_that_of_a_controller_that_ticks_every_second(
    found: Scenario,
) -> None:
    """Its periods of 30 s begin at the same times, with the same rates of both topics."""
    quiet, every = watched(found)["periods"], watched(found, every_second=True)["periods"]

    # The last period ends with the load: nothing has to look at it any more.
    assert len(every) - 1 <= len(quiet) <= len(every)
    assert quiet == {since: every[since] for since in quiet}


def test_records_are_read_with_the_rates_that_were_measured_before_them() -> None:
    assert max(watched(WILD)["ages"]) <= WILD.timing.interval_s


def test_measurements_are_as_old_as_their_samples() -> None:
    """30 becomes 90 bytes/s at 30 s; 10 s later a third of the window has it, less 3 s."""
    grows = scenario([[30.0], [90.0]], timing=replace(TIMING, measured_age_s=3.0))

    assert grows.measured(np.array([40.0, 40.9]))[:, 0].tolist() == [44.0, 44.0]
