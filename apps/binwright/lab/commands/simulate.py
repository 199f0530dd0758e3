"""`binwright lab simulate`: what a load would cost under the product's controller, and others."""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from binwright.cli.options import Json, Seed
from binwright.cli.terminal import Console, print_json
from binwright.lab.commands import options
from binwright.lab.commands.conditions import (
    Circumstances,
    policy_names,
    sustained_rate,
    variants,
)
from binwright.lab.simulation import sources
from binwright.lab.simulation.outcome import Outcome, Score
from binwright.lab.simulation.report import changes, series
from binwright.lab.simulation.run import NAMES, PRODUCT, Run, run_all
from binwright.lab.simulation.scenario import Scenario, Timing
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings.group import Settings
from binwright.streams.generated import Walk
from binwright.streams.location import StreamLocation

LEAST_WIDTH = 110  # of a table with long names; cells are not cut in a narrower terminal
SERIES_S = 30.0  # between the lines of the time series


def simulate(  # noqa: PLR0913 - one parameter for each option
    *,
    stream: Annotated[
        str | None,
        typer.Option(
            help="A stream or a recording: a file, or delta://PATH. Else one is generated."
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            help="Length of a stream's row, seconds (30); between a recording's measurements (all)."
        ),
    ] = None,
    capacity: options.FullRate = None,
    sustains: options.Sustains = None,
    policies: Annotated[
        str, typer.Option(help="Names, separated by commas.", show_default=True)
    ] = ",".join(NAMES),
    config: Annotated[
        list[Path] | None,
        typer.Option(help="A settings file to try; may be repeated. Else the settings."),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE,VALUE of a controller setting to try; may be repeated."),
    ] = None,
    sla: options.Sla = 5.0,
    price: options.Price = None,
    start_up: options.StartUp = options.TIMING.start_up_s,
    hand_over: options.HandOver = options.TIMING.hand_over_s,
    rebalance: Annotated[
        float | None,
        typer.Option(
            min=0, help="The same for changes of other policies, seconds; else by policy."
        ),
    ] = None,
    partitions: options.Partitions = 32,
    rows: options.LoadRows = 240,
    delta: options.Delta = 5,
    seed: Seed = 0,
    jobs: options.Jobs = options.CORES,
    output: Annotated[
        Path | None, typer.Option(help="Write tables, time series and charts here.")
    ] = None,
    json_: Json = False,
) -> None:
    """Simulate what a load would have cost, in consumers and in lag, under policies and settings.

    The product's own controller decides, on virtual time; the paper's and others do beside it.
    """
    console = Console(stderr=True, log_path=False, soft_wrap=True)
    names, tried = policy_names(policies), variants(config or [], vary or [], capacity)
    first = tried[0].settings
    walk = Walk(topics=options.TOPICS, partitions=1, rows=rows, delta=delta, seed=seed)
    walk = replace(walk, partitions=-(-partitions // len(options.TOPICS)))
    circumstances = Circumstances(
        source=_source(stream, walk, first, interval, console),
        timing=Timing(start_up_s=start_up, hand_over_s=hand_over, rebalance_s=rebalance),
        sustained=sustained_rate(first, sustains),
        sla_s=sla,
    )
    comparison = PolicyComparison(circumstances.source.label, sla, price)
    runs = [
        circumstances.run(name, variant.label, variant.settings)
        for name in names
        for variant in (tried if name == PRODUCT else tried[:1])
    ]
    outcomes = run_simulations(runs, console, jobs)
    if output is not None:
        comparison.write(runs[0].scenario, outcomes, output)
        console.print(f"written to {output}")
    comparison.show(outcomes, json_=json_)


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """One load under several policies and settings."""

    label: str  # of the load
    sla_s: float
    price: float | None

    def scores(self, outcomes: Sequence[Outcome]) -> list[Score]:
        """Return the figures of each outcome."""
        return [outcome.score(self.sla_s, self.price) for outcome in outcomes]

    def write(self, scenario: Scenario, outcomes: Sequence[Outcome], directory: Path) -> None:
        """Write the section, the time series, the plans and the scores."""
        from binwright.lab.report import files  # noqa: PLC0415 - a second of CPU
        from binwright.lab.simulation.report import section  # noqa: PLC0415

        files.write_section(section(scenario, outcomes, self.sla_s, self.price), directory)
        for table in (series(scenario, outcomes, SERIES_S), changes(outcomes)):
            files.write_csv(directory / f"{table.name}.csv", table)
        files.write_json(directory / "policies.json", self._json(outcomes))

    def show(self, outcomes: Sequence[Outcome], *, json_: bool) -> None:
        """Print the scores."""
        if json_:
            print_json(self._json(outcomes))
            return
        table = _table(self.label, self.scores(outcomes), self.sla_s)
        console = Console(soft_wrap=True)
        Console(width=max(console.width, LEAST_WIDTH)).print(table)
        for outcome in outcomes:
            if outcome.note:
                console.print(f"{outcome.policy}: {outcome.note}")

    def _json(self, outcomes: Sequence[Outcome]) -> dict[str, object]:
        notes = {outcome.policy: outcome.note for outcome in outcomes if outcome.note}
        scores = [asdict(score) for score in self.scores(outcomes)]
        return {"load": self.label, "sla_s": self.sla_s, "policies": scores, "notes": notes}


def _table(title: str, scores: Sequence[Score], sla_s: float) -> Table:
    """Return what fits into 80 columns, without a price; the files have more."""
    priced = any(score.cost is not None for score in scores)
    table = Table(title=f"{title}; latencies in s", box=None, pad_edge=False)
    table.padding = (0, 2, 0, 0)
    table.add_column("\npolicy", no_wrap=True)
    heads = ("replica-\nminutes", "\nmean", "\nmax", "\nmoves", "moved\nMB/s", "max lag\nMB")
    waits = ("\np50", "\np90", "\np99", f"% in\n{sla_s:g} s")
    for head in (*heads, *waits, *(("\ncost",) if priced else ())):
        table.add_column(head, justify="right", no_wrap=True)
    for score in scores:
        table.add_row(
            score.policy,
            f"{score.replica_minutes:,.0f}",
            f"{score.consumers_mean:.1f}",
            str(score.consumers_max),
            _shown(score.moves, ",d"),
            _shown(score.moved_bytes_per_s, ",.0f", 1e6),
            _shown(score.lag_max_bytes, ",.0f", 1e6),
            *(_shown(wait, ",.1f") for wait in (score.p50_s, score.p90_s, score.p99_s)),
            _shown(score.within_sla, ".2f", 0.01),
            *([_shown(score.cost, ",.2f")] if priced else []),
        )
    return table


def _shown(value: float | None, form: str, unit: float = 1) -> str:
    return "-" if value is None else format(value if unit == 1 else value / unit, form)


def _source(
    name: str | None,
    walk: Walk,
    settings: Settings,
    row_s: float | None,
    console: Console,
) -> sources.Source:
    capacity = BytesPerSecond(settings.controller.capacity)
    if name is None:
        return sources.generated(walk, capacity, row_s)
    with tempfile.TemporaryDirectory(prefix="binwright-lab-") as directory:
        file = asyncio.run(StreamLocation(console, Path(directory), name).fetch())
        return sources.from_file(file.path, capacity, row_s, label=Path(name).name)


def run_simulations(runs: Sequence[Run], console: Console, jobs: int) -> list[Outcome]:
    """Run all simulations with a progress bar; return their outcomes in the same order."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("simulating", total=len(runs))

        def done(label: str) -> None:
            progress.update(task, advance=1, description=f"simulated {label}")

        return run_all(runs, done, jobs)
