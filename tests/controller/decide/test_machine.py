"""Situations in which no state may get stuck."""

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
    published,
    sent_commands,
)

from binwright.controller.decide.events import ProcessEnded, Reconcile
from binwright.controller.decide.states import Manage, Sentinel
from binwright.group.ownership import Owned, Released
from binwright.group.plans import Pack
from binwright.protocol.commands import StartReading, StopReading
from binwright.protocol.metadata import Dead
from binwright.protocol.model import Slot, TopicPartition

RATES = {P: 50.0, Q: 40.0}
CLICKS = TopicPartition("clicks", 0)


def pass_seconds(driver: ControllerDriver, seconds: int) -> None:
    """Let time pass while all living consumers report what they own."""
    for _ in range(seconds):
        driver.tick()
        for slot in (A, B):
            if driver.group.members.get(slot).epoch is not None:
                owned_now = [
                    p for p, at in driver.group.members.partitions.items() if at.slot == slot
                ]
                driver.report(slot, reading=owned_now, ready=driver.group.members.get(slot).ready)


def requested_packings(driver: ControllerDriver, seconds: int) -> int:
    return sum(isinstance(action, Pack) for action in driver.tick(seconds))


# --- Synchronize -------------------------------------------------------------------------------


def test_after_a_pause_in_synchronize_consumers_get_more_time_to_reply() -> None:
    """The replies may be in partition 0, not read yet."""
    driver = ControllerDriver()
    driver.hello(A)
    driver.claim()
    driver.now += 60
    assert published(driver.tick()) == []
    assert published(driver.tick(9)) == []
    assert published(driver.tick(2)) == [Dead(slot=A, epoch=1, term=2)]


# --- gone partitions ---------------------------------------------------------------------------


def test_a_gone_partition_without_a_reader_triggers_no_plan() -> None:
    """No plan can change it: a packing would be requested every second, forever."""
    driver = assigned(RATES, {P: A, Q: B})
    driver.dead(B)
    driver.measure({P: 50.0})
    assert requested_packings(driver, 5) == 0
    assert driver.group.members.partitions.keys() == {P}


def test_a_pending_start_of_a_gone_partition_does_not_block_the_plan() -> None:
    driver = leading(RATES, A)
    (start,) = sent_commands(driver.pack({P: A, Q: A}), StartReading)
    driver.started(replace(start, offsets={P: 7}), A)
    driver.measure({P: 50.0})
    (stop,) = sent_commands(driver.tick(), StopReading)
    assert stop.partitions == (Q,)
    driver.stopped(stop, A, None)
    assert driver.phase() == Sentinel
    assert driver.group.members.partitions.keys() == {P}


# --- deadlines ---------------------------------------------------------------------------------


def test_a_new_process_that_starts_slowly_blocks_no_partition() -> None:
    """Its slot's partitions start at another consumer at once."""
    driver = assigned(RATES, {P: A, Q: A})
    driver.hello(B)
    driver.report(B)
    driver.hello(A)
    (start,) = sent_commands(driver.pack({P: B, Q: B}), StartReading)
    driver.started(start, B)
    assert driver.partition_state(P) == Owned(B, start.epoch)
    assert driver.phase() == Sentinel


def test_a_process_that_never_becomes_ready_is_replaced_at_growing_intervals() -> None:
    """On a slow machine each replacement would make it even slower."""
    driver = assigned(RATES, {P: A, Q: A})
    lifetimes = []
    for _ in range(3):
        driver.hello(A)
        started_at, death = driver.now, Dead(slot=A, epoch=driver.offset, term=1)
        driver.actions.clear()
        while death not in published(driver.actions) and driver.now - started_at < 2_000:
            pass_seconds(driver, 1)
        driver.read(death)
        lifetimes.append(driver.now - started_at)
    assert lifetimes == [301, 601, 1201]
    driver.hello(A)
    driver.report(A)
    assert driver.group.members.get(A).ready
    driver.dead(A)
    assert driver.group.members.get(A).failed_starts == 0


def test_with_no_other_consumer_partitions_wait_for_their_starting_owner() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    driver.hello(A)
    driver.pack({P: A, Q: A})
    pass_seconds(driver, 121)
    assert driver.phase() == Sentinel
    assert not any(isinstance(m, Dead) for m in published(driver.actions))
    assert driver.partition_state(P) == Released(7)


# --- a group at max_slots ----------------------------------------------------------------------


def at_max_slots(*owners: int) -> ControllerDriver:
    driver = assigned({P: 90.0, Q: 80.0, CLICKS: 10.0}, dict.fromkeys([P, Q, CLICKS], A))
    config = CONFIG.with_settings(max_slots=2)
    driver.state = replace(driver.state, group=replace(driver.group, config=config))
    driver.hello(B)
    driver.report(B)
    driver.pack(dict(zip([P, Q, CLICKS], map(Slot, owners), strict=True)))
    return driver


def test_at_max_slots_an_overload_moves_partitions_if_that_reduces_it() -> None:
    assert at_max_slots(0, 1, 2).phase() == Manage


# --- consumers that are not needed -------------------------------------------------------------


def test_a_consumer_started_for_a_rejected_plan_is_retired() -> None:
    driver = assigned(RATES, {P: A, Q: A})
    driver.hello(B)
    driver.report(B)
    pass_seconds(driver, 60)
    actions = driver.pack({P: A, Q: A})
    assert Reconcile(frozenset({A})) in actions
    assert driver.phase() == Sentinel


# --- ended processes ---------------------------------------------------------------------------


def test_a_process_whose_end_the_fleet_reports_is_declared_dead_at_once() -> None:
    driver = assigned(RATES, {P: A, Q: B})
    epoch = driver.group.members.get(B).epoch
    actions = driver.feed(ProcessEnded(driver.now, B, driver.group.members.get(B).process))
    assert published(actions) == [Dead(slot=B, epoch=epoch or 0, term=driver.group.term or 0)]
    assert driver.phase() == Sentinel
