"""Two monitors may speak; one is believed of each topic, and silence is noticed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from binwright.core.events import Say
from binwright.core.messages import Measurement
from binwright.core.monitors import Monitors, listen, take

from .builders import measurement

NOBODY = Monitors()


def said(monitor: str, number: int = 1, topic: str = "orders", **more: Any) -> Measurement:
    return measurement(topic, (), monitor=monitor, number=number, **more)


def heard(*events: tuple[float, Measurement]) -> tuple[Monitors, list[bool]]:
    known, counted = NOBODY, []
    for now, message in events:
        known, counts, _ = take(known, now, message)
        counted.append(counts)
    return known, counted


def words(tell: tuple[Say, ...]) -> list[tuple[str, object]]:
    return [(say.event, say.facts["monitor"]) for say in tell]


def test_the_first_to_speak_of_a_topic_is_followed() -> None:
    _, counted = heard((0, said("a")), (0.1, said("b")), (1, said("a", 2)), (1.1, said("b", 2)))
    assert counted == [True, False, True, False]


def test_each_topic_follows_its_own_monitor() -> None:
    _, counted = heard((0, said("a")), (0, said("b", topic="clicks")), (1, said("b")))
    assert counted == [True, True, False]


def test_all_parts_of_a_pass_count() -> None:
    assert heard((0, said("a", 4)), (0, said("a", 4)))[1] == [True, True]


def test_a_pass_that_comes_too_late_does_not_count() -> None:
    assert heard((0, said("a", 4)), (0, said("a", 3)), (0, said("a", 5)))[1] == [True, False, True]


def test_another_is_followed_when_the_first_falls_silent() -> None:
    _, counted = heard((0, said("a")), (5, said("b")), (5.1, said("b", 2)), (6, said("a", 2)))
    assert counted == [True, False, True, False]


def test_silence_of_one_topic_is_enough() -> None:
    alive = [(float(now), said("a", now, "clicks")) for now in range(8)]
    _, counted = heard((0, said("a")), *alive, (8, said("b")))
    assert counted[-1]


def test_patience_grows_with_the_interval() -> None:
    _, counted = heard((0, said("a", interval_s=10.0)), (30, said("b")), (30.1, said("b")))
    assert counted == [True, False, True]


def test_who_speaks_first_is_told_once() -> None:
    known, _, tell = take(NOBODY, 0, said("a"))
    assert words(tell) == [("monitor.heard", "a")]
    assert take(known, 1, said("a", 2))[2] == ()


def test_silence_is_told_once_and_what_follows_from_it() -> None:
    known, _ = heard((0, said("b")), (0, said("a")), (3, said("c")))
    assert listen(known, 5) == (known, ())
    known, tell = listen(known, 6)
    assert words(tell) == [("monitor.silent", "a"), ("monitor.silent", "b")]
    assert tell[0].facts["effect"] == "another is followed"
    assert listen(known, 7)[1] == ()
    assert listen(known, 9)[1][0].facts["effect"] == "the assignment stays as it is"


def test_one_that_comes_back_is_told_again() -> None:
    known, _ = heard((0, said("a")))
    known, _ = listen(known, 10)
    assert words(take(known, 11, said("a", 2))[2]) == [("monitor.heard", "a")]


@given(some.lists(some.tuples(some.floats(0, 3), some.sampled_from("abc")), max_size=60))
def test_no_two_monitors_are_believed_of_one_topic_at_once(
    turns: list[tuple[float, str]],
) -> None:
    known, now, believed = NOBODY, 0.0, [("", -100.0)]
    for number, (pause, monitor) in enumerate(turns):
        now += pause
        known, counts, _ = take(known, now, said(monitor, number))
        if counts:
            last, at = believed[-1]
            assert last in ("", monitor) or now - at > 5
            believed.append((monitor, now))
