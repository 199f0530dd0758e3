"""A page of figures keeps what is not refreshed."""

import pytest
from bench.figures.document import PageError, names, replaced

PAGE = """# Figures

Before.

## Landing

<!--figures:live-->
old
<!--/figures:live-->

What it says.

<!--figures:by-hand-->
kept
<!--/figures:by-hand-->

After.
"""
TITLES = {"live": "Landing", "deaths": "Deaths"}


def test_a_section_is_replaced_and_nothing_else() -> None:
    assert replaced(PAGE, {"live": "new"}, TITLES) == PAGE.replace("old", "new")


def test_a_section_that_no_bench_knows_is_kept() -> None:
    page = replaced(PAGE, {"live": "new", "deaths": "few"}, TITLES)
    assert "<!--figures:by-hand-->\nkept\n<!--/figures:by-hand-->" in page


def test_a_new_section_comes_last_with_its_heading() -> None:
    page = replaced(PAGE, {"deaths": "few"}, TITLES)
    assert page == (PAGE + "\n## Deaths\n\n<!--figures:deaths-->\nfew\n<!--/figures:deaths-->\n")


def test_refreshing_twice_changes_nothing_more() -> None:
    once = replaced(PAGE, {"live": "new\n", "deaths": "few"}, TITLES)
    assert replaced(once, {"live": "new\n", "deaths": "few"}, TITLES) == once
    assert names(once) == ["live", "by-hand", "deaths"]


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("<!--figures:live-->\n", "has no end: <!--/figures:live-->"),
        ("a\n<!--/figures:live-->\n", "line 2: .* does not fit: open is nothing"),
        ("<!--figures:a-->\n<!--figures:b-->\n", "line 2: .* does not fit: open is a"),
        ("<!--figures:a-->\n<!--/figures:b-->\n", "line 2: .* open is a"),
        ("<!--figures:a-->\n<!--/figures:a-->\n" * 2, "line 3: a second section a"),
    ],
)
def test_a_page_whose_markers_do_not_fit_is_refused(page: str, fault: str) -> None:
    with pytest.raises(PageError, match=fault):
        replaced(page, {"live": "new"}, TITLES)
