"""What a demo came to, at a glance."""

from binwright.cli.summary import sparkline


def test_consumers_over_time_are_drawn_to_their_peak() -> None:
    assert sparkline([1, 2, 4, 2]) == "▂▄█▄"


def test_a_long_time_is_drawn_by_the_highest_of_each_stretch() -> None:
    assert sparkline([0, 8, 4, 4], width=2) == "█▄"


def test_no_time_is_no_line() -> None:
    assert sparkline([]) == ""
