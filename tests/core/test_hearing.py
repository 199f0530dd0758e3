"""What each record of partition 0 does, and what stale ones must not do."""

from dataclasses import replace
from typing import Any

import pytest

from binwright.core.events import Destroy, Ended, Publish, Say, Tell
from binwright.core.group import Group, Member
from binwright.core.hearing import declare_dead, ended, hear, overtaken
from binwright.core.messages import Claim, Inbound, Leave, Planned
from binwright.core.model import TopicPartition
from binwright.core.ownership import State

from .builders import (
    NOW,
    RULES,
    S0,
    S1,
    S2,
    TERM,
    C,
    P,
    Q,
    alive,
    dead,
    death,
    free,
    gap,
    goodbye,
    group,
    heard,
    hello,
    owned,
    report,
    started,
    starting,
    stopped,
    stopping,
    table,
)


def takes(known: Group, message: Inbound, offset: int = 90) -> Group:
    return hear(known, heard(message, offset))[0]


# --- claims ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("controller", "offset"), [("me", TERM + 1), ("other", TERM - 1)])
def test_only_another_controllers_later_claim_overtakes(controller: str, offset: int) -> None:
    assert overtaken(group({}), heard(Claim(controller=controller), offset)) is None
    assert overtaken(group({}), heard(Claim(controller="other"), TERM + 1)) == TERM + 1
    assert overtaken(group({}), heard(hello(S0), TERM + 1)) is None


def test_a_claim_says_nothing_of_consumers() -> None:
    known = group({S0: alive(1)})
    assert hear(known, heard(Claim(controller="other"))) == (known, ())


def test_the_last_plan_that_went_ahead_is_remembered() -> None:
    plan = Planned(
        term=TERM, reasons=(), consumers=1, moves={}, rscore=0, rates={}, targets={P: S0}
    )
    for message in (plan, replace(plan, keeps=3)):
        assert takes(group({}), message).last_plan == {P: S0}


# --- Hello -------------------------------------------------------------------------------------


def test_a_new_process_is_not_ready_and_has_answered_nothing() -> None:
    before = alive(1, answered=TERM, declared_dead_at=NOW, dead=0, goodbye=0, failed_starts=2)
    known = takes(group({S0: replace(before, leaving=True)}), hello(S0))
    assert dict(known.members) == {
        S0: Member(
            hello=90,
            process="p",
            sent_ms=7,
            dead=0,
            goodbye=0,
            heard_at=NOW,
            arrived_at=NOW,
            failed_starts=2,
        )
    }


def test_a_new_process_takes_over_nothing_of_the_one_before() -> None:
    """Its partitions and tables are released: partitions at the last offsets known."""
    member = alive(1, reading={P: 5, Q: None})
    partitions: dict[TopicPartition, State] = {P: owned(S0, 1), Q: owned(S0, 1), C: owned(S1, 2)}
    known = takes(group({S0: member}, partitions, {"orders": owned(S0, 1)}), hello(S0))
    assert known.partitions == {P: free(5), Q: free(), C: owned(S1, 2)}
    assert known.writers == {"orders": free()}
    assert known.member(S0).reading == {}


# --- Dead --------------------------------------------------------------------------------------


@pytest.mark.parametrize("term", [TERM, TERM - 1, TERM + 1])
def test_a_dead_ends_the_process_it_names_whoever_wrote_it(term: int) -> None:
    known = group({S0: alive(1, reading={P: 5})}, {P: owned(S0, 1)}, {"orders": owned(S0, 1)})
    known, actions = hear(known, heard(death(S0, 1, term)))
    assert known.member(S0).epoch is None
    assert known.partitions == {P: free(5)}
    assert known.writers == {"orders": free()}
    assert actions == (Say("consumer.died", {"slot": S0, "epoch": 1}), Destroy(S0))


def test_a_dead_that_stands_there_twice_does_not_end_the_next_process() -> None:
    """Its confirmation was lost, and it was written again (B13)."""
    known = takes(group({S0: alive(1)}), death(S0, 1))
    known = takes(takes(known, hello(S0), 91), report(S0, 91, reading=[P]))
    assert hear(known, heard(death(S0, 1))) == (known, ())


def test_a_process_that_the_fleet_saw_end_is_declared_dead_and_not_destroyed() -> None:
    """Its slot may have another process already: that one is none to end."""
    known = group({S0: alive(1, process="host/7/ab")}, {P: owned(S0, 1)})
    known, actions = ended(known, Ended(NOW, S0, "host/7/ab"))
    assert actions == (Publish(death(S0, 1)),)
    known, actions = hear(known, heard(death(S0, 1)))
    assert actions == (Say("consumer.died", {"slot": S0, "epoch": 1}),)
    assert known.partitions == {P: free()}


