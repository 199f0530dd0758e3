"""`binwright lab packing` and `binwright lab paper`: packings side by side."""

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

from binwright.cli.record import TABLE, Place
from binwright.cli.stack import servers
from binwright.core.errors import SettingsError
from binwright.core.packing.catalogue import PAPER
from binwright.lab import paper as recorded
from binwright.lab import streams
from binwright.lab.chatter import to_stderr
from binwright.lab.packings import packing as by_name
from binwright.lab.paper import report
from binwright.lab.spread import Told, spread
from binwright.lab.trials import Outcome, Score, Source, Trial, compare

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Compare packings offline.")

EMBEDDED = "embedded"
FOUR = ("mwf", "mbf", "mwfp", "mbfp")

N = TypeVar("N", int, float)
Scores = Mapping[tuple[int, str], Score]
Jobs = Annotated[int, typer.Option(min=1, help="Processes on this machine.")]
Spark = Annotated[
    str | None,
    typer.Option(help="Spread over a Spark Connect server instead: sc://HOST:PORT, or embedded."),
]
Output = Annotated[
    Path | None, typer.Option(help="Write scores (JSON, CSV), every decision, and plots here.")
]
CORES = os.cpu_count() or 1


@app.command()
def packing(  # noqa: PLR0913 - one parameter for each option
    *,
    algorithms: Annotated[
        str, typer.Option(help="Names, separated by commas; `paper` for its twelve.")
    ] = "paper,sticky:0.8,sticky,sticky:10",
    stream: Annotated[
        str | None,
        typer.Option(help="A recorded stream instead of drawn ones: a file, or delta://PATH."),
    ] = None,
    partitions: Annotated[int, typer.Option(min=1, help="Of a drawn stream.")] = 32,
    rows: Annotated[int, typer.Option(min=1, help="Measurements of a drawn stream.")] = 501,
    deltas: Annotated[str, typer.Option(help="Largest steps, per cent of capacity.")] = "5,15,25",
    seeds: Annotated[int, typer.Option(min=1, help="Streams for each delta.")] = 1,
    capacities: Annotated[
        str, typer.Option(help="Of slots 0, 1, ..., per cent; of all others it is 100.")
    ] = "",
    start: Annotated[
        int | None, typer.Option(min=0, max=100, help="Every rate at first; else drawn evenly.")
    ] = None,
    jobs: Jobs = CORES,
    spark: Spark = None,
    output: Output = None,
    dominance: Annotated[
        bool, typer.Option(help="Who of MWF, MBF, MWFP and MBFP is beaten, and by which price.")
    ] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Run packings side by side over streams, and score them."""
    console = Console(stderr=json_, log_path=False, soft_wrap=True)
    names = _names(algorithms)
    if stream is not None:
        sources = [_recorded(stream, console, spark)]
    else:
        steps = _numbers(deltas, int, "--deltas")
        sources = _drawn(steps, seeds, partitions, rows, start)
    sizes = tuple(_numbers(capacities, float, "--capacities") if capacities else ())
    with to_stderr() if json_ else nullcontext():
        trials = [Trial(name, source, sizes) for source in sources for name in names]
        outcomes = _play(trials, console, jobs, spark)
    scores = compare(outcomes)
    if output is not None:
        _write(output, scores, outcomes)
        console.print(f"written to {output}")
    if json_:
        sys.stdout.write(json.dumps(_facts(scores), indent=2) + "\n")
        return
    console.print(_table(scores))
    if dominance:
        console.print(_dominance(scores))


@app.command()
def paper(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="Streams for each delta.")] = 1,
    rows: Annotated[int, typer.Option(min=1, help="Measurements of a stream.")] = recorded.ROWS,
    jobs: Jobs = CORES,
    spark: Spark = None,
    output: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("paper"),
) -> None:
    """Play the paper's Figures 9 to 12 again, with its recorded values and our packing beside."""
    console = Console(log_path=False, soft_wrap=True)
    trials = [
        Trial(name, source)
        for start in recorded.STARTS
        for source in _drawn(recorded.DELTAS, seeds, recorded.PARTITIONS, rows, start)
        for name in (*PAPER, *recorded.OURS)
    ]
    outcomes = _play(trials, console, jobs, spark)
    played = zip(trials, outcomes, strict=True)
    scores = compare([outcome for trial, outcome in played if trial.source.start is None])
    fronts = compare(outcomes)
    _write(output, scores, outcomes, fronts)
    _write_facts(output / "fronts.json", fronts)
    (output / "report.md").write_text(report(scores, fronts, seeds, rows), encoding="utf-8")
    console.print(f"written to {output / 'report.md'}")


def _names(text: str) -> list[str]:
    wanted = [name.strip() for name in text.split(",") if name.strip()]
    names = [one for name in wanted for one in (PAPER if name == "paper" else (name,))]
    for name in names:
        by_name(name)  # a wrong one is told before anything is played
    if not names:
        raise SettingsError("--algorithms: name at least one")
    return list(dict.fromkeys(names))


def _numbers(text: str, kind: Callable[[str], N], option: str) -> list[N]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise SettingsError(f"{option}: expected numbers and commas, got {text!r}") from None


def _recorded(name: str, console: Console, spark: str | None) -> Source:
    """Read a stream; its delta is the largest step in it, as of a drawn one."""
    if name.startswith(TABLE):
        found = _from_table(name, console, None if spark == EMBEDDED else spark)
    else:
        found = streams.read(Path(name))
    label = Path(name).name
    return Source(label=label, delta=ceil(streams.largest_step(found)), text=streams.dump(found))


def _from_table(name: str, console: Console, spark: str | None) -> streams.Stream:
    with tempfile.TemporaryDirectory(prefix="binwright-lab-") as directory:
        place = Place(console, Path(directory), name, spark)
        return streams.of_recording(asyncio.run(place.read()))


def _drawn(
    deltas: Sequence[int], seeds: int, partitions: int, rows: int, start: int | None
) -> list[Source]:
    return [
        Source(
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


def _play(trials: Sequence[Trial], console: Console, jobs: int, spark: str | None) -> list[Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("trials", total=len(trials))
        if spark != EMBEDDED:
            return spread(trials, lambda more: progress.advance(task, more), jobs, spark)
        with tempfile.TemporaryDirectory(prefix="binwright-lab-") as directory:
            return asyncio.run(
                _embedded(
                    trials, console, Path(directory), lambda more: progress.advance(task, more)
                )
            )


async def _embedded(
    trials: Sequence[Trial], console: Console, directory: Path, told: Told
) -> list[Outcome]:
    async with servers(directory, console.log, bootstrap_servers="not needed", spark=None) as found:
        return await asyncio.to_thread(spread, trials, told, 1, found.spark)


def _facts(scores: Scores) -> list[dict[str, object]]:
    return [
        {"delta": delta, "algorithm": name, **asdict(score)}
        for (delta, name), score in scores.items()
    ]


def _write_facts(file: Path, scores: Scores) -> None:
    file.write_text(json.dumps(_facts(scores), indent=2) + "\n", encoding="ascii")


def _write(
    directory: Path, scores: Scores, outcomes: Sequence[Outcome], fronts: Scores | None = None
) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    _write_facts(directory / "scores.json", scores)
    with (directory / "scores.csv").open("w", newline="", encoding="ascii") as file:
        names = ["delta", "algorithm", *(field.name for field in fields(Score))]
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(_facts(scores))
    every = "[\n" + ",\n".join(outcome.encode() for outcome in outcomes) + "\n]\n"
    (directory / "decisions.json").write_text(every, encoding="ascii")
    from binwright.lab.figures import draw  # noqa: PLC0415 - a second that no other command waits

    draw(scores, directory, fronts)


def _table(scores: Scores) -> Table:
    table = Table("delta", "packing", *("consumers", "CBS", "E[R]", "moves"))
    for (delta, name), score in scores.items():
        table.add_row(
            *(str(delta), name, f"{score.consumers:.2f}", f"{score.cbs:.4f}"),
            *(f"{score.expected_rscore:.2f}", f"{score.moves:.2f}"),
        )
    return table


def _dominance(scores: Scores) -> Table:
    """For each of the paper's four: of the others with no more consumers, who moves least."""
    table = Table("delta", "packing", "CBS", "E[R]", "beaten by", "CBS", "E[R]", "E[R] ratio")
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
