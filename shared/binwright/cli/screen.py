"""The live page of the terminal: consumers as bins, tables, what moves, what lags."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from binwright.lab.picture import Picture

BAR = 30  # characters of a consumer at its limit
NEWS_SHOWN = 8
REFRESH_S = 0.25
LINE_S = 5.0  # between lines, where there is no terminal
TABLE_COLOURS = {
    "landing": "green",
    "claiming": "cyan",
    "refused": "red",
    "unwritten": "red",
    "silent": "red",
}


async def show(console: Console, picture: Picture, limit: float, title: Callable[[], str]) -> None:
    """Keep the page up to date until cancelled; without a terminal say a line now and then."""
    while not console.is_terminal:
        await asyncio.sleep(LINE_S)
        console.log(line(picture))
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(draw(picture, limit, title()), refresh=True)
            await asyncio.sleep(REFRESH_S)


def megabytes(size: float) -> str:
    """Return bytes (or bytes/s) in MB, as people read them."""
    return f"{size / 1e6:,.2f} MB"


def draw(picture: Picture, limit: float, title: str) -> RenderableType:
    """Return the page.

    Args:
        picture: The group as last heard of.
        limit: What one consumer sustains, bytes/s: a full bar.
        title: What stands above.
    """
    parts = (_totals(picture), _consumers(picture, limit), _tables(picture), _news(picture))
    return Panel(Group(*parts), title=title)


def line(picture: Picture) -> str:
    """Return the page in one line, for logs and pipes."""
    loads = " ".join(
        f"{slot}:{picture.load(slot) / 1e6:.2f}({len(r.reading)})"
        for slot, r in sorted(picture.reports.items())
    )
    tables = " ".join(
        f"{topic}:{view.report.age_s:.1f}s@{'nobody' if view.writer is None else view.writer}"
        for topic, view in sorted(picture.tables.by_topic.items())
    )
    return (
        f"in {sum(picture.rates.values()) / 1e6:.2f} MB/s, "
        f"staging {picture.staging / 1e6:.2f} MB/s, "
        f"lag {picture.lag} records, {len(picture.moves)} moves, "
        f"consumers MB/s(partitions) {loads or 'none'}, tables age@writer {tables or 'none'}"
    )


def _totals(picture: Picture) -> RenderableType:
    table = Table.grid(expand=True)
    cells = (
        f"written {megabytes(sum(picture.rates.values()))}/s",
        f"staging {megabytes(picture.staging)}/s",
        f"lag {picture.lag:,} records, {megabytes(picture.lag_bytes)}",
        f"landed {picture.landed_rows:,} rows",
        f"{len(picture.moves)} moves",
    )
    for _ in cells:
        table.add_column(justify="center")
    table.add_row(*cells)
    return table


def _consumers(picture: Picture, limit: float) -> RenderableType:
    table = Table(expand=True, box=None)
    table.add_column("consumer", justify="right")
    table.add_column("load (a full bar is the limit)", width=BAR + 8)
    table.add_column("staging", justify="right")
    table.add_column("partitions, and the tables it writes")
    for slot, report in sorted(picture.reports.items()):
        state = "" if report.ready else "[dim]getting ready[/]"
        reading = [
            str(p) if offset is not None else f"[yellow]{p}…[/]"
            for p, offset in sorted(report.reading.items())
        ]
        writing = [f"[cyan]{escape(topic)} ✎[/]" for topic in sorted(report.writing)]
        table.add_row(
            str(slot),
            _bar(picture.load(slot), limit),
            f"{megabytes(report.rate)}/s",
            " ".join([*reading, *writing]) or state,
        )
    return table


def _tables(picture: Picture) -> RenderableType:
    table = Table(expand=True, box=None)
    table.add_column("table")
    for name in ("writer", "oldest row", "waiting", "rows", "commits"):
        table.add_column(name, justify="right")
    table.add_column("state")
    for topic, view in sorted(picture.tables.by_topic.items()):
        report = view.report
        state = report.state if view.writer is not None else "unwritten"
        fault = f": {report.fault}" if report.fault else ""
        table.add_row(
            escape(topic),
            "nobody" if view.writer is None else str(view.writer),
            f"{report.age_s:.1f} s" if report.pending_bytes else "",
            megabytes(report.pending_bytes),
            f"{view.rows:,}",
            f"{view.commits:,}",
            Text(f"{state}{fault}", style=TABLE_COLOURS[state]),
        )
    return table


def _bar(load: float, limit: float) -> Text:
    filled = round(BAR * min(load / limit, 1.0))
    colour = "red" if load > limit else "green"
    bar = Text("█" * filled, style=colour)
    bar.append("░" * (BAR - filled), style="dim")
    bar.append(f" {load / limit:4.0%}")
    return bar


def _news(picture: Picture) -> RenderableType:
    lines = [
        f"[dim]{datetime.fromtimestamp(at_ms / 1000, UTC).astimezone():%H:%M:%S}[/] {escape(words)}"
        for at_ms, words in list(picture.news)[-NEWS_SHOWN:]
    ]
    return Text.from_markup("\n".join(lines))
