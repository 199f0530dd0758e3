"""`binwright lab packing` and `binwright lab paper`: packings compared on the same streams."""

import asyncio
import csv
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, fields
from math import ceil
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from binwright.cli.local.stack import servers
from binwright.cli.measurements.recording_location import TABLE_SCHEME, RecordingLocation
from binwright.core.errors import SettingsError
from binwright.core.packing.catalogue import PAPER
from binwright.lab import streams
from binwright.lab.packing import paper as recorded
from binwright.lab.packing.experiments import Experiment, Outcome, Score, StreamSource, compare
from binwright.lab.packing.paper import report
from binwright.lab.packing.parallel import OnProgress, run_parallel
from binwright.ops.console import to_stderr
from binwright.packings.by_name import packing as by_name

EMBEDDED = "embedded"
FOUR = ("mwf", "mbf", "mwfp", "mbfp")

N = TypeVar("N", int, float)
Scores = Mapping[tuple[int, str], Score]
Jobs = Annotated[
    int,
    typer.Option(min=1, help="Processes on this machine.", show_default="one for each core"),
]
Spark = Annotated[
    str | None,
    typer.Option(help="Spread over a Spark Connect server instead: sc://HOST:PORT, or embedded."),
]
Output = Annotated[
    Path | None, typer.Option(help="Write scores (JSON, CSV), every decision, and plots here.")
]
CORES = os.cpu_count() or 1


