"""What a writer does while a person has paused its table."""

import pytest

from binwright.consumer.decide.land import machine
from binwright.consumer.decide.land.states import Append, Committed, HistoryRead
from binwright.protocol.log_events import Log
from binwright.tables.stamp import read_stamp

from .scene import (
    CONFIG,
    TABLE,
    Scene,
    claimed,
    effects_of,
    history,
    landing,
    staged,
    stamp,
    topic_state,
)

WORDS = "by ann at 1970-01-01 00:00:00 UTC: a repair"


def paused() -> Scene:
    """Return a writer with a pending file, whose pause is committed."""
    scene = landing()
    scene.announce(staged("a", {0: (0, 3)}))
    scene.order(paused=True)
    wanted = scene.next_request()
    assert isinstance(wanted, Append)
    found = read_stamp(wanted.stamp, TABLE)
    assert found
    assert (found.paused, found.needed_from) == (WORDS, 0)
    scene.complete(Committed())
    return scene


def test_while_a_table_is_paused_only_stamps_are_committed() -> None:
    scene = paused()
    assert [log.event for log in effects_of(scene.effects, Log)] == ["table.paused"]
    assert scene.next_request(100.0) is None
    assert machine.due_at(scene.writer, scene.now) == scene.landing.full_at + CONFIG.idle_stamp_s
    wanted = scene.next_request(CONFIG.idle_stamp_s)
    assert isinstance(wanted, Append)
    assert not wanted.batch.slices


def test_what_was_pending_lands_once_the_table_lands_again() -> None:
    scene = paused()
    assert [log.event for log in effects_of(scene.order(paused=False), Log)] == ["table.resumed"]
    scene.announce(staged("b", {0: (3, 6)}))
    scene.appends()
    scene.complete(Committed())
    scene.appends()
    scene.complete(Committed())
    assert scene.committed == {0: 6}


def test_the_same_order_again_changes_nothing() -> None:
    """It is applied before each request."""
    scene = paused()
    assert scene.order(paused=True) == []
    assert not scene.landing.stamp_due
    scene.order(paused=False)
    assert scene.order(paused=False) == []


def test_an_order_that_comes_while_a_commit_is_in_flight_is_stamped_after_it() -> None:
    scene = landing()
    scene.announce(staged("a", {0: (0, 3)}))
    scene.appends()
    scene.order(paused=True)
    scene.complete(Committed())
    wanted = scene.next_request()
    assert isinstance(wanted, Append)
    assert not wanted.batch.slices
    found = read_stamp(wanted.stamp, TABLE)
    assert found is not None
    assert found.paused == WORDS


@pytest.mark.parametrize(("late_s", "still"), [(-0.1, True), (0.0, False), (1.0, False)])
def test_orders_as_of_before_the_claim_was_resolved_do_not_count(
    late_s: float, *, still: bool
) -> None:
    """The stamp may have a newer one, which the last writer had read."""
    scene = claimed()
    scene.next_request()
    scene.complete(topic_state())
    scene.next_request()
    known = stamp({0: 1}, full=True, paused="by bob")
    scene.complete(HistoryRead(history(None, known), complete=True))
    assert scene.landing.paused == "by bob"
    scene.order(paused=False, read_at=scene.landing.resolved_at + late_s)
    assert (scene.landing.paused == "by bob") is still


def test_a_pause_in_the_stamp_stands_until_another_order() -> None:
    """Of a version that had orders in the landing topic, too: its stamps have an offset there."""
    known = stamp({0: 1}, full=True, paused="by bob").encode()
    older = known.replace('"paused":"by bob"', '"paused":"by bob","order":7')
    assert older != known
    assert read_stamp(older, TABLE) == read_stamp(known, TABLE)


def test_outside_the_landing_phase_an_order_is_ignored() -> None:
    scene = claimed()
    assert scene.order(paused=True) == []


def test_an_order_without_a_reason_has_none() -> None:
    scene = landing()
    scene.order(paused=True, reason="")
    assert scene.landing.paused == "by ann at 1970-01-01 00:00:00 UTC"


def test_more_is_read_while_little_waits_or_nothing_joins_and_not_in_a_pause() -> None:
    scene = landing()
    scene.announce(staged("a", {0: (0, 3)}))
    assert scene.landing.has_room(2)
    assert not scene.landing.has_room(1)
    scene.change(joins=False)
    assert scene.landing.has_room(1)
    assert not paused().landing.has_room(2)
