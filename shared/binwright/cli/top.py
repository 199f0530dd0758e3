"""`binwright top`: who is written how fast, live."""

import asyncio
import re
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from binwright.cli.screen import megabytes
from binwright.core.errors import WorldError
from binwright.core.ports import Reader
from binwright.lab.board import HISTORY, Board, Key, Row, sparkline
from binwright.shell.bus import KafkaBus
from binwright.shell.letters import measurements
from binwright.shell.settings import Settings

REFRESH_S = 0.5
SPARK = 24
BELOW = 6  # lines that are no rows
FIRST_S = 10.0
SETTLE_S = 1.5
COLOURS = {"measured": "green", "estimated": "yellow", "warming": "cyan", "stale": "red"}
SILENT_S = 5.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What is shown."""

    sort: Key
    pattern: re.Pattern[str] | None
    topics: bool  # topics instead of partitions
    limit: int | None  # rows; None: as many as there is room for


@dataclass(frozen=True, slots=True)
class Top:
    """The metrics topic as a table."""

    console: Console
    settings: Settings
    wish: Wish
    once: bool

    async def run(self) -> Board:
        """Show until cancelled; with `once`, return what is known as soon as there is something.

        Raises:
            WorldError: Kafka does not answer, or for too long nothing is said.
        """
        topic = self.settings.monitor.topic
        board = Board()
        async with KafkaBus(self.settings.kafka) as bus:
            end = await bus.end(topic, 0)
            # What was said lately gives the lines their past.
            reader = await bus.reader(topic, 0, max(0, end - HISTORY * 4))
            following = asyncio.create_task(_follow(reader, board))
            try:
                await (self._first(board, topic) if self.once else self._live(board, following))
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
                await reader.close()
        return board

    async def _first(self, board: Board, topic: str) -> None:
        try:
            async with asyncio.timeout(FIRST_S):
                while not board.passes:  # noqa: ASYNC110 - it is filled record by record
                    await asyncio.sleep(REFRESH_S)
        except TimeoutError as exc:
            raise WorldError(
                f"nothing stands on {topic}: does a monitor run (binwright monitor)?"
            ) from exc
        await asyncio.sleep(SETTLE_S)  # other topics, and the other parts of this one

    async def _live(self, board: Board, following: asyncio.Task[None]) -> None:
        loop = asyncio.get_running_loop()
        with Live(console=self.console, auto_refresh=False, screen=True) as live:
            while not following.done():
                height = self.wish.limit or max(1, self.console.height - BELOW)
                live.update(draw(board, self.wish, height, loop.time()), refresh=True)
                await asyncio.sleep(REFRESH_S)
        following.result()


async def _follow(reader: Reader, board: Board) -> None:
    now = asyncio.get_running_loop().time
    async for _, said in measurements(reader):
        board.measured(now(), said)


def draw(board: Board, wish: Wish, height: int, now: float) -> RenderableType:
    """Return the page: totals, then at most `height` rows."""
    rows = board.rows(wish.sort, wish.pattern, topics=wish.topics)
    table = Table(expand=True, box=None, header_style="bold")
    table.add_column("topic" if wish.topics else "partition", no_wrap=True)
    for name in ("rate", "records/s", "bytes/record", "size", "age", "leader"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("quality", no_wrap=True)
    table.add_column(f"last {SPARK} passes", no_wrap=True)
    for row in rows[:height]:
        table.add_row(*_cells(row))
    shown = min(height, len(rows))
    head = Text(f"{megabytes(board.total())}/s in all; {shown} of {len(rows)}, by {wish.sort}")
    if board.heard_at is None:
        head.append("  nothing heard yet", style="yellow")
    elif now - board.heard_at > SILENT_S:
        head.append(f"  no monitor for {now - board.heard_at:.0f} s", style="bold red")
    return Group(head, table)


def _cells(row: Row) -> tuple[str | Text, ...]:
    return (
        row.name,
        "" if row.rate is None else f"{megabytes(row.rate)}/s",
        "" if row.records_per_s is None else f"{row.records_per_s:,.1f}",
        "" if row.bytes_per_record is None else f"{row.bytes_per_record:,.0f}",
        "" if row.size is None else megabytes(row.size),
        f"{row.age_s:.1f} s",
        "" if row.leader is None else str(row.leader),
        Text(row.quality, style=COLOURS[row.quality]),
        sparkline(row.history, SPARK),
    )
