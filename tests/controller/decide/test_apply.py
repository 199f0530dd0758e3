"""What each record of partition 0 does, and what stale ones must not do."""

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import (
    LIMIT,
    NOW,
    S0,
    S1,
    TERM,
    C,
    P,
    Q,
    alive,
    dead,
    death,
    gap,
    goodbye,
    group,
    hello,
    measurement,
    owned,
    record_read,
    released,
    report,
    started,
    starting,
    stopped,
    stopping,
    table,
)
from tests.controller.decide.driver import A, ControllerDriver, assigned, sent

from binwright.controller.decide.apply import (
    CONSUMER_CORRECTED,
    CONSUMER_DIED,
    CONSUMER_LEFT,
    CONSUMER_READY,
    GAP_REPORTED,
    MONITOR_DISCOVERED,
    WRITER_LOST,
    apply_measurement,
    apply_record,
    correct,
    drop_silent_monitors,
    inconsistency,
    later_claim,
)
from binwright.controller.decide.deaths import process_ended
from binwright.controller.decide.events import Action, Destroy, ProcessEnded, Publish, Send
from binwright.controller.decide.states import Sentinel
from binwright.group.fold import Measured
from binwright.group.group import Group
from binwright.group.members import Member
from binwright.group.ownership import Starting, State
from binwright.group.plans import Pack
from binwright.protocol.commands import Leave, StartReading, StopReading, StopWriting
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Claim, Inbound, Planned, TableReport
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition


def applied(known: Group, message: Inbound, offset: int = 90) -> Group:
    return apply_record(known, record_read(message, offset))[0]


# --- claims ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("controller", "offset"), [("me", TERM + 1), ("other", TERM - 1)])
def test_only_another_controllers_later_claim_is_a_later_claim(
    controller: str, offset: int
) -> None:
    assert (
        later_claim(group({}), record_read(Claim(controller=controller, limit=LIMIT), offset))
        is None
    )
    assert (
        later_claim(group({}), record_read(Claim(controller="other", limit=LIMIT), TERM + 1))
        == TERM + 1
    )
    assert later_claim(group({}), record_read(hello(S0), TERM + 1)) is None


def test_a_claim_changes_nothing_of_consumers() -> None:
    known = group({S0: alive(1)})
    assert apply_record(known, record_read(Claim(controller="other", limit=LIMIT))) == (known, ())


def test_the_last_plan_that_was_carried_out_is_stored() -> None:
    plan = Planned(
        term=TERM, reasons=(), consumers=1, moves={}, rscore=0, rates={}, targets={P: S0}
    )
    for message in (plan, replace(plan, keeps=3)):
        assert applied(group({}), message).people.last_plan == {P: S0}


# --- Hello -------------------------------------------------------------------------------------


def test_a_new_process_is_not_ready_and_has_not_replied() -> None:
    before = alive(1, replied_term=TERM, declared_dead_at=NOW, dead=0, goodbye=0, failed_starts=2)
    known = applied(group({S0: replace(before, leaving=True)}), hello(S0))
    assert dict(known.members.by_slot) == {
        S0: Member(
            hello=90,
            process="p",
            sent_ms=7,
            dead=0,
            goodbye=0,
            seen_at=NOW,
            arrived_at=NOW,
            failed_starts=2,
        )
    }


def test_a_new_process_owns_nothing_of_its_predecessor() -> None:
    """Its partitions and tables are released, partitions at their last known offsets."""
    member = alive(1, reading={P: 5, Q: None})
    partitions: dict[TopicPartition, State] = {P: owned(S0, 1), Q: owned(S0, 1), C: owned(S1, 2)}
    known = applied(group({S0: member}, partitions, {"orders": owned(S0, 1)}), hello(S0))
    assert known.members.partitions == {P: released(5), Q: released(), C: owned(S1, 2)}
    assert known.members.writers == {"orders": released()}
    assert known.members.get(S0).reading == {}


# --- Dead --------------------------------------------------------------------------------------


