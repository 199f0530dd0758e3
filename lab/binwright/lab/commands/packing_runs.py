"""Packing experiments, run with a progress bar, and the files of their scores."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from binwright.lab.commands.inputs import generated_source, progress_bar
from binwright.lab.packing.experiments import Experiment, Outcome, Score, StreamSource
from binwright.lab.packing.parallel import run_parallel
from binwright.lab.processes import OnProgress
from binwright.local.stack import servers

EMBEDDED = "embedded"

Scores = Mapping[tuple[int, str], Score]
Spark = Annotated[
    str | None,
    typer.Option(help="Spread over a Spark Connect server instead: sc://HOST:PORT, or embedded."),
]


def generated_sources(
    deltas: Sequence[int], seeds: int, partitions: int, rows: int, start: int | None
) -> list[StreamSource]:
    """Return a stream for each delta and seed."""
    return [
        generated_source(partitions, rows, delta, seed, start)
        for delta in deltas
        for seed in range(seeds)
    ]


def run_packings(
    experiments: Sequence[Experiment], console: Console, jobs: int, spark: str | None
) -> list[Outcome]:
    """Run all experiments, on cores or on Spark; raises like `run_parallel`."""
    with progress_bar(console) as progress:
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


def score_rows(scores: Scores) -> list[dict[str, str | int | float]]:
    """Return scores as rows, for JSON and CSV."""
    return [
        {"delta": delta, "algorithm": name, **asdict(score)}
        for (delta, name), score in scores.items()
    ]


def write_scores(directory: Path, scores: Scores, outcomes: Sequence[Outcome]) -> None:
    """Write scores (JSON, CSV) and every decision's (JSON); the directory is made."""
    # matplotlib takes a second of CPU: only for those who want files.
    from binwright.lab.report.files import write_csv, write_json  # noqa: PLC0415
    from binwright.lab.report.section import Table  # noqa: PLC0415

    directory.mkdir(parents=True, exist_ok=True)
    rows = score_rows(scores)
    write_json(directory / "scores.json", rows)
    cells = [list(row.values()) for row in rows]
    table = Table(name="scores", title="Scores", columns=list(rows[0]), rows=cells)
    write_csv(directory / "scores.csv", table)
    every = "[\n" + ",\n".join(outcome.encode() for outcome in outcomes) + "\n]\n"
    (directory / "decisions.json").write_text(every, encoding="ascii")
