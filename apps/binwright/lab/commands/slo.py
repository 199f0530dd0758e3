"""`binwright lab slo`: scaling policies on simulated consumer groups, beside published results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from binwright.cli.options import Json
from binwright.cli.terminal import Console, print_json
from binwright.lab.commands.options import CORES, Jobs, print_table
from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.lab.simulation.records.group import GroupSettings
from binwright.lab.slo.cases import (
    TableCase,
    frontier_table,
    other_tables,
    skewed_table,
    table_of_file,
    tables_of,
)
from binwright.lab.slo.results import collect, run_all, runs_of
from binwright.lab.slo.workloads import PARTITIONS, first, read, second, skewed
from binwright.protocol.errors import SettingsError

if TYPE_CHECKING:
    from binwright.lab.report.contents import ReportSection

SHORT_S = 1_800
"""Workloads up to this length get the larger number of seeds by default."""
SEEDS, SEEDS_OF_LONG = 12, 3
WIDTH = 120
"""Characters a line where the output is not a terminal."""


def slo(
    *,
    workload: Annotated[
        str,
        typer.Option(
            help="w1, w2, skew, all, or a FILE with events per second: a number a line, or CSV."
        ),
    ] = "all",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Runs of each policy.",
            show_default=f"{SEEDS}, of workloads above {SHORT_S} s {SEEDS_OF_LONG}",
        ),
    ] = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1, help="Partitions of the topic; with a FILE.", show_default=str(PARTITIONS)
        ),
    ] = None,
    service_ms: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Time that a replica takes for a record, ms; with a FILE.",
            show_default="5",
        ),
    ] = None,
    sla_ms: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="Time from arrival to commit in which a record is in time, ms; with a FILE.",
            show_default="500",
        ),
    ] = None,
    burst_ms: Annotated[
        float | None,
        typer.Option(
            min=10,
            max=1_000,
            help="Time between bursts of records, ms; with a FILE.",
            show_default="1000",
        ),
    ] = None,
    jobs: Jobs = CORES,
    output: Annotated[
        Path | None, typer.Option(help="Write tables (CSV) and figures (SVG, PNG) here.")
    ] = None,
    json_: Json = False,
) -> None:
    """Simulate scaling policies, and compare them with a paper's tables and figures."""
    console = Console(stderr=json_, log_path=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDTH
    own = (partitions, service_ms, sla_ms, burst_ms)
    section = run_tables(_tables(workload, *own), seeds, jobs)
    if output is not None:
        from binwright.lab.report.files import write_section  # noqa: PLC0415 - a second of CPU

        write_section(section, output)
        console.print(f"written to {output}")
    if json_:
        print_json(_as_json(section))
        return
    for table in section.tables:
        print_table(table)
        console.print(f"{table.note}\n", style="dim")
    console.print(f"Published: {section.source}.", soft_wrap=False)


def _tables(
    name: str,
    partitions: int | None,
    service_ms: float | None,
    sla_ms: float | None,
    burst_ms: float | None,
) -> list[TableCase]:
    own = (partitions, service_ms, sla_ms, burst_ms)
    if name not in PUBLISHED:
        default = GroupSettings()
        settings = replace(
            default,
            service_s=default.service_s if service_ms is None else service_ms / 1_000,
            sla_s=default.sla_s if sla_ms is None else sla_ms / 1_000,
            burst_s=default.burst_s if burst_ms is None else burst_ms / 1_000,
        )
        workload = read(Path(name), PARTITIONS if partitions is None else partitions)
        return [table_of_file(workload, settings)]
    if any(value is not None for value in own):
        options = "--partitions, --service-ms, --sla-ms and --burst-ms"
        raise SettingsError(f"{options} are for a workload of your own, not for {name}")
    return PUBLISHED[name]()


def _of_1() -> list[TableCase]:
    return [*tables_of(first(), 1), frontier_table(first(), 1), *other_tables(first())]


def _of_2() -> list[TableCase]:
    return [*tables_of(second(), 2), frontier_table(second(), 2)]


def _skew() -> list[TableCase]:
    return [skewed_table(skewed(first()), 1), skewed_table(skewed(second()), 2)]


def _all() -> list[TableCase]:
    return [*_of_1(), *_of_2(), *_skew()]


PUBLISHED: Mapping[str, Callable[[], list[TableCase]]] = {
    "w1": _of_1,
    "w2": _of_2,
    "skew": _skew,
    "all": _all,
}


def _seeded(tables: Sequence[TableCase], seeds: int | None) -> list[TableCase]:
    return [replace(one, seeds=seeds or _default_seeds(one.workload)) for one in tables]


def _default_seeds(workload: RecordLoad) -> int:
    return SEEDS if workload.duration_s <= SHORT_S else SEEDS_OF_LONG


def published_section(seeds: int | None, jobs: int) -> "ReportSection":
    """Return all of the paper's tables; see `run_tables`."""
    return run_tables(_all(), seeds, jobs)


def run_tables(tables: Sequence[TableCase], seeds: int | None, jobs: int) -> "ReportSection":
    """Run tables with a progress bar.

    Args:
        tables: In the order to show them.
        seeds: Runs of each policy; None: more where the workload is short.
        jobs: Processes.
    """
    seeded = _seeded(tables, seeds)
    runs = runs_of(seeded)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        total_s = sum(one.workload.duration_s for one in runs)
        task = progress.add_task(f"{len(runs)} simulations", total=total_s)
        outcomes = run_all(runs, jobs, lambda more: progress.advance(task, more))
    from binwright.lab.slo.report import section  # noqa: PLC0415 - a second of CPU

    return section(collect(seeded, outcomes))


def _as_json(section: "ReportSection") -> dict[str, Any]:
    return {
        "source": section.source,
        "tables": {
            table.name: {
                "title": table.title,
                "note": table.note,
                "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows],
            }
            for table in section.tables
        },
    }