@pytest.mark.parametrize("term", [TERM, TERM - 1, TERM + 1])
def test_a_dead_ends_the_process_it_names_whichever_controller_published_it(term: int) -> None:
    known = group({S0: alive(1, reading={P: 5})}, {P: owned(S0, 1)}, {"orders": owned(S0, 1)})
    known, actions = apply_record(known, record_read(death(S0, 1, term)))
    assert known.members.get(S0).epoch is None
    assert known.members.partitions == {P: released(5)}
    assert known.members.writers == {"orders": released()}
    assert actions == (Log(CONSUMER_DIED, {"slot": S0, "epoch": 1}), Destroy(S0))


def test_a_dead_that_is_published_twice_does_not_end_the_next_process() -> None:
    """Its acknowledgement was lost, and it was published again (B13)."""
    known = applied(group({S0: alive(1)}), death(S0, 1))
    known = applied(applied(known, hello(S0), 91), report(S0, 91, reading=[P]))
    assert apply_record(known, record_read(death(S0, 1))) == (known, ())


def test_a_process_whose_end_the_fleet_reports_is_declared_dead_and_not_destroyed() -> None:
    """Its slot may have another process already, which must not be ended."""
    known = group({S0: alive(1, process="host/7/ab")}, {P: owned(S0, 1)})
    known, actions = process_ended(known, ProcessEnded(NOW, S0, "host/7/ab"))
    assert actions == (Publish(death(S0, 1)),)
    known, actions = apply_record(known, record_read(death(S0, 1)))
    assert actions == (Log(CONSUMER_DIED, {"slot": S0, "epoch": 1}),)
    assert known.members.partitions == {P: released()}


@pytest.mark.parametrize(
    ("member", "more"),
    [
        (alive(1, process="host/7/cd"), {}),
        (dead(1), {}),
        (alive(1, process="host/7/ab"), {"term": None}),
        (alive(1, process="host/7/ab", declared_dead_at=NOW - 1), {}),
    ],
)
def test_a_reported_end_that_is_already_known_or_outdated_changes_nothing(
    member: Member, more: dict[str, Any]
) -> None:
    """Its successor sent Hello; it is dead; there is no term yet; its Dead was just published."""
    known = group({S0: member}, **more)
    assert process_ended(known, ProcessEnded(NOW, S0, "host/7/ab")) == (known, ())


def test_a_dead_of_a_process_that_left_changes_nothing() -> None:
    known = group({S0: alive(1, goodbye=1)})
    assert apply_record(known, record_read(death(S0, 1))) == (known, ())


def test_a_dead_in_the_history_ends_a_process_but_destroys_none() -> None:
    known, actions = apply_record(
        group({S0: alive(1, reading={P: 5})}, term=None), record_read(death(S0, 1))
    )
    assert known.members.get(S0).epoch is None
    assert actions == ()
    assert known.members.partitions == {}, (
        "the owners are not known yet; what it read may be outdated"
    )


def test_a_process_that_dies_before_it_is_ready_counts_as_a_failed_start() -> None:
    known = applied(group({S0: alive(1, ready=False)}), death(S0, 1))
    assert known.members.get(S0).failed_starts == 1
    assert (
        applied(group({S0: alive(1, failed_starts=3)}), death(S0, 1)).members.get(S0).failed_starts
        == 0
    )


@pytest.mark.parametrize(
    ("at", "offset"),
    [
        (owned(S0, 1), 9),
        (stopping(S0, 1), 9),
        (starting(S0, 1), 9),
        (starting(S0, 1, 4), 4),
    ],
)
def test_a_dead_consumers_partition_is_released_at_its_last_known_offset(
    at: object, offset: int
) -> None:
    """A pending start takes precedence: an offset reported before it may lie beyond a gap."""
    known = group({S0: alive(1, reading={P: 9})}, {P: at})  # type: ignore[dict-item]
    assert applied(known, death(S0, 1)).members.partitions == {P: released(offset)}


def test_partitions_of_a_dead_consumer_are_added_if_they_have_no_owner() -> None:
    """This happens in Synchronize, if it dies before it has replied."""
    known = group({S0: alive(1, reading={P: 9})}, {Q: owned(S1, 2)})
    assert applied(known, death(S0, 1)).members.partitions == {P: released(9), Q: owned(S1, 2)}


# --- Goodbye -----------------------------------------------------------------------------------


