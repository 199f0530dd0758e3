"""Waits between attempts grow to a bound, and begin again after a success."""

from binwright.runtime.backoff import Backoff


def test_each_wait_is_twice_as_long_up_to_the_longest() -> None:
    pause = Backoff(5.0, first_s=1.0)
    assert [pause.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]


def test_after_a_success_waits_begin_with_the_shortest() -> None:
    pause = Backoff(5.0, first_s=1.0)
    waits = [pause.next(), pause.next()]
    pause.reset()
    assert [*waits, pause.next(), pause.next()] == [1.0, 2.0, 1.0, 2.0]
