"""What each record of partition 0 does, and what stale ones must not do."""

from dataclasses import replace
from typing import Any

import pytest
from tests.builders import (
    CONFIG,
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

from binwright.controller.decide.apply import (
    CONSUMER_DIED,
    CONSUMER_LEFT,
    CONSUMER_READY,
    apply_record,
    later_claim,
)
from binwright.controller.decide.deaths import process_ended
from binwright.controller.decide.events import Destroy, ProcessEnded, Publish, Send
from binwright.group.group import Group
from binwright.group.members import Member
from binwright.group.ownership import State
from binwright.protocol.commands import Leave
from binwright.protocol.log_events import Log
from binwright.protocol.metadata import Claim, Inbound, Planned
from binwright.protocol.model import TopicPartition


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


def test_a_dead_that_is_not_read_back_in_time_is_published_again_at_a_reported_end() -> None:
    known = group(
        {
            S0: alive(
                1, process="host/7/ab", declared_dead_at=NOW - CONFIG.settings.command_retry_s - 1
            )
        }
    )
    assert process_ended(known, ProcessEnded(NOW, S0, "host/7/ab"))[1] == (Publish(death(S0, 1)),)


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