def test_a_goodbye_releases_at_the_offsets_it_names() -> None:
    member = alive(1, reading={P: 5, Q: 5})
    partitions: dict[TopicPartition, State] = {P: owned(S0, 1), Q: owned(S0, 1), C: owned(S1, 2)}
    known = group({S0: member}, partitions, {"orders": owned(S0, 1)})
    known, actions = apply_record(known, record_read(goodbye(S0, 1, {P: 8, C: 9})))
    assert known.members.partitions == {P: released(8), Q: released(), C: owned(S1, 2)}
    assert known.members.writers == {"orders": released()}
    assert known.members.get(S0).epoch is None
    assert actions == (Log(CONSUMER_LEFT, {"slot": S0, "epoch": 1}),)


def test_a_repeated_goodbye_does_not_affect_the_next_process() -> None:
    known = group({S0: alive(60, goodbye=1)}, {P: owned(S0, 60), Q: stopping(S0, 60)})
    assert applied(known, goodbye(S0, 1, {P: 3, Q: 3})) == known


# --- records of ended epochs -------------------------------------------------------------------


@pytest.mark.parametrize("member", [alive(60), dead(1), alive(1, goodbye=1)])
def test_a_report_of_an_ended_epoch_is_answered_with_leave(member: Member) -> None:
    """An idle process has no other way to learn that it was replaced."""
    known, actions = apply_record(group({S0: member}), record_read(report(S0, 1, reading=[P])))
    assert actions == (Send(S0, Leave(term=TERM, epoch=1)),)
    assert known == group({S0: member})


def test_reports_in_the_history_are_not_answered() -> None:
    for known, offset in ((group({S0: alive(60)}), TERM - 1), (group({}, term=None), 90)):
        assert apply_record(known, record_read(report(S0, 1), offset)) == (known, ())


@pytest.mark.parametrize(
    "message", [stopped(S0, 1, {P: 1}), started(S0, 1, [Q]), goodbye(S0, 1, {}), gap(S0, 1, {})]
)
def test_other_records_of_an_ended_epoch_are_dropped(message: Inbound) -> None:
    known = group({S0: alive(60)}, {P: stopping(S0, 60), Q: starting(S0, 60)})
    assert apply_record(known, record_read(message)) == (known, ())


def test_every_record_of_a_consumer_updates_seen_at() -> None:
    for message in (report(S0, 1), stopped(S0, 1, {}), started(S0, 1, []), gap(S0, 1, {})):
        known, _ = apply_record(group({S0: alive(1)}), record_read(message, now=NOW + 5))
        assert known.members.get(S0).seen_at == NOW + 5


# --- reports -----------------------------------------------------------------------------------


def test_the_first_ready_report_makes_a_consumer_ready() -> None:
    known = group({S0: alive(60, ready=False)})
    known, actions = apply_record(known, record_read(report(S0, 60, ready=False)))
    assert (known.members.get(S0).usable, known.members.get(S0).replied_term, actions) == (
        False,
        TERM,
        (),
    )
    known, actions = apply_record(known, record_read(report(S0, 60)))
    assert known.members.get(S0).usable
    assert actions == (Log(CONSUMER_READY, {"slot": S0}),)
    assert apply_record(known, record_read(report(S0, 60)))[1] == ()


def test_a_report_stores_the_positions_of_partitions_and_tables() -> None:
    known = applied(
        group({S0: alive(1)}), report(S0, 1, reading={P: 5, Q: None}, writing=["orders"])
    )
    assert known.members.get(S0).reading == {P: 5, Q: None}
    assert known.members.get(S0).writing == {"orders": table()}


# --- acknowledgements --------------------------------------------------------------------------


def test_a_stopped_releases_at_the_next_offset_or_without_one_if_it_was_not_read() -> None:
    member = alive(1, reading={P: 5, Q: 5, C: 5})
    partitions: dict[TopicPartition, State] = {
        P: stopping(S0, 1),
        Q: stopping(S0, 1),
        C: owned(S0, 1),
    }
    known = applied(group({S0: member}, partitions), stopped(S0, 1, {P: 8, Q: None}))
    assert known.members.partitions == {P: released(8), Q: released(), C: owned(S0, 1)}
    assert known.members.get(S0).reading == {C: 5}, "its offset of a stopped partition is dropped"


