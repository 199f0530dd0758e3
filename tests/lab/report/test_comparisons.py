"""A published value beside ours, and the differences of a figure."""

import pytest

from binwright.lab.report.comparisons import differences, published_table
from binwright.lab.report.contents import PublishedComparison


def compared(
    published: float | tuple[float, float],
    ours: float | None,
    *,
    figure: str = "Figure 5",
    unit: str = "s",
    tolerance: float | None = None,
) -> PublishedComparison:
    return PublishedComparison(
        figure=figure,
        what=f"{published} {ours}",
        unit=unit,
        published=published,
        ours=ours,
        tolerance=tolerance,
    )


@pytest.mark.parametrize(
    ("published", "ours", "difference"),
    [(5.0, 4.0, -1.0), ((2.0, 3.0), 2.5, 0.0), ((2.0, 3.0), 3.5, 0.5), ((2.0, 3.0), 1.0, -1.0)],
)
def test_a_difference_is_ours_less_the_published_and_none_within_a_range(
    published: float | tuple[float, float], ours: float, difference: float
) -> None:
    assert compared(published, ours).difference == difference


def test_what_could_not_be_computed_has_no_difference() -> None:
    one = compared(5.0, None, tolerance=1.0)
    assert (one.difference, one.within) == (None, None)


def test_a_difference_of_the_tolerance_is_within_it() -> None:
    assert compared(5.0, 6.0, tolerance=1.0).within is True
    assert compared(5.0, 6.5, tolerance=1.0).within is False
    assert compared(5.0, 6.5).within is None


def test_a_figure_has_the_mean_and_the_largest_difference_of_each_unit() -> None:
    found = [compared(5.0, 4.0), compared(5.0, 8.0), compared(1.0, None), compared(9, 9, unit="%")]

    assert list(differences(found)) == [("s", 2, 2.0, 3.0, "5.0 8.0"), ("%", 1, 0.0, 0.0, "9 9")]


def test_every_comparison_has_a_row_and_ranges_are_shown() -> None:
    table = published_table("latency", [compared((2, 3), 3.5), compared(1.0, None)])

    assert table.columns == ["figure", "what", "unit", "published", "ours", "difference"]
    assert [row[3:] for row in table.rows] == [["2 to 3", 3.5, 0.5], [1.0, None, None]]