@pytest.mark.parametrize(
    ("member", "more"),
    [
        (alive(1, process="host/7/cd"), {}),
        (dead(1), {}),
        (alive(1, process="host/7/ab"), {"term": None}),
        (alive(1, process="host/7/ab", declared_dead_at=NOW - 1), {}),
    ],
)
def test_an_end_that_is_no_news_changes_nothing(member: Member, more: dict[str, Any]) -> None:
    """Its successor has said Hello; it is dead; nobody may say so yet; it was said just now."""
    known = group({S0: member}, **more)
    assert ended(known, Ended(NOW, S0, "host/7/ab")) == (known, ())


def test_an_end_that_is_not_read_back_in_time_is_said_again() -> None:
    known = group({S0: alive(1, process="host/7/ab", declared_dead_at=NOW - RULES.repeat_s - 1)})
    assert ended(known, Ended(NOW, S0, "host/7/ab"))[1] == (Publish(death(S0, 1)),)


def test_a_dead_of_a_process_that_left_changes_nothing() -> None:
    known = group({S0: alive(1, goodbye=1)})
    assert hear(known, heard(death(S0, 1))) == (known, ())


def test_a_dead_in_history_ends_but_destroys_nobody() -> None:
    known, actions = hear(group({S0: alive(1, reading={P: 5})}, term=None), heard(death(S0, 1)))
    assert known.member(S0).epoch is None
    assert actions == ()
    assert known.partitions == {}, "who reads what is not known yet, and may be long over"


def test_what_dies_before_it_is_ready_counts_as_a_failed_start() -> None:
    known = takes(group({S0: alive(1, ready=False)}), death(S0, 1))
    assert known.member(S0).failed_starts == 1
    assert takes(group({S0: alive(1, failed_starts=3)}), death(S0, 1)).member(S0).failed_starts == 0


@pytest.mark.parametrize(
    ("at", "offset"),
    [
        (owned(S0, 1), 9),
        (stopping(S0, 1), 9),
        (starting(S0, 1), 9),
        (starting(S0, 1, 4), 4),
    ],
)
def test_a_dead_consumers_partition_goes_on_at_its_last_known_offset(
    at: object, offset: int
) -> None:
    """A start that is out goes first: what was reported before it may lie beyond a gap."""
    known = group({S0: alive(1, reading={P: 9})}, {P: at})  # type: ignore[dict-item]
    assert takes(known, death(S0, 1)).partitions == {P: free(offset)}


def test_what_a_dead_consumer_read_is_known_though_nobody_owned_it() -> None:
    """So it is while a controller synchronizes: it dies before it has answered."""
    known = group({S0: alive(1, reading={P: 9})}, {Q: owned(S1, 2)})
    assert takes(known, death(S0, 1)).partitions == {P: free(9), Q: owned(S1, 2)}


# --- Goodbye -----------------------------------------------------------------------------------


def test_a_goodbye_releases_at_the_offsets_it_names() -> None:
    member = alive(1, reading={P: 5, Q: 5})
    partitions: dict[TopicPartition, State] = {P: owned(S0, 1), Q: owned(S0, 1), C: owned(S1, 2)}
    known = group({S0: member}, partitions, {"orders": owned(S0, 1)})
    known, actions = hear(known, heard(goodbye(S0, 1, {P: 8, C: 9})))
    assert known.partitions == {P: free(8), Q: free(), C: owned(S1, 2)}
    assert known.writers == {"orders": free()}
    assert known.member(S0).epoch is None
    assert actions == (Say("consumer.left", {"slot": S0, "epoch": 1}),)


def test_a_goodbye_said_again_does_not_speak_for_the_next_process() -> None:
    known = group({S0: alive(60, goodbye=1)}, {P: owned(S0, 60), Q: stopping(S0, 60)})
    assert takes(known, goodbye(S0, 1, {P: 3, Q: 3})) == known


# --- records of the voided and the superseded --------------------------------------------------


@pytest.mark.parametrize("member", [alive(60), dead(1), alive(1, goodbye=1)])
def test_a_report_from_an_epoch_that_is_no_more_is_answered_with_leave(member: Member) -> None:
    """An idle process would never learn it otherwise."""
    known, actions = hear(group({S0: member}), heard(report(S0, 1, reading=[P])))
    assert actions == (Tell(S0, Leave(term=TERM, epoch=1)),)
    assert known == group({S0: member})


def test_history_is_not_answered() -> None:
    for known, offset in ((group({S0: alive(60)}), TERM - 1), (group({}, term=None), 90)):
        assert hear(known, heard(report(S0, 1), offset)) == (known, ())