def test_a_stopped_of_tables_releases_them() -> None:
    known = group({S0: alive(1)}, None, {"orders": stopping(S0, 1), "clicks": owned(S0, 1)})
    known = applied(known, stopped(S0, 1, {}, ["orders", "clicks"]))
    assert known.members.writers == {"orders": released(), "clicks": owned(S0, 1)}


def test_a_started_makes_its_sender_the_owner_and_stores_the_offsets() -> None:
    partitions: dict[TopicPartition, State] = {
        P: starting(S0, 1),
        Q: starting(S0, 1),
        C: released(),
    }
    known = group({S0: alive(1, reading={Q: 1})}, partitions, {"orders": starting(S0, 1)})
    known = applied(known, started(S0, 1, [P, C], ["orders"]))
    assert known.members.partitions == {P: owned(S0, 1), Q: starting(S0, 1), C: released()}
    assert known.members.writers == {"orders": owned(S0, 1)}
    assert known.members.get(S0).reading == {P: 3, Q: 1}
    assert applied(known, death(S0, 1)).members.partitions[P] == released(3)


# --- What a consumer's reports correct -----------------------------------------------------------

BOTH = {S0: alive(1), S1: alive(2)}
WRITER = {"orders": owned(S0, 1)}


# --- reading -----------------------------------------------------------------------------------


def test_an_owner_that_does_not_read_its_partition_is_inconsistent() -> None:
    known = group(BOTH, {P: owned(S0, 1), Q: owned(S0, 1), C: owned(S1, 2)})
    assert inconsistency(known, report(S0, 1)) == "consumer 0 does not read orders-0"
    assert inconsistency(known, report(S0, 1, reading={P: 3, Q: None})) is None


@pytest.mark.parametrize("at", [starting(S0, 1, 4), stopping(S0, 1), owned(S1, 2), released()])
def test_moving_partitions_and_those_of_other_owners_are_not_inconsistent(at: State) -> None:
    known = group(BOTH, {P: at})
    assert inconsistency(known, report(S0, 1)) is None
    assert inconsistency(known, report(S0, 1, reading=[P])) is None


def test_reports_of_ended_epochs_and_other_records_are_not_inconsistent() -> None:
    known = group({S0: alive(60)}, {P: owned(S0, 60)})
    for message in (report(S0, 1), hello(S0)):
        assert inconsistency(known, message) is None
        assert correct(known, message, NOW) == (known, ())


@pytest.mark.parametrize("at", [starting(S0, 1), stopping(S0, 1), owned(S0, 1)])
def test_a_report_of_what_the_consumer_owns_corrects_nothing(at: State) -> None:
    known = group(BOTH, {P: at}, {"orders": at})
    agreeing = report(S0, 1, reading=[P], writing=["orders"])
    assert correct(known, agreeing, NOW) == (known, ())


@pytest.mark.parametrize("at", [owned(S1, 2), starting(S1, 2), stopping(S1, 2), released(4)])
def test_a_consumer_that_reads_what_it_does_not_own_is_stopped(at: State) -> None:
    """No row depends on it: the owners stay, and the controller does not synchronize."""
    known = group(BOTH, {P: at, Q: owned(S0, 1)})
    after, actions = correct(known, report(S0, 1, reading=[P, Q, C]), NOW)
    ((slot, stop),) = sent(actions)
    assert isinstance(stop, StopReading)
    assert (slot, stop.epoch, stop.partitions) == (S0, 1, (C, P))
    assert Log(CONSUMER_CORRECTED, {"slot": S0, "partitions": 2, "tables": 0}) in actions
    assert after.members.partitions == known.members.partitions
    assert after.revisions == known.revisions + 1


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [owned(S1, 2), starting(S1, 2), stopping(S1, 2), released()])
def test_a_consumer_that_writes_a_table_it_does_not_own_is_stopped(at: State) -> None:
    known = group(BOTH, None, {"orders": at})
    after, actions = correct(known, report(S0, 1, writing=["orders"]), NOW)
    ((slot, stop),) = sent(actions)
    assert isinstance(stop, StopWriting)
    assert (slot, stop.epoch, stop.tables) == (S0, 1, ("orders",))
    assert after.members.writers == known.members.writers


