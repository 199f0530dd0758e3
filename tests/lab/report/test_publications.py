"""Every published figure and table is on the page, or the page says why not."""

from binwright.lab.report.contents import PublishedComparison, ReportSection
from binwright.lab.report.publications import GROUPS, MISSING, PUBLICATIONS, QUEUES, overview


def section(*items: str, publication: str = GROUPS) -> ReportSection:
    return ReportSection(
        title="",
        source="",
        expected="",
        seen="",
        publication=publication,
        comparisons=[
            PublishedComparison(of=item, ours=(f"our {item}",), difference="+1.") for item in items
        ],
    )


def test_a_figure_stands_with_its_section_its_places_and_its_difference() -> None:
    groups = overview([section(), section("Figure 5")]).tables[0]
    rows = {row[0]: row for row in groups.rows}

    assert rows["Figure 5"][2:] == ("3: our Figure 5", "+1.")


def test_a_figure_of_the_other_publication_is_not_taken_for_it() -> None:
    queues = overview([section("Figure 5")]).tables[1]

    assert {row[0]: row[3] for row in queues.rows}["Figure 5"] == MISSING


def test_what_was_not_run_is_named_and_what_cannot_run_has_its_reason() -> None:
    found = overview([section("Figure 5"), section("Table 2", publication=QUEUES)])

    assert found.seen.startswith("2 of 39 are on this page; not run: Figure 6, ")
    assert "Figure 13" not in found.seen
    assert {row[0]: row[3] for row in found.tables[0].rows}["Figure 13"] == (
        "Needs a live system: `binwright lab timings`."
    )


def test_each_publication_is_listed_without_a_gap() -> None:
    figures = {
        key: [item.name for item in one.items if item.name.startswith("Figure")]
        for key, one in PUBLICATIONS.items()
    }

    assert figures[GROUPS] == [f"Figure {number}" for number in range(1, 18)]
    assert figures[QUEUES] == [f"Figure {number}" for number in range(1, 13)]
