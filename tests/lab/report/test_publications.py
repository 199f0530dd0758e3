"""Every published figure and table is on the page, or the page says why not."""

from binwright.lab.report.contents import Cell, PublishedComparison, ReportSection, ReportTable
from binwright.lab.report.publications import GROUPS, MISSING, PUBLICATIONS, QUEUES, overview


def section(*items: str, publication: str = GROUPS) -> ReportSection:
    return ReportSection(
        title="",
        source="",
        publication=publication,
        tables=[
            ReportTable(name=f"our {item}", title="", columns=(), rows=(), figures=(item,))
            for item in items
        ],
        comparisons=[
            PublishedComparison(figure=item, what="longest", unit="s", published=2, ours=3)
            for item in items
        ],
    )


def rows_of(key: str, *sections: ReportSection) -> dict[Cell, list[Cell]]:
    table = overview(sections).tables[list(PUBLICATIONS).index(key)]
    return {row[0]: list(row[2:]) for row in table.rows}


def test_a_figure_stands_with_its_section_its_places_and_its_difference() -> None:
    rows = rows_of(GROUPS, section(), section("Figure 5"))

    assert rows["Figure 5"] == ["3: our Figure 5", "s", 1, 1.0, 1.0, "longest", ""]


def test_a_figure_of_the_other_publication_is_not_taken_for_it() -> None:
    assert rows_of(QUEUES, section("Figure 5"))["Figure 5"] == ["", *[None] * 5, MISSING]


def test_what_was_not_run_is_named_and_what_cannot_run_has_its_reason() -> None:
    rows = rows_of(GROUPS, section("Figure 5"))

    assert rows["Figure 6"][-1] == MISSING
    assert rows["Figure 13"][-1] == "Needs a live system: `binwright lab timings`."
