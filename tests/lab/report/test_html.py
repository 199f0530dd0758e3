"""The report is one page that needs nothing else."""

import re
from html.parser import HTMLParser

from matplotlib.figure import Figure

from binwright.lab.report.contents import Chart, ReportSection, ReportTable
from binwright.lab.report.html import as_html


def section(title: str) -> ReportSection:
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot([1, 2], [3, 4], label="seen <b>")
    axes.legend()
    table = ReportTable(
        name="ages", title="Ages & more", columns=("packing", "s"), rows=(("<mwf>", 1234.5),)
    )
    return ReportSection(
        title=title,
        source="a paper",
        about="<script>",
        tables=[table],
        charts=[Chart(name="curve", caption="A line.", figure=figure)],
    )


class Elements(HTMLParser):
    """Collects what the page is made of."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src", "xlink:href"}:
                self.links.append(value or "")


def test_the_page_loads_nothing_and_its_ids_are_its_own() -> None:
    page = as_html("The lab", "All of it.", [section("One"), section("Two")])
    found = Elements()
    found.feed(page)
    assert len(found.ids) == len(set(found.ids))
    assert {"svg", "table", "figcaption"} <= found.tags
    assert "script" not in found.tags
    assert all(link.startswith("#") and link[1:] in found.ids for link in found.links)
    assert all(target in found.ids for target in re.findall(r"url\(#([^)]+)\)", page))


def test_text_is_shown_as_it_is_written() -> None:
    page = as_html("The lab", "All of it.", [section("One")])
    assert "&lt;mwf&gt;" in page
    assert "Ages &amp; more" in page
    assert '<td class="number">1,234.5</td>' in page
    assert "<p>&lt;script&gt;</p>" in page
