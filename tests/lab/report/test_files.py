"""A section's files: equal bytes for equal values, and Markdown."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from binwright.lab.report.contents import Chart, ReportSection, ReportTable
from binwright.lab.report.files import as_markdown, write_section

TABLE = ReportTable(
    name="ages",
    title="Ages",
    columns=("packing", "p90, s"),
    rows=(("mwf", 217.325), ("a, quoted", None)),
)


def section() -> ReportSection:
    figure = Figure()
    figure.add_subplot().plot([1, 2], [3, 4], label="seen")
    chart = Chart(name="curve", caption="A line.", figure=figure)
    return ReportSection(title="t", source="s", tables=[TABLE], charts=[chart])


def test_a_section_is_written_the_same_each_time(tmp_path: Path) -> None:
    first, second = (write_section(section(), tmp_path / name) for name in ("one", "two"))
    assert [file.name for file in first] == ["ages.csv", "curve.svg", "curve.png"]
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]
    assert first[0].read_text() == 'packing,"p90, s"\nmwf,217.325\n"a, quoted",\n'


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="ages: 1 cells for 2 columns"):
        ReportTable(name="ages", title="", columns=("a", "b"), rows=(("x",),))


def test_a_section_becomes_headings_tables_and_images() -> None:
    table = ReportTable(
        name="t", title="Ages", columns=("packing", "p90, s"), rows=(("a|b", None),), note="A note."
    )
    chart = Chart(name="curve", caption="A line.", figure=Figure())
    section = ReportSection(
        title="Title", source="Source", about="A.", tables=[table], charts=[chart]
    )

    assert as_markdown(section) == (
        "# Title\n\nSource: Source.\n\nA.\n\n"
        "## Ages\n\n| packing | p90, s |\n|---|---|\n| a\\|b |  |\n\nA note.\n\n"
        "![A line.](curve.png)\n\nA line.\n"
    )
