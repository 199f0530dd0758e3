"""The consumer's side of the protocol, rule by rule."""

import pytest

from binwright.core import handover
from binwright.core.handover import (
    Active,
    Ahead,
    Closing,
    Consumer,
    Exit,
    Fetch,
    Land,
    Open,
    Opening,
    Quit,
    Reply,
    ReportNow,
)
from binwright.core.messages import (
    Command,
    Fence,
    Goodbye,
    Landed,
    Leave,
    StartConsuming,
    Started,
    StateQuery,
    StopConsuming,
    Stopped,
)
from binwright.core.model import Slot, TopicPartition

P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
ME, EPOCH, TERM = Slot(0), 10, 5
F1, F2 = Fence(slot=Slot(1), number=7), Fence(slot=Slot(2), number=8)
READY = Consumer(ME, EPOCH, term=TERM, ready=True)


def start(
    offsets: dict[TopicPartition, int | None],
    *fences: Fence,
    revision: int = 1,
    term: int = TERM,
    epoch: int = EPOCH,
    ahead: bool = False,
) -> StartConsuming:
    return StartConsuming(
        term=term, revision=revision, epoch=epoch, offsets=offsets, fences=fences, ahead=ahead
    )


def stop(*partitions: TopicPartition, revision: int = 2, term: int = TERM) -> StopConsuming:
    return StopConsuming(term=term, revision=revision, epoch=EPOCH, partitions=partitions)


def obey(consumer: Consumer, command: Command) -> handover.Done:
    return handover.obey(consumer, command, now_ms=99)


def reading(**landed: int) -> Consumer:
    names = {"p": P, "q": Q}
    return Consumer(
        ME, EPOCH, TERM, ready=True, parts={names[n]: Active(at) for n, at in landed.items()}
    )


def stopped(
    following: dict[TopicPartition, int | None], *unsettled: TopicPartition, revision: int = 2
) -> Reply:
    message = Stopped(
        slot=ME,
        epoch=EPOCH,
        revision=revision,
        next=following,
        quit_ms=99,
        unsettled=unsettled,
    )
    return Reply(message)


def has_landed(landed: dict[TopicPartition, int], revision: int = 2) -> Reply:
    return Reply(Landed(slot=ME, epoch=EPOCH, revision=revision, landed=landed))


def started(offsets: dict[TopicPartition, int], *fences: Fence, revision: int = 1) -> Reply:
    message = Started(slot=ME, epoch=EPOCH, revision=revision, offsets=offsets, fences=fences)
    return Reply(message)


def test_claims_that_stand_make_it_ready_and_it_says_so() -> None:
    assert handover.claimed(Consumer(ME, EPOCH)) == (
        Consumer(ME, EPOCH, ready=True),
        (ReportNow(),),
    )


def test_a_command_of_a_lower_term_is_dropped() -> None:
    """† no_term_check"""
    assert obey(READY, start({P: 0}, term=TERM - 1)) == (READY, ())


def test_a_query_is_answered_whatever_the_epoch_and_raises_the_term() -> None:
    after, deeds = obey(READY, StateQuery(term=TERM + 1))
    assert (after.term, deeds) == (TERM + 1, (ReportNow(),))


def test_a_command_for_a_later_epoch_means_exit() -> None:
    _, deeds = obey(READY, start({P: 0}, epoch=EPOCH + 1))
    assert deeds == (Exit("superseded by epoch 11"),)


def test_a_command_for_an_older_epoch_is_dropped() -> None:
    assert obey(READY, start({P: 0}, epoch=EPOCH - 1)) == (READY, ())


def test_told_to_leave_it_leaves() -> None:
    _, (deed,) = obey(READY, Leave(term=TERM, epoch=EPOCH))
    assert isinstance(deed, Exit)


def test_a_start_with_an_offset_begins_there() -> None:
    after, deeds = obey(READY, start({P: 3, Q: 4}))
    assert after.landed() == {P: 3, Q: 4}
    assert deeds == (Fetch(P, 3), Fetch(Q, 4), started({P: 3, Q: 4}))


def test_a_start_without_an_offset_is_answered_once_it_is_resolved() -> None:
    after, deeds = obey(READY, start({P: None}, F1))
    opening = Open(1, (P,), (F1,))
    assert deeds == (opening,)
    assert after.landed() == {}
    assert after.among(Opening) == (P,)
    after, deeds = handover.opened(after, opening, {P: 8})
    assert deeds == (Fetch(P, 8), started({P: 8}, F1))
    assert after.landed() == {P: 8}


