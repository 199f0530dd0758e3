"""The controller's side of the protocol: taking over, and records of consumers."""

from tests.builders import LIMIT
from tests.controller.decide.driver import (
    A,
    B,
    ControllerDriver,
    P,
    Q,
    assigned,
    leading,
    published,
    sent_commands,
)

from binwright.controller.decide.events import Broadcast, Destroy, StepDown
from binwright.controller.decide.states import Manage, Sentinel, SteppedDown, Synchronize
from binwright.group.ownership import Owned, Released
from binwright.protocol.commands import Leave, StartReading, StateQuery, StopReading
from binwright.protocol.metadata import Claim, Dead, Goodbye

RATES = {P: 50.0, Q: 40.0}


# --- Synchronize -------------------------------------------------------------------------------


def test_a_leadership_begins_with_a_claim_and_queries_every_slot_once_that_is_read_back() -> None:
    driver = ControllerDriver()
    assert published(driver.actions) == [Claim(controller="me", limit=LIMIT)]
    actions = driver.read(Claim(controller="me", limit=LIMIT))
    assert Broadcast(StateQuery(term=1)) in actions
    assert driver.phase() == Sentinel


def test_no_command_is_sent_before_the_history_is_read_and_living_consumers_have_replied() -> None:
    driver = ControllerDriver()
    epoch = driver.hello(A)
    driver.report(A, term=0)
    assert driver.phase() == Synchronize
    driver.claim()
    assert driver.phase() == Synchronize, "living consumers must reply first"
    driver.report(A, reading=[P])
    assert driver.phase() == Sentinel
    assert driver.partition_state(P) == Owned(A, epoch)


def test_another_controllers_earlier_claim_has_no_effect() -> None:
    driver = ControllerDriver()
    driver.read(Claim(controller="other", limit=LIMIT))
    driver.claim()
    assert driver.phase() == Sentinel


def test_another_controllers_later_claim_ends_the_leadership() -> None:
    for driver in (leading(RATES), assigned(RATES, {P: A, Q: A})):
        assert driver.read(Claim(controller="other", limit=LIMIT)) == [StepDown(driver.offset)]
        assert driver.phase() == SteppedDown
        assert driver.tick(5) == []
    driver = ControllerDriver()
    driver.hello(A)
    driver.claim()
    assert driver.read(Claim(controller="other", limit=LIMIT)) == [StepDown(driver.offset)]


def test_the_own_claim_read_twice_has_no_effect() -> None:
    driver = leading(RATES)
    driver.claim()
    assert driver.phase() == Sentinel


def test_a_consumer_that_does_not_reply_in_time_is_declared_dead_and_its_partitions_restart() -> (
    None
):
    """At the offsets of its last report, although it never replied to this controller."""
    driver = ControllerDriver()
    epoch = driver.hello(A)
    driver.hello(B)
    driver.report(A, term=0, reading={P: 8})
    driver.claim()
    driver.report(B)
    driver.measure(dict(RATES))
    actions = []
    for _ in range(12):  # it reports, but does not read the query
        actions += driver.tick()
        driver.report(A, term=0, reading={P: 9})
        driver.report(B)
    assert published(actions) == [Dead(slot=A, epoch=epoch, term=driver.group.term or 0)]
    driver.dead(A)
    assert driver.phase() == Sentinel
    (start,) = sent_commands(driver.pack({P: B, Q: B}), StartReading)
    assert start.offsets == {P: 9, Q: None}


def test_a_partition_with_two_readers_stays_with_one_and_is_stopped_at_the_other() -> None:
    driver = ControllerDriver()
    epoch = driver.hello(A)
    driver.hello(B)
    driver.claim()
    driver.report(A, reading=[P])
    (stop,) = sent_commands(driver.report(B, reading=[P]), StopReading)
    assert stop.epoch == driver.group.members.get(B).epoch
    assert driver.phase() == Sentinel
    assert driver.partition_state(P) == Owned(A, epoch)
    driver.stopped(stop, B, 9)
    assert driver.partition_state(P) == Owned(A, epoch)


def test_partitions_measured_before_the_term_are_added_when_it_begins() -> None:
    driver = ControllerDriver()
    driver.measure({P: 1.0})
    assert driver.group.members.partitions == {}
    driver.claim()
    assert driver.partition_state(P) == Released()


# --- records of living and ended processes -----------------------------------------------------


def test_a_process_that_was_declared_dead_is_sent_leave() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    old = driver.group.members.get(A).hello
    assert Destroy(A) in driver.dead(A)
    assert sent_commands(driver.report(A, reading=[P, Q], epoch=old), Leave) == [
        Leave(term=driver.group.term or 0, epoch=old or 0)
    ]
    assert driver.read(Goodbye(slot=A, epoch=old or 0, next={P: 9})) == []
    assert driver.partition_state(P) == Released(7)


def test_a_goodbye_does_not_change_partitions_of_other_owners() -> None:
    driver = assigned(RATES, {P: A, Q: B})
    before = driver.partition_state(Q)
    driver.read(Goodbye(slot=A, epoch=driver.group.members.get(A).epoch or 0, next={P: 9, Q: 1}))
    assert driver.partition_state(Q) == before


def test_a_goodbye_acknowledges_the_pending_stop() -> None:
    driver = assigned({P: 70.0, Q: 60.0}, {P: A, Q: A})
    driver.hello(B)
    driver.report(B)
    (stop,) = sent_commands(driver.pack({P: A, Q: B}), StopReading)
    assert stop.partitions == (Q,)
    actions = driver.read(Goodbye(slot=A, epoch=stop.epoch, next={P: 4, Q: 9}))
    (start,) = sent_commands(actions, StartReading)
    assert start.offsets == {P: 4, Q: 9}


def test_a_report_that_contradicts_the_assignment_leads_to_synchronize() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    actions = driver.report(A, reading=[P])
    assert published(actions) == [Claim(controller="me", limit=LIMIT)]
    assert driver.phase() == Synchronize
    driver.claim()
    driver.report(A, reading=[P])
    assert driver.phase() == Sentinel
    assert driver.partition_state(Q) == Released()


def test_a_report_of_a_partition_of_another_owner_is_answered_with_a_stop() -> None:
    driver = assigned(RATES, {P: A, Q: B})
    (stop,) = sent_commands(driver.report(B, reading=[P, Q]), StopReading)
    assert stop.partitions == (P,)
    assert driver.phase() == Sentinel


def test_a_report_during_a_move_is_consistent() -> None:
    driver = assigned({P: 70.0, Q: 60.0}, {P: A, Q: A})
    driver.hello(B)
    driver.report(B)
    driver.pack({P: A, Q: B})
    driver.report(A, reading=[P])
    assert driver.phase() == Manage