@pytest.mark.parametrize(
    "message", [stopped(S0, 1, {P: 1}), started(S0, 1, [Q]), goodbye(S0, 1, {}), gap(S0, 1, {})]
)
def test_other_records_of_the_superseded_are_dropped(message: Inbound) -> None:
    known = group({S0: alive(60)}, {P: stopping(S0, 60), Q: starting(S0, 60)})
    assert hear(known, heard(message)) == (known, ())


def test_every_record_is_a_sign_of_life() -> None:
    for message in (report(S0, 1), stopped(S0, 1, {}), started(S0, 1, []), gap(S0, 1, {})):
        known, _ = hear(group({S0: alive(1)}), heard(message, now=NOW + 5))
        assert known.member(S0).heard_at == NOW + 5


# --- reports -----------------------------------------------------------------------------------


def test_the_first_report_that_says_so_makes_it_ready() -> None:
    known = group({S0: alive(60, ready=False)})
    known, actions = hear(known, heard(report(S0, 60, ready=False)))
    assert (known.member(S0).usable, known.member(S0).answered, actions) == (False, TERM, ())
    known, actions = hear(known, heard(report(S0, 60)))
    assert known.member(S0).usable
    assert actions == (Say("consumer.ready", {"slot": S0}),)
    assert hear(known, heard(report(S0, 60)))[1] == ()


def test_a_report_tells_how_far_it_is_with_partitions_and_tables() -> None:
    known = takes(group({S0: alive(1)}), report(S0, 1, reading={P: 5, Q: None}, writing=["orders"]))
    assert known.member(S0).reading == {P: 5, Q: None}
    assert known.member(S0).writing == {"orders": table()}


# --- acknowledgements --------------------------------------------------------------------------


def test_a_stopped_releases_at_the_next_offset_or_nowhere_if_it_was_not_held() -> None:
    member = alive(1, reading={P: 5, Q: 5, C: 5})
    partitions: dict[TopicPartition, State] = {
        P: stopping(S0, 1),
        Q: stopping(S0, 1),
        C: owned(S0, 1),
    }
    known = takes(group({S0: member}, partitions), stopped(S0, 1, {P: 8, Q: None}))
    assert known.partitions == {P: free(8), Q: free(), C: owned(S0, 1)}
    assert known.member(S0).reading == {C: 5}, "what it reads no more is not known of it"


def test_a_stopped_of_tables_releases_them() -> None:
    known = group({S0: alive(1)}, None, {"orders": stopping(S0, 1), "clicks": owned(S0, 1)})
    known = takes(known, stopped(S0, 1, {}, ["orders", "clicks"]))
    assert known.writers == {"orders": free(), "clicks": owned(S0, 1)}


def test_a_started_makes_it_the_owner_and_tells_where_it_began() -> None:
    partitions: dict[TopicPartition, State] = {P: starting(S0, 1), Q: starting(S0, 1), C: free()}
    known = group({S0: alive(1, reading={Q: 1})}, partitions, {"orders": starting(S0, 1)})
    known = takes(known, started(S0, 1, [P, C], ["orders"]))
    assert known.partitions == {P: owned(S0, 1), Q: starting(S0, 1), C: free()}
    assert known.writers == {"orders": owned(S0, 1)}
    assert known.member(S0).reading == {P: 3, Q: 1}
    assert takes(known, death(S0, 1)).partitions[P] == free(3)


# --- declaring dead ----------------------------------------------------------------------------


def test_the_silent_are_declared_dead_and_the_gone_are_not() -> None:
    members = {S0: alive(1), S1: dead(9), S2: alive(3, goodbye=3)}
    known = group(members, ticked_at=NOW + 10)
    assert declare_dead(known, NOW + 10)[1] == ()
    known, actions = declare_dead(known, NOW + 11)
    assert actions == (Publish(death(S0, 1)),)
    assert declare_dead(known, NOW + 12)[1] == ()


def test_a_dead_that_is_not_read_back_is_written_again() -> None:
    known = group({S0: alive(1, declared_dead_at=NOW)}, ticked_at=NOW + 11)
    assert declare_dead(known, NOW + 11)[1] == (Publish(death(S0, 1)),)


def test_the_named_are_declared_dead_though_they_report() -> None:
    known = group({S0: alive(1), S1: alive(2)})
    assert declare_dead(known, NOW, [S1])[1] == (Publish(death(S1, 2)),)


def test_after_a_sleep_everybody_gets_time_to_report() -> None:
    known, actions = declare_dead(group({S0: alive(1)}), NOW + 60)
    assert (known.member(S0).heard_at, actions) == (NOW + 60, ())


def test_without_a_term_nobody_is_declared_dead() -> None:
    known = group({S0: alive(1)}, term=None, ticked_at=NOW + 20)
    assert declare_dead(known, NOW + 20)[1] == ()