def test_a_start_of_what_is_held_changes_nothing_and_is_answered() -> None:
    """† start_resets"""
    consumer = reading(p=30)
    assert obey(consumer, start({P: 3})) == (consumer, (started({P: 30}),))


def test_a_start_of_what_is_closing_changes_nothing_and_is_answered() -> None:
    consumer, _ = obey(handover.handed(reading(p=30), {P: 40}), stop(P))
    after, deeds = obey(consumer, start({P: 3}, revision=3))
    assert (after, deeds) == (consumer, (started({P: 30}, revision=3),))


def test_fences_of_an_earlier_start_stay_owed() -> None:
    consumer, _ = obey(READY, start({P: None}, F2))
    after, deeds = obey(consumer, start({P: None}, F1, revision=3))
    assert deeds == (Open(3, (P,), (F1, F2)),)
    assert after.parts[P] == Opening(3, (F1, F2))


def test_a_start_said_again_while_it_opens_is_answered_once() -> None:
    consumer, (opening,) = obey(READY, start({P: None}, F1))
    assert obey(consumer, start({P: None}, F1)) == (consumer, ())
    assert isinstance(opening, Open)
    assert handover.opened(consumer, opening, {P: 8})[1][-1] == started({P: 8}, F1)


def test_what_opens_when_the_exit_begins_never_will() -> None:
    consumer, (opening,) = obey(handover.handed(reading(p=3), {P: 4}), start({Q: None}))
    consumer, _ = handover.drain(consumer)
    assert isinstance(opening, Open)
    assert handover.opened(consumer, opening, {Q: 8}) == (consumer, ())


def test_an_outcome_of_an_earlier_start_is_dropped() -> None:
    consumer, _ = obey(READY, start({P: None}, F2))
    consumer, _ = obey(consumer, start({P: None}, revision=3))
    assert handover.opened(consumer, Open(1, (P,), (F2,)), {P: 8}) == (consumer, ())


def test_a_stop_of_what_lies_still_is_answered_at_once() -> None:
    after, deeds = obey(reading(p=30, q=4), stop(P))
    assert deeds == (Quit(P), stopped({P: 30}))
    assert after.landed() == {Q: 4}


def test_a_stop_of_what_is_not_held_is_answered_too() -> None:
    after, deeds = obey(READY, stop(P))
    assert (after, deeds) == (READY, (stopped({P: None}),))


def test_a_stop_of_what_is_opening_ends_it() -> None:
    consumer, (opening,) = obey(READY, start({P: None}))
    consumer, deeds = obey(consumer, stop(P))
    assert deeds == (stopped({P: None}),)
    assert isinstance(opening, Open)
    assert handover.opened(consumer, opening, {P: 8}) == (consumer, ())


def test_a_stop_during_a_write_is_answered_at_once_and_again_when_that_is_settled() -> None:
    """An unclear write settles nothing: its end is told, and that it is not in the table yet."""
    consumer, deeds = obey(handover.handed(reading(p=30, q=4), {P: 40, Q: 9}), stop(P))
    assert deeds == (Quit(P), stopped({P: 40}, P))
    assert consumer.landed() == {Q: 4}
    assert consumer.among(Closing) == (P,)
    consumer, deeds = handover.settled(consumer)
    assert deeds == (has_landed({P: 40}),)
    assert (consumer.landed(), consumer.flying) == ({Q: 9}, {})


def test_a_stop_of_what_the_write_does_not_touch_is_settled_at_once() -> None:
    consumer, deeds = obey(handover.handed(reading(p=30, q=4), {Q: 9}), stop(P))
    assert deeds == (Quit(P), stopped({P: 30}))
    assert handover.settled(consumer)[1] == ()


def test_a_stop_said_again_is_answered_under_its_last_revision() -> None:
    consumer, _ = obey(handover.handed(reading(p=30), {P: 40}), stop(P))
    consumer, deeds = obey(consumer, stop(P, revision=6))
    assert deeds == (stopped({P: 40}, P, revision=6),)
    assert handover.settled(consumer)[1] == (has_landed({P: 40}, revision=6),)


# --- reading ahead -----------------------------------------------------------------------------