def test_tables_of_other_names_are_of_the_topic_whose_role_it_is() -> None:
    tables = {name: TableReport(topic="orders", state="landing", committed={}) for name in "ab"}
    known = group(BOTH, None, {"orders": owned(S0, 1)})
    assert correct(known, report(S0, 1, writing=tables), NOW) == (known, ())
    known = group(BOTH, None, {"orders": owned(S1, 2)})
    _, actions = correct(known, report(S0, 1, writing=tables), NOW)
    ((_, stop),) = sent(actions)
    assert isinstance(stop, StopWriting)
    assert stop.tables == ("orders",)


def test_a_writer_that_does_not_list_its_table_has_lost_it() -> None:
    roles: dict[str, State] = {
        "orders": owned(S0, 1),
        "clicks": starting(S0, 1),
        "views": owned(S1, 2),
    }
    known, actions = correct(group(BOTH, None, roles), report(S0, 1), NOW)
    assert known.members.writers == {**roles, "orders": released()}
    assert actions == (Log(WRITER_LOST, {"slot": S0, "topic": "orders"}),)


# --- gaps --------------------------------------------------------------------------------------


def test_offsets_missing_in_a_table_are_read_again_by_the_reader() -> None:
    members = {S0: alive(1), S1: alive(2, reading={P: 9, Q: 8, C: 9})}
    partitions = {P: owned(S1, 2), Q: owned(S1, 2), C: owned(S1, 2)}
    known, actions = correct(
        group(members, partitions, WRITER), gap(S0, 1, {P: 5, Q: 8, C: 5}), NOW
    )
    ((slot, start),) = sent(actions)
    assert isinstance(start, StartReading)
    assert (slot, start.epoch, start.offsets) == (S1, 2, {P: 5})
    assert known.members.partitions == {**partitions, P: Starting(S1, 2, start.revision, NOW, 5)}
    assert Log(GAP_REPORTED, {"slot": S0, "partitions": ["orders-0"]}) in actions


def test_a_reader_that_has_not_passed_the_gap_gets_no_command() -> None:
    """It will stage the missing offsets anyway, or does not know its position yet."""
    for reading in ({P: 5}, {P: 4}, {P: None}, {}):
        members = {S0: alive(1), S1: alive(2, reading=reading)}
        known = group(members, {P: owned(S1, 2)}, WRITER)
        assert correct(known, gap(S0, 1, {P: 5}), NOW) == (known, ())


def test_a_gap_without_a_reader_sets_the_offset_of_the_next_start() -> None:
    known, actions = correct(group(BOTH, {P: released(9)}, WRITER), gap(S0, 1, {P: 5}), NOW)
    assert known.members.partitions == {P: released(5)}
    assert sent(actions) == []
    assert Log(GAP_REPORTED, {"slot": S0, "partitions": ["orders-0"]}) in actions


@pytest.mark.parametrize("at", [starting(S1, 2, 9), stopping(S1, 2), None])
def test_a_gap_of_a_moving_or_unknown_partition_waits(at: State | None) -> None:
    members = {S0: alive(1), S1: alive(2, reading={P: 9})}
    known = group(members, {} if at is None else {P: at}, WRITER)
    assert correct(known, gap(S0, 1, {P: 5}), NOW) == (known, ())


@pytest.mark.parametrize("role", [owned(S1, 2), starting(S0, 1), owned(S0, 60), None])
def test_only_the_tables_writer_can_report_a_gap(role: State | None) -> None:
    members = {S0: alive(1), S1: alive(2, reading={P: 9})}
    roles = {} if role is None else {"orders": role}
    known = group(members, {P: owned(S1, 2)}, roles)
    assert correct(known, gap(S0, 1, {P: 5}), NOW) == (known, ())


def test_a_gap_of_an_ended_epoch_is_dropped() -> None:
    message: Inbound = gap(S0, 1, {P: 5})
    known = group({S0: alive(60)}, {P: released(9)}, {"orders": owned(S0, 1)})
    assert correct(known, message, NOW) == (known, ())


# --- What each measurement does, and what those of other monitors must not do --------------------

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
