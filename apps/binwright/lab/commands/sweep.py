"""`binwright lab sweep`: settings x policies x loads, and which settings to choose."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from binwright.cli.console import to_stderr
from binwright.cli.options import Json
from binwright.cli.terminal import Console
from binwright.lab.commands import options
from binwright.lab.commands.conditions import (
    combinations,
    policy_names,
    simulated_config,
    simulated_timing,
    sustained_rate,
)
from binwright.lab.commands.options import progress_bar
from binwright.lab.simulation.run import PRODUCT
from binwright.lab.simulation.scenario import Timing
from binwright.lab.sweep.points import Point, PointResult, SweepLoad, run_points
from binwright.lab.sweep.results import Candidate, Choice, candidates, choose, write_table
from binwright.lab.sweep.results import rows as result_rows
from binwright.local.spark_size import SparkSize
from binwright.local.stack import servers
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import BytesPerSecond
from binwright.streams.generated import Walk
from binwright.streams.location import TABLE_SCHEME, StreamLocation

EMBEDDED, CLUSTER = "embedded", "cluster"
EXECUTORS = 2  # of an embedded cluster

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the points run: on this machine's cores, or on Spark."""

    console: Console
    jobs: int
    spark: str | None

    def run(self, points: Sequence[Point], table: str | None) -> list[PointResult]:
        """Run all points; write the results to `table` if it is given."""
        with progress_bar(self.console) as progress:
            task = progress.add_task("points", total=len(points))

            def work(url: str | None) -> list[PointResult]:
                run_there = None if self.spark is None else url
                results = run_points(
                    points, lambda n: progress.advance(task, n), self.jobs, run_there
                )
                if table is not None:
                    assert url is not None  # a table needs a Spark, see below
                    write_table(results, url, table)
                return results

            if self.spark is None and table is None:
                return work(None)
            return self._with_spark(work)

    def _with_spark(self, work: Callable[[str | None], T]) -> T:
        embedded = self.spark in {None, EMBEDDED, CLUSTER}
        heap = SparkSize(workers=EXECUTORS if self.spark == CLUSTER else 0)

        async def run(directory: Path) -> T:
            async with servers(
                directory,
                self.console.log,
                bootstrap_servers="not needed",
                spark=None if embedded else self.spark,
                embedded=heap,
            ) as stack:
                return await asyncio.to_thread(work, stack.spark_url)

        with tempfile.TemporaryDirectory(prefix="binwright-lab-") as directory:
            return asyncio.run(run(Path(directory)))