def test_who_reads_ahead_fetches_and_lands_nothing() -> None:
    """† Its place is in no stamp, no hint and no batch."""
    consumer, deeds = obey(READY, start({P: 30}, ahead=True))
    assert deeds == (Fetch(P, 30), started({P: 30}))
    assert consumer.reading() == {P}
    assert not consumer.landed()
    assert consumer.among(Ahead) == (P,)
    with pytest.raises(ValueError, match="only of partitions that are read"):
        handover.handed(consumer, {P: 31})


def test_the_second_start_lets_it_land_what_it_read() -> None:
    consumer, _ = obey(READY, start({P: 30}, ahead=True))
    consumer, deeds = obey(consumer, start({P: 30}, revision=3))
    assert deeds == (Land(P), started({P: 30}, revision=3))
    assert consumer.landed() == {P: 30}


def test_a_start_ahead_that_is_said_again_changes_nothing() -> None:
    consumer, _ = obey(READY, start({P: 30}, ahead=True))
    assert obey(consumer, start({P: 30}, ahead=True)) == (consumer, (started({P: 30}),))


def test_whose_forerunner_died_resolves_and_forgets_what_it_read() -> None:
    consumer, _ = obey(READY, start({P: 30}, ahead=True))
    after, deeds = obey(consumer, start({P: None}, F2, revision=3))
    assert deeds == (Quit(P), Open(3, (P,), (F2,)))
    assert after.among(Opening) == (P,)


def test_a_start_from_elsewhere_reads_anew() -> None:
    consumer, _ = obey(READY, start({P: 30}, ahead=True))
    after, deeds = obey(consumer, start({P: 20}, revision=3))
    assert deeds == (Quit(P), Fetch(P, 20), started({P: 20}, revision=3))
    assert after.landed() == {P: 20}


def test_a_stop_of_what_is_only_read_ahead_finds_it_not_held() -> None:
    consumer, _ = obey(READY, start({P: 30}, ahead=True))
    assert obey(consumer, stop(P)) == (READY, (Quit(P), stopped({P: None})))


def test_a_goodbye_does_not_name_what_was_only_read_ahead() -> None:
    consumer, _ = obey(reading(q=4), start({P: 30}, ahead=True))
    _, deeds = handover.drain(consumer)
    goodbye = Goodbye(slot=ME, epoch=EPOCH, landed={Q: 4})
    assert deeds == (Quit(P), Quit(Q), Reply(goodbye), Exit("asked to"))


def test_who_reads_ahead_must_be_told_from_where() -> None:
    with pytest.raises(ValueError, match="must be told from where"):
        start({P: None}, ahead=True)


def test_one_write_at_a_time_and_only_of_what_is_read() -> None:
    with pytest.raises(ValueError, match="one write at a time"):
        handover.handed(handover.handed(reading(p=3), {P: 4}), {P: 5})
    with pytest.raises(ValueError, match="only of partitions that are read"):
        handover.handed(reading(p=3), {Q: 4})


def test_what_was_in_flight_cannot_have_vanished() -> None:
    broken = Consumer(ME, EPOCH, flying={P: 3})
    with pytest.raises(ValueError, match="orders-0 was in flight"):
        handover.settled(broken)


def test_goodbye_names_what_has_landed_and_nothing_follows() -> None:
    consumer, _ = obey(reading(p=30), start({Q: None}))
    after, deeds = handover.drain(consumer)
    goodbye = Goodbye(slot=ME, epoch=EPOCH, landed={P: 30})
    assert deeds == (Quit(P), Reply(goodbye), Exit("asked to"))
    assert handover.drain(after) == (after, ())


def test_goodbye_waits_for_the_write_in_flight() -> None:
    """† bye_in_flight"""
    consumer, deeds = handover.drain(handover.handed(reading(p=30), {P: 40}))
    assert deeds == (Quit(P),)
    _, deeds = handover.settled(consumer)
    assert deeds == (Reply(Goodbye(slot=ME, epoch=EPOCH, landed={P: 40})), Exit("asked to"))


def test_before_it_is_ready_it_leaves_without_a_word() -> None:
    _, deeds = handover.drain(Consumer(ME, EPOCH))
    assert deeds == (Exit("asked to, before it was ready"),)


def test_who_is_leaving_begins_nothing_and_answers_by_its_goodbye() -> None:
    consumer, _ = handover.drain(handover.handed(reading(p=30), {P: 40}))
    assert obey(consumer, start({Q: 1})) == (consumer, ())
