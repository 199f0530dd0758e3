"""What a writer does while a person has paused its table."""

import pytest

from binwright.consumer.decide.writer import machine
from binwright.consumer.decide.writer.states import (
    Append,
    Committed,
    HistoryRead,
    Log,
    ReadAnnouncements,
)
from binwright.protocol.stamp import NO_ORDER, read_stamp

from .scene import (
    CONFIG,
    TABLE,
    Scene,
    claimed,
    effects_of,
    history,
    landing,
    order,
    staged,
    stamp,
    topic_state,
)

WORDS = "by ann at 1970-01-01 00:00:00 UTC: a repair"


def paused() -> Scene:
    """Return a writer with a pending file, whose pause is committed."""
    scene = landing()
    scene.announce(staged("a", {0: (0, 3)}))
    scene.announce(order(paused=True))
    wanted = scene.next_request()
    assert isinstance(wanted, Append)
    found = read_stamp(wanted.stamp, TABLE)
    assert found
    assert (found.paused, found.order, found.needed_from) == (WORDS, 1, 0)
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


def test_what_is_announced_meanwhile_is_read_again_when_the_table_lands_again() -> None:
    scene = paused()
    scene.announce(staged("b", {0: (3, 6)}))
    scene.writer = machine.apply_read_up_to(scene.writer, 99)
    effects = scene.announce(order(paused=False))
    assert effects_of(effects, ReadAnnouncements) == [ReadAnnouncements(1)]
    scene.announce(staged("b", {0: (3, 6)}), offset=2)
    scene.announce(order(paused=False), offset=3)
    scene.appends()
    scene.complete(Committed())
    scene.appends()
    scene.complete(Committed())
    assert scene.committed == {0: 6}


@pytest.mark.parametrize(("at", "still"), [(3, True), (4, True), (5, False)])
def test_an_order_that_a_stamp_is_newer_than_does_not_count(at: int, *, still: bool) -> None:
    scene = claimed()
    scene.next_request()
    scene.complete(topic_state())
    scene.next_request()
    known = stamp({0: 1}, full=True, paused="by bob", order=4)
    scene.complete(HistoryRead(history(None, known), complete=True))
    assert scene.landing.paused == "by bob"
    effects = scene.announce(order(paused=False), offset=at)
    assert (scene.landing.paused == "by bob") is still
    assert bool(effects_of(effects, Log)) is not still


def test_orders_of_another_landing_topic_have_no_offset_here() -> None:
    scene = claimed()
    scene.next_request()
    scene.complete(topic_state(landing_id="landing-2"))
    scene.next_request()
    known = stamp({0: 1}, full=True, paused="by bob", order=4)
    scene.complete(HistoryRead(history(None, known), complete=True))
    assert (scene.landing.paused, scene.landing.order) == ("by bob", NO_ORDER)


def test_an_order_without_a_reason_has_none() -> None:
    scene = landing()
    scene.announce(order(paused=True, reason=""))
    assert scene.landing.paused == "by ann at 1970-01-01 00:00:00 UTC"
