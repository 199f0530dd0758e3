"""What a consumer could read is estimated from its own work."""

from collections.abc import Iterable
from typing import Any

import pytest

from binwright.consumer.decide.capacity import (
    FEWEST_WINDOWS,
    GROWTH,
    MOST_WINDOWS,
    CapacityEstimate,
    Window,
    at_full_speed,
)
from binwright.protocol.metadata import MeasuredCapacity
from binwright.protocol.model import BytesPerSecond, TopicPartition

MB = 1_000_000


def window(read: int, loop: float, **more: Any) -> Window:
    """Return five seconds of a consumer that works in its event loop alone."""
    return Window(5.0, read, loop=loop, process=loop / 2, **more)


BUSY = window(50 * MB, 0.5)  # 10 MB/s by half of its time: it could read 20


def estimate(*windows: Window) -> MeasuredCapacity | None:
    return over(windows)


def over(windows: Iterable[Window]) -> MeasuredCapacity | None:
    found = CapacityEstimate()
    for window in windows:
        found.add(window)
    return found.capacity()


def per_s(windows: Iterable[Window]) -> float:
    found = over(windows)
    assert found is not None
    return found.bytes_per_s


def test_half_the_time_for_so_much_is_all_of_it_for_twice_as_much() -> None:
    found = over([BUSY] * FEWEST_WINDOWS)
    assert found == MeasuredCapacity(
        bytes_per_s=BytesPerSecond(20e6), spread=0.0, used=0.5, seconds=30.0
    )


def test_too_few_windows_give_no_estimate() -> None:
    assert over([BUSY] * (FEWEST_WINDOWS - 1)) is None
    assert estimate() is None


@pytest.mark.parametrize(
    "useless",
    [
        window(0, 0.9),  # it wrote tables, and read nothing
        window(10, 0.001),  # it slept
        window(10 * MB, 0.1, waited=0.9, held=0.9),  # its files did not land
    ],
)
def test_a_window_without_work_does_not_count(useless: Window) -> None:
    assert over([useless] * 50) is None
    assert per_s([BUSY] * 10 + [useless] * 50) == 20 * MB


def test_a_slow_minute_among_ten_is_outvoted() -> None:
    slow = window(10 * MB, 1.0)  # a disk that takes 2 MB/s
    assert per_s([BUSY] * 60 + [slow] * 12) == 20 * MB


def test_a_cold_start_is_outvoted_after_two_minutes() -> None:
    cold = window(5 * MB, 0.9)
    assert per_s([cold] * 4 + [BUSY] * 20) == 20 * MB


def test_what_stays_slow_counts() -> None:
    slow = window(10 * MB, 1.0)
    assert per_s([BUSY] * MOST_WINDOWS + [slow] * MOST_WINDOWS) == 2 * MB


def test_windows_of_nearly_nothing_do_not_outvote_those_with_work() -> None:
    """An idle consumer's time goes into what it does beside reading."""
    idle = window(50_000, 0.02)  # 10 kB/s: by this it could read 500 kB/s
    assert per_s([BUSY] * 10 + [idle] * 100) == 20 * MB


def test_a_consumer_is_not_believed_far_above_what_it_has_read() -> None:
    light = window(5 * MB, 0.01)  # 1 MB/s: by this it could read 100
    assert per_s([light] * 10) == GROWTH * MB


def test_the_spread_is_that_of_the_middle_half() -> None:
    windows = [window(mb * MB, 0.5) for mb in (10, 40, 45, 50, 55, 60, 200)]
    found = over(windows)
    assert found is not None
    assert float(found.bytes_per_s) == 20 * MB
    assert found.spread == pytest.approx((24 - 16) / 2 / 20)


@pytest.mark.parametrize(
    ("taken", "used"),
    [
        (window(1, 0.3), 0.3),
        (Window(5.0, 1, loop=0.3, process=0.7), 0.7),  # its threads, or its container's quota
        (window(1, 0.3, waited=0.4), 0.7),  # a slow disk
        (window(1, 0.7, waited=0.4), 1.0),
        (window(1, 0.3, full_speed=True), 1.0),  # brokers, the network, others on the machine
    ],
)
def test_what_is_scarcest_counts(taken: Window, used: float) -> None:
    assert taken.used == pytest.approx(used)


A, B, C = (TopicPartition("t", n) for n in range(3))


@pytest.mark.parametrize(
    ("before", "after", "full"),
    [
        ({A: (0, 1_000)}, {A: (400, 1_000)}, True),
        ({A: (0, 1_000)}, {A: (999, 1_500)}, True),
        ({A: (0, 1_000)}, {A: (1_000, 1_500)}, False),  # it may have waited for more
        ({A: (0, 100)}, {A: (400, 1_000)}, False),  # it had to wait at first
        ({A: (0, 900), B: (0, 300)}, {A: (300, 900), B: (300, 300)}, False),  # half, and no more
        ({A: (0, 900), B: (0, 299)}, {A: (300, 900), B: (299, 299)}, True),
        ({A: (0, 10), C: (0, 10_000)}, {A: (10, 10), C: (0, 10_000)}, False),  # C stands
        ({A: (0, 10)}, {A: (10, 10), B: (700, 10_000)}, False),  # B was begun meanwhile
        ({A: (500, 1_000)}, {A: (100, 1_000)}, False),  # it was begun again
        ({}, {}, False),
    ],
)
def test_full_speed_is_when_there_was_more_to_read_all_the_time(
    before: dict[TopicPartition, tuple[int, int]],
    after: dict[TopicPartition, tuple[int, int]],
    *,
    full: bool,
) -> None:
    assert at_full_speed(before, after) is full
