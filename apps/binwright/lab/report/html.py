"""The sections on one page of HTML that needs nothing else: no network, no other file."""

import io
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from binwright.lab.report.contents import Cell, Chart, ReportSection, ReportTable
from binwright.lab.report.files import save_svg

_ID = re.compile(r'(\bid="|url\(#|href="#)')
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<h1>{title}</h1>
<p>{summary}</p>
<nav aria-label="Contents">
<ol>
{contents}
</ol>
</nav>
{sections}
</body>
</html>
"""


def as_html(title: str, summary: str, sections: Sequence[ReportSection]) -> str:
    """Return the page; equal sections give equal text.

    Args:
        title: Of the page.
        summary: A paragraph below the title.
        sections: In their order; each is also an entry of the contents.
    """
    numbered = list(enumerate(sections, 1))
    style = (files("binwright.lab.report") / "page.css").read_text(encoding="utf-8")
    return _PAGE.format(
        title=escape(title),
        style=style,
        summary=escape(summary),
        contents="\n".join(f'<li><a href="#s{n}">{escape(s.title)}</a></li>' for n, s in numbered),
        sections="\n".join(line for n, s in numbered for line in _section(n, s)),
    )


def _section(number: int, section: ReportSection) -> Iterator[str]:
    yield f'<section id="s{number}">'
    yield f"<h2>{escape(section.title)}</h2>"
    yield f"<p>Source: {escape(section.source)}.</p>"
    if section.about:
        yield f"<p>{escape(section.about)}</p>"
    for index, chart in enumerate(section.charts):
        yield from _chart(f"s{number}c{index}-", chart)
    for table in section.tables:
        yield from _table(table)
    yield "</section>"


def _chart(prefix: str, chart: Chart) -> Iterator[str]:
    yield "<figure>"
    yield _svg(prefix, chart)
    yield f"<figcaption>{escape(chart.caption)} <code>{escape(chart.name)}</code></figcaption>"
    yield "</figure>"


def _svg(prefix: str, chart: Chart) -> str:
    """Return the chart's SVG; its ids get a prefix, as all charts share the page."""
    buffer = io.BytesIO()
    save_svg(chart.figure, buffer)
    text = buffer.getvalue().decode("utf-8")
    return _ID.sub(rf"\g<1>{prefix}", text[text.index("<svg") :])


def _table(table: ReportTable) -> Iterator[str]:
    yield '<div class="table"><table>'
    yield f"<caption>{escape(table.title)} <code>{escape(table.name)}</code></caption>"
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    yield f"<thead><tr>{heads}</tr></thead>"
    yield "<tbody>"
    for row in table.rows:
        yield "<tr>" + "".join(map(_cell, row)) + "</tr>"
    yield "</tbody>"
    yield "</table></div>"
    if table.note:
        yield f'<p class="note">{escape(table.note)}</p>'


def _cell(value: Cell) -> str:
    match value:
        case None:
            return "<td></td>"
        case str():
            return f"<td>{escape(value)}</td>"
        case int():
            return f'<td class="number">{value:,}</td>'
        case float():
            return f'<td class="number">{value:,}</td>'
