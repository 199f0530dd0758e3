"""What the lab's commands share: options, names of packings, streams, and a progress bar."""

import os
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table as RichTable

from binwright.cli.terminal import Console, page_console, print_page
from binwright.lab.packing.experiments import PackingStream
from binwright.lab.simulation.scenario import Timing
from binwright.packing.catalogue import PAPER
from binwright.packing.catalogue import algorithm as by_name
from binwright.protocol.errors import SettingsError
from binwright.streams import streams
from binwright.streams.location import read_stream
from binwright.streams.stream_file import ROW_S

if TYPE_CHECKING:
    from binwright.lab.report.contents import Cell, ReportTable

CORES = os.cpu_count() or 1
TIMING = Timing()
"""Times that a simulation assumes by default."""
TOPICS = ("one", "two")
"""Of a generated load."""

Jobs = Annotated[
    int,
    typer.Option(min=1, help="Processes on this machine.", show_default="one for each core"),
]
Partitions = Annotated[int, typer.Option(min=1, help="Partitions of a generated stream.")]
Rows = Annotated[int, typer.Option(min=1, help="Measurements of a generated stream.")]
LoadRows = Annotated[int, typer.Option(min=1, help="Rows of a generated load.")]
Delta = Annotated[int, typer.Option(min=0, help="Largest step, per cent of capacity.")]
FullRate = Annotated[
    float | None,
    typer.Option(help="100 per cent of a stream, bytes/s; else the settings' capacity."),
]
Sustains = Annotated[
    float | None,
    typer.Option(help="What a consumer really sustains, bytes/s; else the settings' limit."),
]
Sla = Annotated[
    float, typer.Option(min=0, help="Time within which a record is to be read, seconds.")
]
Price = Annotated[
    float | None, typer.Option(help="Price of one consumer for an hour; adds the cost.")
]
StartUp = Annotated[
    float, typer.Option(min=0, help="Time from the request for a consumer until it reads, seconds.")
]
HandOver = Annotated[
    float, typer.Option(min=0, help="Time that a moving partition is not read, seconds.")
]


N = TypeVar("N", int, float)

KAFKA = tuple(f"kd_{consumers}" for consumers in (1, 3, 5, *range(10, 33)))
"""kd_n as in the paper's figures."""
GROUPS: Mapping[str, Sequence[str]] = MappingProxyType({"paper": PAPER, "kafka": KAFKA})
"""Names that stand for several packings."""


def packing_names(text: str, option: str = "--algorithms") -> list[str]:
    """Return the packings that an option names, each once.

    Raises:
        PackingError: There is no such packing.
        SettingsError: It names none.
    """
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    names = [one for name in wanted for one in GROUPS.get(name, (name,))]
    for name in names:
        by_name(name)  # raises for an unknown name before anything runs
    if not names:
        raise SettingsError(f"{option}: name at least one")
    return list(dict.fromkeys(names))


def numbers(text: str, kind: Callable[[str], N], option: str) -> list[N]:
    """Return the numbers that an option lists; raise `SettingsError` for anything else."""
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise SettingsError(f"{option}: expected numbers and commas, got {text!r}") from None


def recorded_source(
    name: str,
    console: Console,
    spark: str | None,
    *,
    row_s: float = ROW_S,
    capacity: float | None = None,
) -> PackingStream:
    """Read a stream or a recording; its delta is its largest step.

    Args:
        name: A file, `-`, or `delta://PATH`.
        console: For progress.
        spark: A Spark Connect server; None: one is embedded if it is needed.
        row_s: How long a row lasts, seconds.
        capacity: What 100 per cent are, bytes/s; None: what a recording was made with.

    Raises:
        StreamError, LakeUnavailable: It cannot be read.
    """
    recorded = read_stream(name, console, row_s=row_s, capacity=capacity, spark=spark)
    return PackingStream(
        label=Path(name).name,
        delta=ceil(streams.largest_step(recorded.rows)),
        text=streams.dump(recorded.rows),
        row_s=recorded.row_s,
    )


def generated_source(
    partitions: int, rows: int, delta: int, seed: int, start: int | None = None
) -> PackingStream:
    """Return a generated stream, labelled by what is not the same in all of a comparison."""
    label = f"delta {delta}, seed {seed}" + ("" if start is None else f", start {start}")
    return PackingStream(
        label=label, partitions=partitions, rows=rows, delta=delta, seed=seed, start=start
    )


def progress_bar(console: Console) -> Progress:
    """Return a progress bar that counts what is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console)


def as_rich(table: "ReportTable") -> RichTable:
    """Return a report's table as the terminal shows it: lines are broken between words."""
    rich = RichTable(title=table.title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for at, name in enumerate(table.columns):
        cells = [_text_of(row[at]) for row in table.rows]
        text = any(isinstance(row[at], str) for row in table.rows)
        longest = max(len(word) for cell in (name, *cells) for word in cell.split() or [""])
        rich.add_column(name, justify="left" if text else "right", min_width=longest)
    for row in table.rows:
        rich.add_row(*map(_text_of, row))
    return rich


LEAST_WIDTH = 130
"""Of a table: in a narrower terminal its lines go on in the next ones, and no column is cut off."""


def print_table(table: "ReportTable") -> None:
    """Print a report's table, in a file or a pipe as wide as it is."""
    width = max(page_console().width, LEAST_WIDTH)
    print_page(Console(width=width), as_rich(table))


def _text_of(cell: "Cell") -> str:
    if cell is None:
        return ""
    return f"{cell:.2f}" if isinstance(cell, float) else f"{cell}"
