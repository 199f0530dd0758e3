"""The live page of a terminal: consumers with their load, tables, totals, recent events."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from binwright.cli.terminal import MEDIUM, Console, TerminalColumn, count, data_size, fitting_table
from binwright.look.commands.status_page import faults, lag, rates, tables
from binwright.look.group_view import GroupView
from binwright.look.status import Status, status
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings

BORDER = 4  # characters of a line that the frame takes
FRAME = 3  # lines that it takes, with the one below it
EVENTS_SHOWN = 8
REFRESH_S = 0.25
LINE_S = 5.0  # between lines, without a terminal


async def show(
    console: Console,
    settings: Settings,
    view: GroupView,
    title: Callable[[], str],
    subtitle: str,
) -> None:
    """Keep the page up to date until cancelled; without a terminal log a line every `LINE_S`."""
    while not console.is_terminal:
        await asyncio.sleep(LINE_S)
        console.log(line(_status(settings, view)))
    with Live(console=console, auto_refresh=False, transient=True) as live:
        try:
            while True:
                page = draw(console, _status(settings, view), view, title(), subtitle)
                # The terminal echoes Ctrl-C on a line of its own: behind the frame it would scroll.
                live.update(Group(page, Text()), refresh=True)
                await asyncio.sleep(REFRESH_S)
        finally:
            live.update(Text())  # a page as high as the terminal could not be taken away


def _status(settings: Settings, view: GroupView) -> Status:
    return status(settings.group, view, wall_ms(), settings.landed_topics)


def draw(
    console: Console, current: Status, view: GroupView, title: str, subtitle: str
) -> RenderableType:
    """Return the page, no higher than the terminal as long as events can be left out.

    Args:
        console: Of the terminal.
        current: The group's status: its own partitions, whatever else is measured.
        view: Of the group.
        title: Above the page, with markup.
        subtitle: Below it, likewise.
    """
    inside = console.width - BORDER
    landed, moves = count(view.landed_rows, "row"), count(len(view.moves), "move")
    parts: tuple[RenderableType, ...] = (
        *faults(current),
        Text(f"{rates(current)}, landed {landed}, {moves}\n{lag(current)}"),
        _consumers(current, view, inside),
        tables(current, inside),
    )
    options = console.options.update(width=inside)
    room = console.height - len(console.render_lines(Group(*parts), options)) - FRAME
    for number in range(EVENTS_SHOWN, 0, -1):
        events = _events(view, number)
        if len(console.render_lines(events, options)) <= room:
            parts = (*parts, events)
            break
    return Panel(Group(*parts), title=title, subtitle=subtitle)


def line(current: Status) -> str:
    """Return the status in one line, for logs and pipes."""
    consumers = ", ".join(
        f"consumer {each.slot}: {data_size(each.load)}/s"
        f" ({count(len(each.partitions), 'partition')})"
        for each in current.consumers
    )
    tables = ", ".join(
        f"table {each.name} {each.state}, oldest row {each.report.age_s:.1f} s"
        for each in current.tables
    )
    wrong = "".join(f"; {fault.plain}" for fault in faults(current))
    sums = f"{rates(current)}, {lag(current)}"
    return f"{current.state}: {sums}; {consumers or 'no consumer'}; {tables}{wrong}"


def _consumers(current: Status, view: GroupView, width: int) -> Table:
    bar = 24 if width + BORDER >= MEDIUM else 12
    columns = (
        TerminalColumn("consumer"),
        TerminalColumn("load of its limit", "left"),
        TerminalColumn("staging", shown_from=MEDIUM - BORDER, min_width=8),
        TerminalColumn("partitions, and tables it writes", "left", fold=True),
    )
    rows = []
    for each in current.consumers:
        report = view.reports.get(each.slot)
        reading = [
            str(p) if report is None or report.reading.get(p) is not None else f"[yellow]{p}…[/]"
            for p in each.partitions
        ]
        writing = [f"[cyan]{escape(name)} ✎[/]" for name in each.tables]
        own = Text.from_markup(" ".join([*reading, *writing]))
        state = Text({"starting": "getting ready", "ready": "idle"}.get(each.state, each.state))
        rows.append(
            (
                str(each.slot),
                _bar(each.need, current.limit(each.slot), bar),
                f"{data_size(each.staging)}/s",
                own or state,
            )
        )
    return fitting_table(columns, rows, width)


def _bar(load: float, limit: float | None, width: int) -> Text:
    if limit is None:
        return Text(f"{data_size(load)}/s")
    filled = round(width * min(load / limit, 1.0))
    bar = Text("█" * filled, style="red" if load > limit else "green")
    bar.append("░" * (width - filled), style="dim")
    bar.append(f" {load / limit:4.0%} {data_size(load):>6}/s")
    return bar


def _events(view: GroupView, number: int) -> RenderableType:
    events = Table.grid(padding=(0, 1, 0, 0))
    for at_ms, text in list(view.recent_events)[-number:]:
        at = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone()
        events.add_row(Text(f"{at:%H:%M:%S}", style="dim"), Text(text))
    return events
