"""A section's files: Markdown, JSON, CSV, SVG and PNG, the same bytes for the same values."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from binwright.lab.report.contents import ReportSection, ReportTable

DPI = 150


def write_json(file: Path, value: Any) -> None:
    """Write a value as JSON, indented."""
    file.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def write_csv(file: Path, table: ReportTable) -> None:
    """Write a table as CSV, with its columns as the first line."""
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows(table.rows)


def save_svg(figure: Figure, target: Path | IO[bytes]) -> None:
    """Write a figure as SVG, with its text as text."""
    # Without a salt matplotlib draws the ids of an SVG's parts at random.
    with rc_context({"svg.hashsalt": "binwright", "svg.fonttype": "none"}):
        figure.savefig(target, format="svg", metadata={"Date": None})


def write_figure(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Write a figure as SVG and as PNG; return both files."""
    files = [directory / f"{name}.svg", directory / f"{name}.png"]
    save_svg(figure, files[0])
    figure.savefig(files[1], dpi=DPI, metadata={"Software": None})
    return files


def write_section(section: ReportSection, directory: Path) -> list[Path]:
    """Write a section's tables and charts into a directory, made if it is missing; return them."""
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for table in section.tables:
        write_csv(directory / f"{table.name}.csv", table)
        written.append(directory / f"{table.name}.csv")
    for chart in section.charts:
        written += write_figure(chart.figure, directory, chart.name)
    return written


def as_markdown(section: ReportSection) -> str:
    """Return a section as a Markdown page; the charts' PNG files are beside it."""
    parts = [f"# {section.title}", f"Source: {section.source}.", section.about]
    parts += ["\n".join(_markdown_table(table)) for table in section.tables]
    parts += [
        f"![{chart.caption}]({chart.name}.png)\n\n{chart.caption}" for chart in section.charts
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _markdown_table(table: ReportTable) -> Iterator[str]:
    yield f"## {table.title}\n"
    yield _markdown_row(table.columns)
    yield "|---" * len(table.columns) + "|"
    for row in table.rows:
        yield _markdown_row(["" if cell is None else str(cell) for cell in row])
    if table.note:
        yield f"\n{table.note}"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
