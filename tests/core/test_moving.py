"""Which commands go out, and which must not."""

from dataclasses import replace

import pytest

from binwright.core.events import Action, Tell
from binwright.core.group import Parked, Place, Starting, Stopping
from binwright.core.messages import Command, StartConsuming, StopConsuming
from binwright.core.model import Slot
from binwright.core.moving import advance, arrived, repeat, stop_command

from .builders import (
    NOW,
    S0,
    S1,
    S2,
    C,
    P,
    Q,
    alive,
    dead,
    fence,
    free,
    group,
    held,
    start,
    starting,
    stopping,
)

BOTH = {S0: alive(1), S1: alive(2)}


def told(actions: tuple[Action, ...]) -> list[tuple[Slot, Command]]:
    return [(a.slot, a.message) for a in actions if isinstance(a, Tell)]


def test_a_move_begins_with_a_stop() -> None:
    known, actions = advance(group(BOTH, {P: held(S0, 1), Q: held(S0, 1)}), {P: S0, Q: S1}, NOW)
    ((slot, stop),) = told(actions)
    assert isinstance(stop, StopConsuming)
    assert (slot, stop.epoch, stop.partitions) == (S0, 1, (Q,))
    assert known.places[Q] == Place(Stopping({S0: 1}, stop.revision, NOW))


@pytest.mark.parametrize("heir", [alive(2, ready=False), dead(9)])
def test_no_stop_goes_out_before_the_heir_is_ready(heir: object) -> None:
    known = group({S0: alive(1), S1: heir}, {P: held(S0, 1)})  # type: ignore[dict-item]
    assert advance(known, {P: S1}, NOW) == (known, ())


def test_what_is_settled_starts_at_its_offset() -> None:
    known, actions = advance(group(BOTH, {P: Place(Parked(8))}), {P: S1}, NOW)
    ((slot, command),) = told(actions)
    assert isinstance(command, StartConsuming)
    assert (slot, command.epoch, command.offsets, command.fences) == (S1, 2, {P: 8}, ())
    assert known.places[P] == Place(Starting(S1, 2, command, NOW))


def test_what_is_unassigned_starts_without_an_offset() -> None:
    ((_, command),) = told(advance(group(BOTH, {P: free()}), {P: S1}, NOW)[1])
    assert isinstance(command, StartConsuming)
    assert command.offsets == {P: None}


def test_with_fences_the_offset_is_always_resolved() -> None:
    """† offset_beside_fence"""
    owing = Place(Parked(8), frozenset({S2}))
    known, actions = advance(group({**BOTH, S2: dead(9)}, {P: owing}), {P: S1}, NOW)
    ((_, command),) = told(actions)
    assert isinstance(command, StartConsuming)
    assert (command.offsets, command.fences) == ({P: None}, (fence(S2, 9),))
    assert known.places[P].owed == {S2}, "owed until it is confirmed"


def test_starts_with_other_fences_are_other_starts_and_may_span_topics() -> None:
    places = {P: free(S2), C: free(S2), Q: free()}
    _, actions = advance(group({**BOTH, S2: dead(9)}, places), dict.fromkeys(places, S1), NOW)
    commands = [command for _, command in told(actions) if isinstance(command, StartConsuming)]
    assert [(c.offsets, c.fences) for c in commands] == [
        ({C: None, P: None}, (fence(S2, 9),)),
        ({Q: None}, ()),
    ]


def test_a_start_does_not_wait_for_a_newcomer_that_is_not_ready() -> None:
    """It fences what is older; the newcomer's own claim is above that."""
    known = group({**BOTH, S2: alive(60, ready=False, dead=9)}, {P: free(S2)})
    _, actions = advance(known, {P: S1}, NOW)
    ((_, command),) = told(actions)
    assert isinstance(command, StartConsuming)
    assert (command.offsets, command.fences) == ({P: None}, (fence(S2, 59),))


def test_what_has_no_heir_leaves_and_its_debts_stay() -> None:
    known, actions = advance(group({**BOTH, S2: dead(9)}, {P: free(S2), Q: held(S0, 1)}), {}, NOW)
    assert known.places.keys() == {Q}
    assert known.doubt == {S2}
    assert [slot for slot, _ in told(actions)] == [S0]


def test_a_start_of_what_has_no_heir_any_more_is_taken_back() -> None:
    """Its topic is gone: the start would never be answered, nor the plan ever end."""
    command = start(2, {P: None}, [fence(S2, 9)])
    known, actions = advance(group(BOTH, {P: starting(S1, command, S2)}), {}, NOW)
    ((slot, stop),) = told(actions)
    assert isinstance(stop, StopConsuming)
    assert (slot, stop.epoch, stop.partitions) == (S1, 2, (P,))
    assert known.places[P] == Place(Stopping({S1: 2}, stop.revision, NOW), frozenset({S2}))


def test_what_is_on_its_way_is_left_alone() -> None:
    places = {P: stopping({S0: 1}), Q: starting(S0, start(1, {Q: 3})), C: held(S0, 1)}
    known = group(BOTH, places)
    assert advance(known, {P: S1, Q: S1, C: S0}, NOW) == (known, ())


# --- said again --------------------------------------------------------------------------------


def test_an_unanswered_command_is_said_again_as_it_was() -> None:
    command = start(2, {Q: None}, [fence(S2, 9)])
    places = {P: stopping({S0: 1}), Q: starting(S1, command, S2)}
    known, actions = repeat(group(BOTH, places), NOW + 10)
    stop = stop_command(group(BOTH, places), S0, {P: places[P]})
    assert told(actions) == [(S0, stop), (S1, command)]
    assert repeat(known, NOW + 19) == (known, ())


def test_both_owners_are_stopped_again() -> None:
    _, actions = repeat(group(BOTH, {P: stopping({S0: 1, S1: 2})}), NOW + 10)
    assert [(slot, c.epoch) for slot, c in told(actions) if isinstance(c, StopConsuming)] == [
        (S0, 1),
        (S1, 2),
    ]


@pytest.mark.parametrize("now", [held(S1, 2), held(S0, 1), stopping({S1: 2}, 9), free()])
def test_a_start_said_again_names_only_what_is_still_awaited(now: Place) -> None:
    """† The other partition was started, and has moved on since: an heir would double its rows."""
    command = start(2, {P: 8, Q: None})
    _, actions = repeat(group(BOTH, {P: now, Q: starting(S1, command)}), NOW + 10)
    again = [c for _, c in told(actions) if isinstance(c, StartConsuming)]
    assert again == [replace(command, offsets={Q: None})]


# --- how far a plan is -------------------------------------------------------------------------


def test_a_plan_is_done_when_everything_is_where_it_should_be_and_nothing_else() -> None:
    known = group(BOTH, {P: held(S0, 1), Q: held(S1, 2)})
    assert arrived(known, {P: S0, Q: S1})
    assert not arrived(known, {P: S0, Q: S0})
    assert not arrived(known, {P: S0})
    assert not arrived(group(BOTH, {P: stopping({S0: 1})}), {P: S0})
