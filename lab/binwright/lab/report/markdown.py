"""A section as Markdown, its charts as images beside it."""

from collections.abc import Iterator, Sequence

from binwright.lab.report.section import Section, Table


def as_markdown(section: Section) -> str:
    """Return a section as a Markdown page; the charts' PNG files are beside it."""
    parts = [f"# {section.title}", f"Source: {section.source}.", section.expected, section.seen]
    parts += ["\n".join(_table(table)) for table in section.tables]
    parts += [
        f"![{chart.caption}]({chart.name}.png)\n\n{chart.caption}" for chart in section.charts
    ]
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> Iterator[str]:
    yield f"## {table.title}\n"
    yield _row(table.columns)
    yield "|---" * len(table.columns) + "|"
    for row in table.rows:
        yield _row(["" if cell is None else str(cell) for cell in row])
    if table.note:
        yield f"\n{table.note}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
