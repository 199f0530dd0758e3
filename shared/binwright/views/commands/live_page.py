"""The live page of a terminal: consumers with their load, tables, totals, recent events."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from binwright.cli.terminal import megabytes
from binwright.views.group_view import GroupView

BAR = 30  # characters of a full bar: a consumer at its limit
EVENTS_SHOWN = 8
REFRESH_S = 0.25
LINE_S = 5.0  # between lines, without a terminal
TABLE_COLOURS = {
    "landing": "green",
    "claiming": "cyan",
    "refused": "red",
    "unwritten": "red",
    "silent": "red",
}


async def show(console: Console, view: GroupView, limit: float, title: Callable[[], str]) -> None:
    """Keep the page up to date until cancelled; without a terminal log a line every `LINE_S`."""
    while not console.is_terminal:
        await asyncio.sleep(LINE_S)
        console.log(line(view))
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(draw(view, limit, title()), refresh=True)
            await asyncio.sleep(REFRESH_S)


def draw(view: GroupView, limit: float, title: str) -> RenderableType:
    """Return the page.

    Args:
        view: Of the group.
        limit: What one consumer sustains, bytes/s: the length of a full bar.
        title: Above the page, with markup.
    """
    parts = (_totals(view), _consumers(view, limit), _tables(view), _events(view))
    return Panel(Group(*parts), title=title)


def line(view: GroupView) -> str:
    """Return the totals in one line, for logs and pipes."""
    loads = " ".join(
        f"{slot}:{view.load(slot) / 1e6:.2f}({len(r.reading)})"
        for slot, r in sorted(view.reports.items())
    )
    tables = " ".join(
        f"{topic}:{each.report.age_s:.1f}s@{'none' if each.writer is None else each.writer}"
        for topic, each in sorted(view.tables.by_topic.items())
    )
    lost = f"lost offsets {view.lost_offsets.total()}, " if view.lost_offsets.total() else ""
    return (
        f"in {sum(view.rates.values()) / 1e6:.2f} MB/s, "
        f"staging {view.staging / 1e6:.2f} MB/s, "
        f"lag {view.lag} records, {lost}{len(view.moves)} moves, "
        f"consumers MB/s(partitions) {loads or 'none'}, tables age@writer {tables or 'none'}"
    )


def _totals(view: GroupView) -> RenderableType:
    table = Table.grid(expand=True)
    lost = view.lost_offsets.total()
    cells = (
        f"written {megabytes(sum(view.rates.values()))}/s",
        f"staging {megabytes(view.staging)}/s",
        f"lag {view.lag:,} records, {megabytes(view.lag_bytes)}",
        f"landed {view.landed_rows:,} rows",
        f"{len(view.moves)} moves",
        *([f"[red]{lost:,} offsets lost to retention[/]"] if lost else []),
    )
    for _ in cells:
        table.add_column(justify="center")
    table.add_row(*cells)
    return table


def _consumers(view: GroupView, limit: float) -> RenderableType:
    table = Table(expand=True, box=None)
    table.add_column("consumer", justify="right")
    table.add_column("load (a full bar is the limit)", width=BAR + 8)
    table.add_column("staging", justify="right")
    table.add_column("partitions, and the tables it writes")
    for slot, report in sorted(view.reports.items()):
        state = "" if report.ready else "[dim]getting ready[/]"
        reading = [
            str(p) if offset is not None else f"[yellow]{p}…[/]"
            for p, offset in sorted(report.reading.items())
        ]
        writing = [f"[cyan]{escape(topic)} ✎[/]" for topic in sorted(report.writing)]
        table.add_row(
            str(slot),
            _bar(view.load(slot), limit),
            f"{megabytes(report.rate)}/s",
            " ".join([*reading, *writing]) or state,
        )
    return table


def _tables(view: GroupView) -> RenderableType:
    table = Table(expand=True, box=None)
    table.add_column("table")
    for name in ("writer", "oldest row", "waiting", "rows", "commits"):
        table.add_column(name, justify="right")
    table.add_column("state")
    for topic, table_view in sorted(view.tables.by_topic.items()):
        report = table_view.report
        state = report.state if table_view.writer is not None else "unwritten"
        fault = f": {report.fault}" if report.fault else ""
        table.add_row(
            escape(topic),
            "none" if table_view.writer is None else str(table_view.writer),
            f"{report.age_s:.1f} s" if report.pending_bytes else "",
            megabytes(report.pending_bytes),
            f"{table_view.rows:,}",
            f"{table_view.commits:,}",
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


def _events(view: GroupView) -> RenderableType:
    lines = [
        f"[dim]{datetime.fromtimestamp(at_ms / 1000, UTC).astimezone():%H:%M:%S}[/] {escape(text)}"
        for at_ms, text in list(view.recent_events)[-EVENTS_SHOWN:]
    ]
    return Text.from_markup("\n".join(lines))
