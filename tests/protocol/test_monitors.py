"""Two monitors may publish; each topic follows one of them, and silent ones are noticed."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as some
from tests.builders import measurement

from binwright.protocol.metrics import Measurement
from binwright.protocol.monitors import Monitors, accept_measurement, drop_silent

NO_MONITORS = Monitors()


def sample(monitor: str, number: int = 1, topic: str = "orders", **more: Any) -> Measurement:
    return measurement(topic, (), monitor=monitor, number=number, **more)


def accept_all(*events: tuple[float, Measurement]) -> tuple[Monitors, list[bool]]:
    known, accepted = NO_MONITORS, []
    for now, message in events:
        known, accepted_now, _ = accept_measurement(known, now, message)
        accepted.append(accepted_now)
    return known, accepted


def test_a_topic_follows_the_first_monitor_that_measures_it() -> None:
    _, accepted = accept_all(
        (0, sample("a")), (0.1, sample("b")), (1, sample("a", 2)), (1.1, sample("b", 2))
    )
    assert accepted == [True, False, True, False]


def test_each_topic_follows_its_own_monitor() -> None:
    _, accepted = accept_all((0, sample("a")), (0, sample("b", topic="clicks")), (1, sample("b")))
    assert accepted == [True, True, False]


def test_all_parts_of_a_pass_are_accepted() -> None:
    assert accept_all((0, sample("a", 4)), (0, sample("a", 4)))[1] == [True, True]


def test_a_pass_older_than_the_last_one_is_not_accepted() -> None:
    assert accept_all((0, sample("a", 4)), (0, sample("a", 3)), (0, sample("a", 5)))[1] == [
        True,
        False,
        True,
    ]


def test_another_monitor_is_followed_when_the_first_falls_silent() -> None:
    _, accepted = accept_all(
        (0, sample("a")), (5, sample("b")), (5.1, sample("b", 2)), (6, sample("a", 2))
    )
    assert accepted == [True, False, True, False]


def test_silence_about_one_topic_is_enough() -> None:
    alive = [(float(now), sample("a", now, "clicks")) for now in range(8)]
    _, accepted = accept_all((0, sample("a")), *alive, (8, sample("b")))
    assert accepted[-1]


def test_the_timeout_grows_with_the_interval() -> None:
    _, accepted = accept_all(
        (0, sample("a", interval_s=10.0)), (30, sample("b")), (30.1, sample("b"))
    )
    assert accepted == [True, False, True]


def test_a_monitor_is_new_once() -> None:
    known, _, new = accept_measurement(NO_MONITORS, 0, sample("a"))
    assert new
    assert not accept_measurement(known, 1, sample("a", 2))[2]


def test_a_silent_monitor_is_dropped_once() -> None:
    known, _ = accept_all((0, sample("b")), (0, sample("a")), (3, sample("c")))
    assert drop_silent(known, 5) == (known, ())
    known, silent = drop_silent(known, 6)
    assert [one.monitor for one in silent] == ["a", "b"]
    assert known.seen.keys() == {"c"}
    assert drop_silent(known, 7)[1] == ()
    assert [one.monitor for one in drop_silent(known, 9)[1]] == ["c"]


def test_a_monitor_that_comes_back_is_new_again() -> None:
    known, _ = accept_all((0, sample("a")))
    known, _ = drop_silent(known, 10)
    assert accept_measurement(known, 11, sample("a", 2))[2]


@given(some.lists(some.tuples(some.floats(0, 3), some.sampled_from("abc")), max_size=60))
def test_no_topic_follows_two_monitors_at_once(
    measurements: list[tuple[float, str]],
) -> None:
    known, now, followed = NO_MONITORS, 0.0, [("", -100.0)]
    for number, (pause, monitor) in enumerate(measurements):
        now += pause
        known, accepted_now, _ = accept_measurement(known, now, sample(monitor, number))
        if accepted_now:
            last, at = followed[-1]
            assert last in ("", monitor) or now - at > 5
            followed.append((monitor, now))
