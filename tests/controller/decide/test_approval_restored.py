"""In mode `approve` a restored assignment is compared again only after a change."""

from tests.controller.decide.approvals import APART, BOTH_AT_A, RATES, R, with_approved_plan
from tests.controller.decide.driver import A, B, ControllerDriver, P, Q, sent_commands

from binwright.controller.decide.states import Sentinel
from binwright.protocol.commands import StartReading, StopReading
from binwright.protocol.metadata import Accepted


def restored() -> ControllerDriver:
    """Return a leader whose last tick found the assignment as approved."""
    driver = with_approved_plan(APART, RATES)
    driver.tick()
    assert isinstance(driver.state, Sentinel)
    assert driver.state.restored_state is not None
    return driver


def test_reports_and_measurements_do_not_repeat_the_comparison() -> None:
    """A comparison is O(partitions), each second."""
    driver = restored()
    assert isinstance(driver.state, Sentinel)
    before = driver.state.restored_state
    for _ in range(3):
        driver.report(A, reading=[P])
        driver.report(B, reading=[Q])
        driver.measure({p: rate + 1 for p, rate in RATES.items()})
        driver.tick()
    assert isinstance(driver.state, Sentinel)
    assert driver.state.restored_state is before


def test_a_partition_that_is_gone_later_is_stopped() -> None:
    driver = restored()
    driver.measure({P: 90.0})
    (stop,) = sent_commands(driver.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_a_partition_that_is_new_later_is_assigned() -> None:
    driver = restored()
    driver.measure({**RATES, R: 1.0})
    (start,) = sent_commands(driver.tick(), StartReading)
    assert start.offsets.keys() == {R}


def test_another_approved_plan_is_carried_out() -> None:
    driver = restored()
    driver.read(Accepted(term=driver.group.term or 0, plan=1, targets=BOTH_AT_A))
    (stop,) = sent_commands(driver.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_an_approved_consumer_that_is_ready_later_gets_its_partitions_back() -> None:
    driver = restored()
    (start,) = sent_commands(driver.dead(B) + driver.tick(), StartReading)
    driver.started(start, A)
    driver.tick()
    assert isinstance(driver.state, Sentinel)
    assert driver.state.restored_state is not None, "until then nothing is to be restored"
    driver.hello(B)
    driver.report(B)
    (stop,) = sent_commands(driver.tick(), StopReading)
    assert stop.partitions == (Q,)


def test_while_a_partition_is_displaced_no_plan_is_made() -> None:
    """Also while the comparison is not repeated."""
    driver = restored()
    (start,) = sent_commands(driver.dead(B) + driver.tick(), StartReading)
    driver.started(start, A)  # above its limit: 170 of 120
    for _ in range(3):
        driver.report(A, reading=[P, Q])
        driver.measure(dict(RATES))
        assert driver.tick() == []