def sweep(  # noqa: PLR0913 - one parameter for each option
    *,
    stream: Annotated[
        list[Path] | None,
        typer.Option(help="A file of a stream or recording; may be repeated. Else generated ones."),
    ] = None,
    interval: Annotated[
        float | None, typer.Option(min=0, help="Length of a stream's row, seconds; else 30.")
    ] = None,
    capacity: options.FullRate = None,
    sustains: options.Sustains = None,
    policies: Annotated[str, typer.Option(help="Names, separated by commas.")] = PRODUCT,
    config: Annotated[
        Path | None, typer.Option(help="A settings file to begin with; else the settings.")
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE,VALUE of a controller setting; repeated: all combinations."),
    ] = None,
    sla: options.Sla = 5.0,
    target: Annotated[
        float, typer.Option(min=0, max=1, help="Share of records to be read within it.")
    ] = 0.99,
    price: options.Price = None,
    start_up: options.StartUp = options.TIMING.start_up_s,
    hand_over: options.HandOver = options.TIMING.hand_over_s,
    partitions: Annotated[
        int, typer.Option(min=1, help="Partitions of each topic of a generated load.")
    ] = 16,
    rows: options.LoadRows = 240,
    delta: options.Delta = 5,
    seeds: Annotated[int, typer.Option(min=1, help="Number of generated loads.")] = 4,
    jobs: options.Jobs = options.CORES,
    spark: Annotated[
        str | None,
        typer.Option(help="Spread over Spark instead: sc://HOST:PORT, embedded, or cluster."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(help="Write the results into a new table, delta://PATH.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write results (CSV, JSON) and the Pareto chart here.")
    ] = None,
    json_: Json = False,
) -> None:
    """Simulate every combination of settings, policies and loads, and recommend settings."""
    console = Console(stderr=True, log_path=False, soft_wrap=True)
    names, tried = policy_names(policies), combinations(config, vary or [], capacity)
    first = tried[0].settings
    loads = _loads(
        stream or [],
        [
            Walk(topics=options.TOPICS, partitions=partitions, rows=rows, delta=delta, seed=seed)
            for seed in range(seeds)
        ],
        BytesPerSecond(first.controller.capacity),
        interval,
    )
    points = [
        Point(
            label=" ".join(filter(None, (name, variant.label))),
            policy=name,
            load=load,
            config=simulated_config(variant.settings),
            packing=variant.settings.controller.packing,
            timing=simulated_timing(
                variant.settings, Timing(start_up_s=start_up, hand_over_s=hand_over)
            ),
            sustained=sustained_rate(first, sustains),
            sla_s=sla,
            price=price,
        )
        for name in names
        # Only the product's controller has settings.
        for variant in (tried if name == PRODUCT else tried[:1])
        for load in loads
    ]
    path = _table_path(table, console)
    with to_stderr():
        results = Place(console, jobs, spark).run(points, path)
    swept = candidates(results)
    if not swept:
        raise SettingsError("--policies: none of these simulates how late records are read")
    choice = choose(swept, target, sla)
    if output is not None:
        _write(output, results, swept, choice)
        console.print(f"written to {output}")
    if json_:
        document = {"results": result_rows(results), "recommended": asdict(choice.recommended)}
        front = [one.label for one in choice.front]
        text = json.dumps({**document, "keeps_target": choice.keeps_target, "front": front})
        sys.stdout.write(text + "\n")
        return
    _print(swept, choice)


def _loads(
    files: Sequence[Path], walks: Sequence[Walk], capacity: BytesPerSecond, row_s: float | None
) -> list[SweepLoad]:
    if not files:
        return [
            SweepLoad(label=f"seed {walk.seed}", capacity=capacity, row_s=row_s, walk=walk)
            for walk in walks
        ]
    if len({file.name for file in files}) < len(files):
        raise SettingsError("--stream: two files have the same name")
    loads = [SweepLoad(label=f.name, capacity=capacity, row_s=row_s, file=f) for f in files]
    for load in loads:
        load.open()  # raises for a malformed file before anything runs
    return loads


def _table_path(name: str | None, console: Console) -> str | None:
    if name is None:
        return None
    if not name.startswith(TABLE_SCHEME):
        raise SettingsError(f"--table: expected delta://PATH, got {name!r}")
    return StreamLocation(console, Path(), name, None).table


def _write(
    directory: Path,
    results: Sequence[PointResult],
    swept: Sequence[Candidate],
    choice: Choice,
) -> None:
    # matplotlib takes a second of CPU: only for those who want files.
    from binwright.lab.report.files import write_json, write_section  # noqa: PLC0415
    from binwright.lab.sweep.report import sweep_section  # noqa: PLC0415

    write_section(sweep_section(results, swept, choice), directory)
    write_json(directory / "sweep.json", result_rows(results))


def _print(swept: Sequence[Candidate], choice: Choice) -> None:
    console = Console(highlight=False)
    front = {one.label for one in choice.front}
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("policy and settings", overflow="fold")
    for head in ("replica-minutes", f"within {choice.sla_s:g} s, %", "moves", "front"):
        table.add_column(head, justify="right", no_wrap=True)
    for one in sorted(swept, key=lambda one: one.replica_minutes):
        share, on_front = f"{100 * one.within_sla:.2f}", "*" if one.label in front else ""
        table.add_row(
            one.label, f"{one.replica_minutes:,.0f}", share, f"{one.moves:,.0f}", on_front
        )
    console.print(table)
    console.print(
        "Means over the loads; the share within the SLA is that of the load where it is least. "
        "*: on the Pareto front of the two."
    )
    if choice.keeps_target:
        console.print(f"Recommended: {choice.recommended.label}")
    else:
        console.print(
            f"Nothing keeps {choice.target:.2%} within {choice.sla_s:g} s; "
            f"nearest: {choice.recommended.label}"
        )
