"""`binwright calibrate`: what a consumer reads of a backlog, and what it measures of itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from binwright.cli.options import Json
from binwright.cli.runner import run_for_result, working_directory
from binwright.cli.terminal import Console, print_json
from binwright.lab.commands.options import CORES
from binwright.lab.timings.capacity import ReadCapacity
from binwright.lab.timings.published import CONDITIONS, PublishedCapacity
from binwright.protocol.errors import SettingsError

MB = 1_000_000
PAPER_MB = 2.4
"""What the paper's consumer sustained, MB/s."""
LANDING = "landing"
"""The last condition: the first one, and rows land meanwhile."""


def command(
    *,
    gigabytes: Annotated[
        float, typer.Option(min=0.01, help="Backlog of each condition; 3 take a consumer 45 s.")
    ] = 3.0,
    conditions: Annotated[
        str, typer.Option(help="Numbers of the paper's conditions, and `landing`.")
    ] = "1,2,3,landing",
    keep: Annotated[Path | None, typer.Option(help="Keep tables and logs here.")] = None,
    json_: Json = False,
) -> None:
    """Measure what one consumer sustains on this machine: it reads backlogs, alone."""
    wanted = _named(conditions)
    console = Console(stderr=True, log_path=False, soft_wrap=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with working_directory(keep) as directory, Progress(*columns, console=console) as progress:
        read = run_for_result(partial(_measure, directory, wanted, gigabytes, progress))
    rows = [_row(one.name, seen) for one, seen in zip(wanted, read, strict=True)]
    if json_:
        print_json(rows)
        return
    _show(rows)


@dataclass(frozen=True, slots=True)
class _Condition:
    published: PublishedCapacity
    lands: bool

    @property
    def name(self) -> str:
        return f"{self.published.name}, {LANDING}" if self.lands else self.published.name


def _named(text: str) -> list[_Condition]:
    """Return the conditions of `--conditions`; raise `SettingsError` for an unknown one."""
    known = {str(n): _Condition(condition, False) for n, condition in enumerate(CONDITIONS, 1)}
    known[LANDING] = _Condition(CONDITIONS[0], True)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        raise SettingsError(f"--conditions: expected {', '.join(known)}, got {unknown[0]!r}")
    if not names:
        raise SettingsError("--conditions: name at least one")
    return [known[name] for name in dict.fromkeys(names)]


async def _measure(
    directory: Path,
    wanted: Sequence[_Condition],
    gigabytes: float,
    progress: Progress,
) -> list[ReadCapacity | None]:
    # Kafka's and the services' modules take a second: not for `--help`.
    from binwright.lab.timings.live.backlog import BacklogTest  # noqa: PLC0415
    from binwright.local.stack import servers  # noqa: PLC0415

    read: list[ReadCapacity | None] = []
    async with servers(directory, progress.console.log) as stack:
        for number, one in enumerate(wanted):
            show = partial(_share, progress, progress.add_task(one.name, total=1.0))
            scale = gigabytes * 1_000 * MB / one.published.total_bytes
            place = directory / f"condition-{number}"
            test = BacklogTest(one.published, scale, stack, place, show, one.lands)
            read.append(await test.run())
    return read


def _share(progress: Progress, task: TaskID, share: float) -> None:
    progress.update(task, completed=share)


def _row(name: str, read: ReadCapacity | None) -> dict[str, Any]:
    own = None if read is None else read.own
    mean = None if read is None else read.cycles.mean
    median = None if read is None else read.cycles.quantile(0.5)
    measured = None if own is None else own.bytes_per_s
    return {
        "condition": name,
        "read, MB/s": None if mean is None else round(mean / MB, 1),
        "median, MB/s": None if median is None else round(median / MB, 1),
        "measured by itself, MB/s": None if measured is None else round(measured / MB, 1),
        "spread": None if own is None else round(own.spread, 3),
        # It takes the median of its windows: a disk that is cold at first does not count.
        "difference": None if measured is None or not median else round(measured / median - 1, 3),
        "of the paper's": None if mean is None else round(mean / MB / PAPER_MB, 1),
    }


def _show(rows: Sequence[dict[str, Any]]) -> None:
    table = Table(title=f"A consumer that reads a backlog, on {CORES} cores")
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "condition" else "right")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    console = Console(soft_wrap=True, highlight=False)
    console.print(table)
    console.print(
        f"The paper's consumer sustained {PAPER_MB} MB/s. limit_bytes_per_s = auto goes by what a "
        "consumer measures by itself, less a quarter; empty: the backlog was too short for that."
    )
