"""Windows of each day, in UTC."""

import pytest

from binwright.protocol.daily_windows import MINUTE_MS, DailyWindow

DAY_MS = 24 * 60 * MINUTE_MS


def at(hour: int, minute: int) -> int:
    return 20_000 * DAY_MS + (60 * hour + minute) * MINUTE_MS


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        ("22:00-06:00", [(22, 0), (23, 59), (0, 0), (5, 59)], [(6, 0), (12, 0), (21, 59)]),
        ("09:30-17:00", [(9, 30), (16, 59)], [(9, 29), (17, 0), (0, 0)]),
    ],
)
def test_a_window_has_its_start_and_not_its_end(
    window: str, inside: list[tuple[int, int]], outside: list[tuple[int, int]]
) -> None:
    found = DailyWindow.parse(window)
    assert str(found) == window
    assert all(found.includes(at(*each)) for each in inside)
    assert not any(found.includes(at(*each)) for each in outside)


@pytest.mark.parametrize("text", ["", "22:00", "24:00-06:00", "22:60-23:00", "9:00-10:00"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a window of a day, as 22:00-06:00"):
        DailyWindow.parse(text)


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ValueError, match="begins when it ends"):
        DailyWindow.parse("08:00-08:00")
