"""The consumer's side: what is said again, and what a leaving one still says."""

from binwright.core.handover import (
    Active,
    Consumer,
    Open,
    Opening,
    claimed,
    drain,
    handed,
    obey,
    opened,
    settled,
)
from binwright.core.messages import StopConsuming

from .builders import S0, S1, TERM, C, P, Q, fence, start

EPOCH = 10
READY, _ = claimed(Consumer(S0, EPOCH, term=TERM))


def stop(revision: int) -> StopConsuming:
    return StopConsuming(term=TERM, revision=revision, epoch=EPOCH, partitions=(P,))


def test_one_start_of_several_topics_is_one_opening() -> None:
    """Its fences go up on the table of each."""
    _, deeds = obey(READY, start(EPOCH, {P: None, C: None}, [fence(S1, 9)]), 0)
    assert deeds == (Open(7, (C, P), (fence(S1, 9),)),)


def test_a_start_said_again_is_not_opened_twice() -> None:
    """Each opening costs fences and a history; said again every few seconds they would pile up."""
    consumer, (opening,) = obey(READY, start(EPOCH, {P: None}, [fence(S1, 9)]), 0)
    assert obey(consumer, start(EPOCH, {P: None}, [fence(S1, 9)]), 0) == (consumer, ())
    assert isinstance(opening, Open)
    consumer, _ = opened(consumer, opening, {P: 4})
    assert consumer.landed() == {P: 4}


def test_a_start_after_a_stop_is_opened_anew() -> None:
    consumer, (first,) = obey(READY, start(EPOCH, {P: None}), 0)
    consumer, _ = obey(consumer, stop(8), 0)
    consumer, deeds = obey(consumer, start(EPOCH, {P: None}, revision=9), 0)
    assert deeds == (Open(9, (P,), ()),)
    assert isinstance(first, Open)
    assert opened(consumer, first, {P: 4}) == (consumer, ())


def test_who_is_leaving_still_says_what_it_was_opening() -> None:
    """A controller that believes it to hold P would doubt everything, and ask everybody anew."""
    consumer, _ = obey(READY, start(EPOCH, {P: None, Q: 3}), 0)
    consumer, _ = drain(handed(consumer, {Q: 5}))
    assert consumer.among(Opening) == (P,)
    assert consumer.landed() == {Q: 3}


def test_who_is_leaving_reads_nothing_new() -> None:
    consumer, deeds = obey(READY, start(EPOCH, {P: None, Q: 3}), 0)
    consumer, _ = drain(handed(consumer, {Q: 5}))
    opening = next(deed for deed in deeds if isinstance(deed, Open))
    assert opened(consumer, opening, {P: 4}) == (consumer, ())


def test_what_is_opening_has_landed_nowhere_yet() -> None:
    """† stamp_names_read_ahead: stamps and hints name what is read and has landed, no more."""
    consumer, _ = obey(READY, start(EPOCH, {P: None, Q: 3}), 0)
    assert consumer.landed() == {Q: 3}
    consumer = handed(consumer, {Q: 5})
    assert consumer.landed() == {Q: 3}, "in flight is not landed"
    consumer, _ = settled(consumer)
    assert consumer.parts[Q] == Active(5)
