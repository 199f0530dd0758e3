"""`binwright top`: topics and partitions by write rate, live."""

import asyncio
import re
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from binwright.cli.options import Bootstrap, Wide, settings_at
from binwright.cli.runner import run
from binwright.cli.terminal import (
    LARGE,
    MEDIUM,
    Console,
    TerminalColumn,
    data_size,
    fitting_table,
    page_console,
    print_json,
    print_page,
    sparkline,
)
from binwright.kafka.control_records import messages
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.look.follower import read_recent_measurements
from binwright.look.rates_view import HISTORY, RateRow, RatesView, SortKey
from binwright.protocol.errors import ExternalError, SettingsError
from binwright.protocol.metrics import decode_measurement
from binwright.protocol.ports.kafka import Reader
from binwright.runtime.settings.group import Settings

REFRESH_S = 0.5
OTHER_LINES = 6  # of the terminal: title, header and margins
FIRST_S = 10.0
SETTLE_S = 1.5
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


def draw(
    view: RatesView, options: TopOptions, height: int, now: float, width: int
) -> RenderableType:
    """Return the page: totals, then rows.

    Args:
        view: The rates.
        options: Which rows, and in which order.
        height: Rows at most.
        now: Seconds, as `view.seen_at`.
        width: Characters of the terminal; what has no room is left out.
    """
    rows = view.rows(options.sort, options.pattern, topics=options.topics)
    columns = (
        TerminalColumn("topic" if options.topics else "partition", "left", fold=True, min_width=16),
        TerminalColumn("rate", min_width=8),
        TerminalColumn("records/s", min_width=9),
        TerminalColumn("bytes/record", shown_from=MEDIUM),
        TerminalColumn("size", shown_from=MEDIUM, min_width=6),
        TerminalColumn("age", min_width=6),
        TerminalColumn("leader", shown_from=LARGE),
        TerminalColumn("quality", "left", min_width=9),
        TerminalColumn(f"last {SPARK_WIDTH} passes", "left", shown_from=LARGE),
    )
    table = fitting_table(columns, map(_cells, rows[:height]), width)
    shown = min(height, len(rows))
    what = "topics" if options.topics else "partitions"
    head = Text(f"{data_size(view.total())}/s in all; {shown} of {len(rows)} {what}")
    head.append(f", by {options.sort}")
    if view.seen_at is None:
        head.append("  no measurement yet", style="yellow")
    elif now - view.seen_at > SILENT_S:
        head.append(f"  no monitor for {now - view.seen_at:.0f} s", style="bold red")
    return Group(head, table)


def _cells(row: RateRow) -> tuple[str | Text, ...]:
    return (
        row.name,
        "" if row.rate is None else f"{data_size(row.rate)}/s",
        "" if row.records_per_s is None else f"{row.records_per_s:,.1f}",
        "" if row.bytes_per_record is None else f"{row.bytes_per_record:,.0f}",
        "" if row.size is None else data_size(row.size),
        f"{row.age_s:.1f} s",
        "" if row.leader is None else str(row.leader),
        Text(row.quality, style=COLOURS[row.quality]),
        sparkline(row.history, SPARK_WIDTH),
    )


@dataclass(frozen=True, slots=True)
class Top:
    """Shows the metrics topic as a table."""

    console: Console
    settings: Settings
    options: TopOptions
    once: bool

    async def run(self) -> RatesView:
        """Show until cancelled; with `once`, return the rates as soon as there are some.

        Raises:
            ExternalError: Kafka does not answer, or no measurement arrives within `FIRST_S`.
        """
        topic = self.settings.monitor.topic
        view = RatesView()
        async with KafkaControlTopics(self.settings.kafka, read_only=True) as bus:
            # Earlier measurements fill the sparklines.
            reader, _ = await read_recent_measurements(bus, topic, HISTORY * 4)
            following = asyncio.create_task(_follow(reader, view))
            try:
                await (self._first(view, topic) if self.once else self._live(view, following))
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                await reader.close()
        return view

    async def _first(self, view: RatesView, topic: str) -> None:
        try:
            async with asyncio.timeout(FIRST_S):
                while not view.passes:  # noqa: ASYNC110 - it is filled record by record
                    await asyncio.sleep(REFRESH_S)
        except TimeoutError as exc:
            raise ExternalError(
                f"no measurement on {topic}: does a monitor run (binwright monitor)?"
            ) from exc
        await asyncio.sleep(SETTLE_S)  # other topics, and the other parts of this one

    async def _live(self, view: RatesView, following: asyncio.Task[None]) -> None:
        loop = asyncio.get_running_loop()
        with Live(console=self.console, auto_refresh=False, screen=True) as live:
            while not following.done():
                height = self.options.limit or max(1, self.console.height - OTHER_LINES)
                page = draw(view, self.options, height, loop.time(), self.console.width)
                live.update(page, refresh=True)
                await asyncio.sleep(REFRESH_S)
        following.result()


async def _follow(reader: Reader, view: RatesView) -> None:
    now = asyncio.get_running_loop().time
    async for _, measurement in messages(reader, decode_measurement):
        view.apply_measurement(now(), measurement)


def command(
    *,
    bootstrap_servers: Bootstrap = None,
    sort: Annotated[SortKey, typer.Option(help="Column to sort by.")] = "rate",
    filter_: Annotated[
        str | None, typer.Option("--filter", help="Only names that hold this regular expression.")
    ] = None,
    topics: Annotated[
        bool, typer.Option("--topics", help="Show topics instead of partitions.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Most lines to print.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once, and end.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON once, for programs.")] = False,
    wide: Wide = False,
) -> None:
    """Show topics and partitions by how fast they are written, live."""
    console = page_console(wide=wide)
    options = TopOptions(sort, _pattern(filter_), topics, limit)
    once = once or json_ or not console.is_terminal
    top = Top(console, settings_at(bootstrap_servers), options, once=once)
    views: list[RatesView] = []

    async def show() -> None:
        views.append(await top.run())

    code = run(show)
    for view in views:
        rows = view.rows(sort, options.pattern, topics=topics)[:limit]
        if json_:
            print_json([row.to_json() for row in rows])
        else:
            page = draw(view, options, len(rows), view.seen_at or 0.0, console.width)
            print_page(console, page)
    raise typer.Exit(code)


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as exc:
        raise SettingsError(f"--filter: not a regular expression: {text!r}: {exc}") from exc
