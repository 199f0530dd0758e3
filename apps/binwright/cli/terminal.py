"""Sizes, short charts and tables as text for a terminal of any width, a file or a pipe."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from rich import console as rich_console
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from binwright.runtime.control_characters import visible

BARS = "▁▂▃▄▅▆▇█"
UNITS = ("B", "kB", "MB", "GB", "TB", "PB")
MEDIUM, LARGE = 100, 120  # characters of a terminal from which more columns are shown
WIDE = 500  # characters of a line in a file or a pipe: nothing is left out there


def data_size(size: float) -> str:
    """Return bytes (or bytes/s) as text, in the unit that fits; the page's script does the same."""
    unit = 0
    while size >= 999.5 and unit < len(UNITS) - 1:  # noqa: PLR2004 - shown as 1,000 from here on
        size, unit = size / 1000, unit + 1
    return f"{size:.{1 if unit and size < 9.95 else 0}f} {UNITS[unit]}"  # noqa: PLR2004 - likewise


def count(number: int, what: str) -> str:
    """Return `1 record`, `2 records`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


class Console(rich_console.Console):  # noqa: TID251 - the one in its place
    """A console on which texts of strangers are text: it writes no control character of theirs.

    Group, topic and reason come from messages, registries and records. rich itself lets ESC pass.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Yield what is written, with control characters in texts as escapes."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(visible(text), style)


@dataclass(frozen=True, slots=True)
class TerminalColumn:
    """A column of `fitting_table`.

    Attributes:
        name: Its heading.
        justify: Numbers stand at the right.
        shown_from: Characters of the terminal that it needs.
        fold: Text goes on in the next line; else it is never broken.
        shown: Whether it is shown at all.
        min_width: It does not become narrower than this, so that changing numbers move nothing.
    """

    name: str
    justify: Literal["left", "right"] = "right"
    shown_from: int = 0
    fold: bool = False
    shown: bool = True
    min_width: int | None = None


def fitting_table(
    columns: Sequence[TerminalColumn], rows: Iterable[Sequence[str | Text]], width: int
) -> Table:
    """Return a table with the columns that a terminal of `width` characters has room for."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    shown = [n for n, column in enumerate(columns) if column.shown and width >= column.shown_from]
    for column in (columns[number] for number in shown):
        table.add_column(
            column.name,
            justify=column.justify,
            no_wrap=not column.fold,
            overflow="fold",
            min_width=column.min_width,
        )
    for row in rows:
        table.add_row(*(row[number] for number in shown))
    return table


def page_console(*, wide: bool = False) -> Console:
    """Return the console for pages: as wide as the terminal, or as all columns need.

    Args:
        wide: Leave nothing out, although it is a terminal.
    """
    console = Console()
    return Console(width=WIDE) if wide or not console.is_terminal else console


def print_page(console: Console, page: RenderableType) -> None:
    """Print a page; its lines end where their text does."""
    with console.capture() as captured:
        console.print(page)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    console.file.flush()


def print_json(value: object, indent: int | None = 2) -> None:
    """Write JSON to standard output, for programs."""
    sys.stdout.write(json.dumps(value, indent=indent) + "\n")
    sys.stdout.flush()


def sparkline(values: Sequence[float], width: int) -> str:
    """Return the last `width` values as bars, the highest as a full bar."""
    shown = values[-width:]
    highest = max(shown, default=0.0)
    if not highest:
        return BARS[0] * len(shown)
    return "".join(BARS[min(int(value / highest * len(BARS)), len(BARS) - 1)] for value in shown)


def peaks(counts: Sequence[int], width: int = 60) -> str:
    """Return numbers over time as bars, the highest of each interval, none for 0."""
    step = max(1, -(-len(counts) // width))
    highest = [max(counts[i : i + step]) for i in range(0, len(counts), step)]
    return "".join(f" {BARS}"[round(peak * len(BARS) / max(*counts, 1))] for peak in highest)
