"""`binwright lab packing`: packings compared on the same streams."""

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from binwright.cli.console import to_stderr
from binwright.cli.options import Json
from binwright.lab.commands.inputs import numbers, packing_names, recorded_source
from binwright.lab.commands.options import CORES, Jobs, Partitions, Rows
from binwright.lab.commands.packing_runs import (
    EMBEDDED,
    Scores,
    Spark,
    generated_sources,
    run_packings,
    score_rows,
    write_scores,
)
from binwright.lab.packing.experiments import Experiment, Outcome, StreamSource, compare
from binwright.lab.packing.paper import PARTITIONS
from binwright.packing.catalogue import PAPER
from binwright.recordings.location import DEFAULT_ROW_S, RowSeconds, Stream

FOUR = ("mwf", "mbf", "mwfp", "mbfp")
Output = Annotated[
    Path | None, typer.Option(help="Write scores (JSON, CSV), every decision, and plots here.")
]


def packing(  # noqa: PLR0913 - one parameter for each option
    *,
    algorithms: Annotated[
        str, typer.Option(help="Names, separated by commas; `paper` for its twelve.")
    ] = "paper,sticky:0.8,sticky,sticky:10",
    stream: Stream = None,
    row_s: RowSeconds = DEFAULT_ROW_S,
    capacity: Annotated[
        float | None,
        typer.Option(
            min=1.0, help="Of a consumer, bytes/s, for a recording; else what it was recorded with."
        ),
    ] = None,
    partitions: Partitions = 32,
    rows: Rows = 501,
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
    json_: Json = False,
) -> None:
    """Run packings over the same streams, and score them; --stream runs them over your own."""
    console = Console(highlight=False, soft_wrap=True)
    progress = Console(stderr=True, log_path=False, soft_wrap=True)
    names = packing_names(algorithms)
    if stream is not None:
        there = None if spark == EMBEDDED else spark
        sources = [recorded_source(stream, progress, there, row_s=row_s, capacity=capacity)]
    else:
        steps = numbers(deltas, int, "--deltas")
        sources = generated_sources(steps, seeds, partitions, rows, start)
    sizes = tuple(numbers(capacities, float, "--capacities") if capacities else ())
    with to_stderr() if json_ else nullcontext():
        experiments = [Experiment(name, source, sizes) for source in sources for name in names]
        outcomes = run_packings(experiments, progress, jobs, spark)
    scores = compare(outcomes)
    if output is not None:
        _write_output(output, scores, outcomes, sources)
        progress.print(f"written to {output}")
    if json_:
        sys.stdout.write(json.dumps(score_rows(scores), indent=2) + "\n")
        return
    console.print(_table(scores))
    if dominance:
        console.print(_dominance(scores))


def _write_output(
    directory: Path,
    scores: Scores,
    outcomes: Sequence[Outcome],
    sources: Sequence[StreamSource],
) -> None:
    # matplotlib takes a second of CPU: only for those who want files.
    from binwright.lab.packing.figures import score_charts  # noqa: PLC0415
    from binwright.lab.report.files import write_figure  # noqa: PLC0415

    write_scores(directory, scores, outcomes)
    # The paper's values are of its number of partitions: beside others they mean nothing.
    papers = all(source.partitions == PARTITIONS for source in sources)
    for chart in score_charts(scores, recorded=papers):
        write_figure(chart.figure, directory, chart.name)


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
