"""What the lab's commands have in common: names of packings, streams, and a progress bar."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from binwright.lab.packing.experiments import StreamSource
from binwright.packing.catalogue import PAPER
from binwright.packing.catalogue import algorithm as by_name
from binwright.protocol.errors import SettingsError
from binwright.recordings import streams
from binwright.recordings.location import read_stream
from binwright.recordings.stream_file import ROW_S

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
) -> StreamSource:
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
    found = read_stream(name, console, row_s=row_s, capacity=capacity, spark=spark)
    return StreamSource(
        label=Path(name).name,
        delta=ceil(streams.largest_step(found.rows)),
        text=streams.dump(found.rows),
        row_s=found.row_s,
    )


def generated_source(
    partitions: int, rows: int, delta: int, seed: int, start: int | None = None
) -> StreamSource:
    """Return a generated stream, labelled by what is not the same in all of a comparison."""
    label = f"delta {delta}, seed {seed}" + ("" if start is None else f", start {start}")
    return StreamSource(
        label=label, partitions=partitions, rows=rows, delta=delta, seed=seed, start=start
    )


def progress_bar(console: Console) -> Progress:
    """Return a progress bar that counts what is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console)
