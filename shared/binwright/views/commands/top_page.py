"""The page of `binwright top`: topics or partitions by rate, as text for a terminal."""

import re
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from binwright.views.commands.terminal import megabytes
from binwright.views.rates_view import RateRow, RatesView, SortKey, sparkline

SPARK_WIDTH = 24
COLOURS = {"measured": "green", "estimated": "yellow", "warming": "cyan", "stale": "red"}
SILENT_S = 5.0


@dataclass(frozen=True, slots=True)
class TopOptions:
    """Which rows are shown, and in which order."""

    sort: SortKey
    pattern: re.Pattern[str] | None  # that names contain
    topics: bool  # topics instead of partitions
    limit: int | None  # rows; None: as many as fit the terminal


def draw(view: RatesView, options: TopOptions, height: int, now: float) -> RenderableType:
    """Return the page: totals, then at most `height` rows; `now` in seconds, as `view.seen_at`."""
    rows = view.rows(options.sort, options.pattern, topics=options.topics)
    table = Table(expand=True, box=None, header_style="bold")
    table.add_column("topic" if options.topics else "partition", no_wrap=True)
    for name in ("rate", "records/s", "bytes/record", "size", "age", "leader"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("quality", no_wrap=True)
    table.add_column(f"last {SPARK_WIDTH} passes", no_wrap=True)
    for row in rows[:height]:
        table.add_row(*_cells(row))
    shown = min(height, len(rows))
    head = Text(f"{megabytes(view.total())}/s in all; {shown} of {len(rows)}, by {options.sort}")
    if view.seen_at is None:
        head.append("  no measurement yet", style="yellow")
    elif now - view.seen_at > SILENT_S:
        head.append(f"  no monitor for {now - view.seen_at:.0f} s", style="bold red")
    return Group(head, table)


def _cells(row: RateRow) -> tuple[str | Text, ...]:
    return (
        row.name,
        "" if row.rate is None else f"{megabytes(row.rate)}/s",
        "" if row.records_per_s is None else f"{row.records_per_s:,.1f}",
        "" if row.bytes_per_record is None else f"{row.bytes_per_record:,.0f}",
        "" if row.size is None else megabytes(row.size),
        f"{row.age_s:.1f} s",
        "" if row.leader is None else str(row.leader),
        Text(row.quality, style=COLOURS[row.quality]),
        sparkline(row.history, SPARK_WIDTH),
    )
