"""A section as a page."""

from matplotlib.figure import Figure

from binwright.lab.report.markdown import as_markdown
from binwright.lab.report.section import Chart, Section, Table


def test_a_section_becomes_headings_tables_and_images() -> None:
    table = Table(
        name="t", title="Ages", columns=("packing", "p90, s"), rows=(("a|b", None),), note="A note."
    )
    chart = Chart(name="curve", caption="A line.", figure=Figure())
    section = Section(
        title="Title", source="Source", expected="E.", seen="S.", tables=[table], charts=[chart]
    )

    assert as_markdown(section) == (
        "# Title\n\nSource: Source.\n\nE.\n\nS.\n\n"
        "## Ages\n\n| packing | p90, s |\n|---|---|\n| a\\|b |  |\n\nA note.\n\n"
        "![A line.](curve.png)\n\nA line.\n"
    )