def packing(  # noqa: PLR0913 - one parameter for each option
    *,
    algorithms: Annotated[
        str, typer.Option(help="Names, separated by commas; `paper` for its twelve.")
    ] = "paper,sticky:0.8,sticky,sticky:10",
    stream: Annotated[
        str | None,
        typer.Option(help="A recorded stream instead of generated ones: a file, or delta://PATH."),
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Of a generated stream.")] = 32,
    rows: Annotated[int, typer.Option(min=1, help="Measurements of a generated stream.")] = 501,
    deltas: Annotated[str, typer.Option(help="Largest steps, per cent of capacity.")] = "5,15,25",
    seeds: Annotated[int, typer.Option(min=1, help="Streams for each delta.")] = 1,
    capacities: Annotated[
        str, typer.Option(help="Of slots 0, 1, ..., per cent; of all others it is 100.")
    ] = "",
    start: Annotated[
        int | None, typer.Option(min=0, max=100, help="Every rate at first; else uniformly random.")
    ] = None,
    jobs: Jobs = CORES,
    spark: Spark = None,
    output: Output = None,
    dominance: Annotated[
        bool,
        typer.Option(help="Which price dominates each of MWF, MBF, MWFP and MBFP."),
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Run packings over the same streams, and score them."""
    console = Console(stderr=json_, log_path=False, soft_wrap=True)
    names = _names(algorithms)
    if stream is not None:
        sources = [_recorded(stream, console, spark)]
    else:
        steps = _numbers(deltas, int, "--deltas")
        sources = _generated(steps, seeds, partitions, rows, start)
    sizes = tuple(_numbers(capacities, float, "--capacities") if capacities else ())
    with to_stderr() if json_ else nullcontext():
        experiments = [Experiment(name, source, sizes) for source in sources for name in names]
        outcomes = _run(experiments, console, jobs, spark)
    scores = compare(outcomes)
    if output is not None:
        _write_output(output, scores, outcomes)
        console.print(f"written to {output}")
    if json_:
        sys.stdout.write(json.dumps(_rows(scores), indent=2) + "\n")
        return
    console.print(_table(scores))
    if dominance:
        console.print(_dominance(scores))


def paper(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="Streams for each delta.")] = 1,
    rows: Annotated[int, typer.Option(min=1, help="Measurements of a stream.")] = recorded.ROWS,
    jobs: Jobs = CORES,
    spark: Spark = None,
    output: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("paper"),
) -> None:
    """Reproduce the paper's Figures 9 to 12, beside its recorded values, with sticky added."""
    console = Console(log_path=False, soft_wrap=True)
    experiments = [
        Experiment(name, source)
        for start in recorded.STARTS
        for source in _generated(recorded.DELTAS, seeds, recorded.PARTITIONS, rows, start)
        for name in (*PAPER, *recorded.STICKY)
    ]
    outcomes = _run(experiments, console, jobs, spark)
    pairs = zip(experiments, outcomes, strict=True)
    scores = compare([outcome for experiment, outcome in pairs if experiment.source.start is None])
    fronts = compare(outcomes)
    _write_output(output, scores, outcomes, fronts)
    _write_scores(output / "fronts.json", fronts)
    (output / "report.md").write_text(report(scores, fronts, seeds, rows), encoding="utf-8")
    console.print(f"written to {output / 'report.md'}")


def _names(text: str) -> list[str]:
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    names = [one for name in wanted for one in (PAPER if name == "paper" else (name,))]
    for name in names:
        by_name(name)  # raises for an unknown name before anything runs
    if not names:
        raise SettingsError("--algorithms: name at least one")
    return list(dict.fromkeys(names))


def _numbers(text: str, kind: Callable[[str], N], option: str) -> list[N]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise SettingsError(f"{option}: expected numbers and commas, got {text!r}") from None


def _recorded(name: str, console: Console, spark: str | None) -> StreamSource:
    """Read a stream; its delta is its largest step."""
    if name.startswith(TABLE_SCHEME):
        found = _from_table(name, console, None if spark == EMBEDDED else spark)
    else:
        found = streams.read(Path(name))
    label = Path(name).name
    return StreamSource(
        label=label, delta=ceil(streams.largest_step(found)), text=streams.dump(found)
    )


def _from_table(name: str, console: Console, spark: str | None) -> streams.Stream:
    with tempfile.TemporaryDirectory(prefix="binwright-lab-") as directory:
        location = RecordingLocation(console, Path(directory), name, spark)
        return streams.from_recording(asyncio.run(location.read()))


def _generated(
    deltas: Sequence[int], seeds: int, partitions: int, rows: int, start: int | None
) -> list[StreamSource]:
    return [
        StreamSource(
            label=f"delta {delta}, seed {seed}" + ("" if start is None else f", start {start}"),
            partitions=partitions,
            rows=rows,
            delta=delta,
            seed=seed,
            start=start,
        )
        for delta in deltas
        for seed in range(seeds)
    ]


def _run(
    experiments: Sequence[Experiment], console: Console, jobs: int, spark: str | None
) -> list[Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("experiments", total=len(experiments))
        if spark != EMBEDDED:
            return run_parallel(experiments, lambda more: progress.advance(task, more), jobs, spark)
        with tempfile.TemporaryDirectory(prefix="binwright-lab-") as directory:
            return asyncio.run(
                _embedded(
                    experiments, console, Path(directory), lambda more: progress.advance(task, more)
                )
            )


async def _embedded(
    experiments: Sequence[Experiment], console: Console, directory: Path, on_progress: OnProgress
) -> list[Outcome]:
    async with servers(directory, console.log, bootstrap_servers="not needed", spark=None) as found:
        return await asyncio.to_thread(run_parallel, experiments, on_progress, 1, found.spark)


def _rows(scores: Scores) -> list[dict[str, object]]:
    return [
        {"delta": delta, "algorithm": name, **asdict(score)}
        for (delta, name), score in scores.items()
    ]


def _write_scores(file: Path, scores: Scores) -> None:
    file.write_text(json.dumps(_rows(scores), indent=2) + "\n", encoding="ascii")


def _write_output(
    directory: Path, scores: Scores, outcomes: Sequence[Outcome], fronts: Scores | None = None
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    _write_scores(directory / "scores.json", scores)
    with (directory / "scores.csv").open("w", newline="", encoding="ascii") as file:
        names = ["delta", "algorithm", *(field.name for field in fields(Score))]
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(_rows(scores))
    every = "[\n" + ",\n".join(outcome.encode() for outcome in outcomes) + "\n]\n"
    (directory / "decisions.json").write_text(every, encoding="ascii")
    from binwright.lab.packing.figures import write_figures  # noqa: PLC0415 - a second of CPU

    write_figures(scores, directory, fronts)


def _table(scores: Scores) -> Table:
    table = Table("delta", "packing", *("consumers", "CBS", "E[R]", "moves"))
    for (delta, name), score in scores.items():
        table.add_row(
            *(str(delta), name, f"{score.consumers:.2f}", f"{score.cbs:.4f}"),
            *(f"{score.expected_rscore:.2f}", f"{score.moves:.2f}"),
        )
    return table


def _dominance(scores: Scores) -> Table:
    """Return, for each of the paper's four, the packing of least E[R] with no higher CBS."""
    table = Table("delta", "packing", "CBS", "E[R]", "dominated by", "CBS", "E[R]", "E[R] ratio")
    for (delta, name), score in scores.items():
        if name not in FOUR:
            continue
        rivals = {
            other: found
            for (at, other), found in scores.items()
            if at == delta and other not in PAPER and found.cbs <= score.cbs
        }
        row = [str(delta), name, f"{score.cbs:.4f}", f"{score.expected_rscore:.2f}"]
        if rivals:
            best = min(rivals, key=lambda other: rivals[other].expected_rscore)
            found = rivals[best]
            ratio = found.expected_rscore / score.expected_rscore
            row += [best, f"{found.cbs:.4f}", f"{found.expected_rscore:.2f}", f"{ratio:.3f}"]
        table.add_row(*row)
    return table
