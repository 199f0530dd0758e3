"""An heir reads on at once, and lands nothing before the old owner's last write is settled."""

import pytest

from binwright.core.events import Action
from binwright.core.group import Held, Parked, Place, Starting, Stopping, Tail, Unassigned
from binwright.core.group import lose as lose_slot
from binwright.core.machine import Sentinel, Synchronize
from binwright.core.messages import (
    Dead,
    Fence,
    Hello,
    Landed,
    StartConsuming,
    StopConsuming,
)
from binwright.core.model import Slot
from binwright.core.moving import advance

from .builders import S0, S1, alive, free, group, held, tailed
from .reign import A, B, P, Q, Reign, holding, told

C = Slot(2)


def moving(*, next_offset: int = 7) -> tuple[Reign, StopConsuming, StartConsuming]:
    """Return a reign in which P is on its way from A to B, and A's last write is unsettled."""
    reign = holding({P: 80.0, Q: 30.0}, {P: A, Q: A})
    reign.hello(B)
    reign.report(B)
    reign.measure({P: 100.0, Q: 30.0})
    (stop,) = told(reign.pack({P: B, Q: A}), StopConsuming)
    (start,) = told(reign.stopped(stop, A, next_offset, unsettled=(P,)), StartConsuming)
    return reign, stop, start


def landed(reign: Reign, stop: StopConsuming, **more: int) -> list[Action]:
    revision = more.get("revision", stop.revision)
    return reign.hear(Landed(slot=A, epoch=stop.epoch, revision=revision, landed={P: 7}))


def test_the_heir_reads_ahead_at_once_and_lands_when_the_last_write_has() -> None:
    reign, stop, start = moving()
    assert (start.offsets, start.ahead) == ({P: 7}, True)
    reign.started(start, B)
    tail = Tail(A, stop.epoch, stop.revision)
    assert reign.place(P) == Place(Held(B, start.epoch), tails=frozenset({tail}))
    (second,) = told(landed(reign, stop), StartConsuming)
    assert (second.offsets, second.ahead, second.epoch) == ({P: 7}, False, start.epoch)
    assert second.revision > start.revision
    reign.started(second, B)
    assert reign.place(P) == Place(Held(B, start.epoch))
    assert reign.phase() is Sentinel


def test_the_last_write_may_land_before_the_heir_has_answered() -> None:
    reign, stop, start = moving()
    (second,) = told(landed(reign, stop), StartConsuming)
    assert reign.started(start, B) == []  # an answer to what is not asked any more
    assert isinstance(reign.place(P).at, Starting)
    reign.started(second, B)
    assert isinstance(reign.place(P).at, Held)


def test_the_last_write_may_land_before_there_is_an_heir() -> None:
    reign, stop, start = moving()
    reign.hear(Dead(slot=B, term=reign.group.term or 0))
    assert reign.place(P).at == Unassigned()
    assert told(landed(reign, stop), StartConsuming) == []
    assert reign.place(P).tails == frozenset()
    assert reign.place(P).owed == {B}
    assert start.ahead


def test_a_landed_that_answers_another_stop_changes_nothing() -> None:
    """† An older one would let the heir land beside a write that is still under way."""
    reign, stop, start = moving()
    reign.started(start, B)
    before = reign.place(P)
    assert landed(reign, stop, revision=stop.revision - 1) == []
    assert reign.place(P) == before


def test_an_heir_that_reads_ahead_is_not_moved_on() -> None:
    """Nor is its debt forgotten: whoever comes next must wait for the last write, too."""
    reign, stop, start = moving()
    reign.started(start, B)
    reign.hello(C)
    reign.report(C)
    places = reign.group.places
    _, actions = advance(reign.group, {P: C, Q: A}, reign.now)
    assert told(actions, StopConsuming) == []
    assert places[P].tails == frozenset({Tail(A, stop.epoch, stop.revision)})


def test_when_the_old_owner_dies_the_heir_is_stopped_and_then_resolves() -> None:
    reign, _, start = moving()
    reign.started(start, B)
    (recall,) = told(reign.hear(Dead(slot=A, term=reign.group.term or 0)), StopConsuming)
    assert (recall.partitions, recall.epoch) == ((P,), start.epoch)
    number = reign.offset
    (again,) = told(reign.stopped(recall, B, None), StartConsuming)
    assert again.offsets[P] is None
    assert again.fences == (Fence(slot=A, number=number),)


def test_when_the_old_owner_is_replaced_the_heir_is_stopped_too() -> None:
    reign, _, start = moving()
    actions = reign.hear(Hello(slot=A, process="p", version="1"))
    (recall,) = told(actions, StopConsuming)
    assert recall.partitions == (P,)
    at = reign.place(P).at
    assert isinstance(at, Stopping)
    assert at.twice
    assert reign.place(P).owed == {A}
    assert start.ahead


def test_what_nobody_reads_is_not_resolved_before_the_last_write_is_settled() -> None:
    """† Or the resolve would read too early."""
    place = tailed(free(), (S0, 1))
    known = group({S0: alive(1), S1: alive(2)}, {P: place})
    assert advance(known, {P: S1}, 0.0) == (known, ())


def test_who_wrote_last_gets_it_back_only_when_that_is_settled() -> None:
    known = group({S0: alive(1)}, {P: tailed(Place(Parked(4)), (S0, 1))})
    assert advance(known, {P: S0}, 0.0) == (known, ())


def test_what_is_gone_is_not_forgotten_while_a_write_of_it_is_under_way() -> None:
    known = group({S0: alive(1)}, {P: tailed(Place(Parked(4)), (S0, 1))})
    assert advance(known, {}, 0.0) == (known, ())


def test_a_new_controller_stops_whoever_reads_ahead() -> None:
    """† The word it waits for may never come."""
    reign = Reign()
    reign.hello(A)
    reign.hello(B)
    reign.claim()
    reign.report(A, held=[Q])
    actions = reign.report(B, ahead=[P])
    (stop,) = told(actions, StopConsuming)
    assert (stop.partitions, stop.epoch) == ((P,), reign.group.member(B).epoch)
    reign.stopped(stop, B, None)
    assert reign.place(P) == Place(Unassigned())


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place(Parked(4)), Unassigned()),
        (Place(Unassigned()), Unassigned()),
    ],
)
def test_without_its_writer_nobody_knows_how_far_it_got(place: Place, expected: object) -> None:
    known = lose_slot(group({}, {P: tailed(place, (S0, 1), (S1, 2))}), S0)
    assert known.places[P].at == expected
    assert known.places[P].owed == {S0}
    assert [tail.slot for tail in known.places[P].tails] == [S1]


def test_readers_ahead_must_be_stopped_before_their_writer_is_lost() -> None:
    known = group({}, {P: tailed(held(S1, 2), (S0, 1))})
    with pytest.raises(ValueError, match="must be stopped first"):
        lose_slot(known, S0)


def test_a_landed_that_was_never_heard_is_missed_by_what_is_not_closing_any_more() -> None:
    """† A log may be compacted before a controller that slept reads it."""
    reign, _, start = moving()
    reign.started(start, B)
    reign.report(A, held=[Q], closing=[P])
    assert reign.phase() is not Synchronize
    reign.report(A, held=[Q])
    assert reign.phase() is Synchronize
