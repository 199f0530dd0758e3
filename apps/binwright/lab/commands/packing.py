"""`binwright lab packing` and `binwright lab paper`: packings compared on the same streams."""

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from binwright.cli.console import to_stderr
from binwright.cli.options import Json
from binwright.cli.terminal import Console, print_json
from binwright.lab.commands.options import (
    CORES,
    Jobs,
    Partitions,
    Rows,
    generated_source,
    numbers,
    packing_names,
    print_table,
    progress_bar,
    recorded_source,
)
from binwright.lab.packing import published as recorded
from binwright.lab.packing.experiments import (
    Experiment,
    PackingOutcome,
    PackingScore,
    PackingStream,
    compare,
    run_encoded,
    run_experiment,
)
from binwright.lab.processes import OnProgress, run_all
from binwright.lab.report.comparisons import published_table, published_tables
from binwright.lab.spark_tasks import run_on_spark
from binwright.local.stack import servers
from binwright.packing.catalogue import PAPER
from binwright.streams.location import DEFAULT_ROW_S, RowSeconds, Stream

EMBEDDED = "embedded"

Scores = Mapping[tuple[int, str], PackingScore]
Spark = Annotated[
    str | None,
    typer.Option(help="Spread over a Spark Connect server instead: sc://HOST:PORT, or embedded."),
]

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
            min=1.0, help="Capacity of a consumer, bytes/s, for a recording; else the recording's."
        ),
    ] = None,
    partitions: Partitions = 32,
    rows: Rows = 501,
    deltas: Annotated[str, typer.Option(help="Largest steps, per cent of capacity.")] = "5,15,25",
    seeds: Annotated[int, typer.Option(min=1, help="Streams for each delta.")] = 1,
    capacities: Annotated[
        str, typer.Option(help="Capacity of slots 0, 1, ..., per cent; 100 for all others.")
    ] = "",
    start: Annotated[
        int | None,
        typer.Option(min=0, max=100, help="First rate of all, per cent; else uniformly random."),
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
        print_json(score_rows(scores))
        return
    console.print(_table(scores))
    if dominance:
        console.print(_dominance(scores))


def _write_output(
    directory: Path,
    scores: Scores,
    outcomes: Sequence[PackingOutcome],
    sources: Sequence[PackingStream],
) -> None:
    # matplotlib takes a second of CPU: only for those who want files.
    from binwright.lab.packing.report import score_charts  # noqa: PLC0415
    from binwright.lab.report.files import write_figure  # noqa: PLC0415

    write_scores(directory, scores, outcomes)
    # The paper's values are of its number of partitions: beside others they mean nothing.
    papers = all(source.partitions == recorded.PARTITIONS for source in sources)
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
            other: rival
            for (at, other), rival in scores.items()
            if at == delta and other not in PAPER and rival.cbs <= score.cbs
        }
        row = [str(delta), name, f"{score.cbs:.4f}", f"{score.expected_rscore:.2f}"]
        if rivals:
            best = min(rivals, key=lambda other: rivals[other].expected_rscore)
            rival = rivals[best]
            ratio = rival.expected_rscore / score.expected_rscore
            row += [best, f"{rival.cbs:.4f}", f"{rival.expected_rscore:.2f}", f"{ratio:.3f}"]
        table.add_row(*row)
    return table


def generated_sources(
    deltas: Sequence[int], seeds: int, partitions: int, rows: int, start: int | None
) -> list[PackingStream]:
    """Return a stream for each delta and seed."""
    return [
        generated_source(partitions, rows, delta, seed, start)
        for delta in deltas
        for seed in range(seeds)
    ]


def run_packings(
    experiments: Sequence[Experiment], console: Console, jobs: int, spark: str | None
) -> list[PackingOutcome]:
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
) -> list[PackingOutcome]:
    async with servers(
        directory, console.log, bootstrap_servers="not needed", spark=None
    ) as embedded:
        return await asyncio.to_thread(
            run_parallel, experiments, on_progress, 1, embedded.spark_url
        )


def score_rows(scores: Scores) -> list[dict[str, str | int | float]]:
    """Return scores as rows, for JSON and CSV."""
    return [
        {"delta": delta, "algorithm": name, **asdict(score)}
        for (delta, name), score in scores.items()
    ]


def write_scores(directory: Path, scores: Scores, outcomes: Sequence[PackingOutcome]) -> None:
    """Write scores (JSON, CSV) and every decision's (JSON); the directory is made."""
    # matplotlib takes a second of CPU: only for those who want files.
    from binwright.lab.report.contents import ReportTable  # noqa: PLC0415
    from binwright.lab.report.files import write_csv, write_json  # noqa: PLC0415

    directory.mkdir(parents=True, exist_ok=True)
    rows = score_rows(scores)
    write_json(directory / "scores.json", rows)
    cells = [list(row.values()) for row in rows]
    table = ReportTable(name="scores", title="Scores", columns=list(rows[0]), rows=cells)
    write_csv(directory / "scores.csv", table)
    every = "[\n" + ",\n".join(outcome.encode() for outcome in outcomes) + "\n]\n"
    (directory / "decisions.json").write_text(every, encoding="ascii")


def paper(
    *,
    seeds: Annotated[int, typer.Option(min=1, help="Streams for each delta.")] = 1,
    rows: Annotated[int, typer.Option(min=1, help="Measurements of a stream.")] = recorded.ROWS,
    jobs: Jobs = CORES,
    spark: Spark = None,
    output: Annotated[Path, typer.Option(help="Directory of the report.")] = Path("paper"),
    json_: Json = False,
) -> None:
    """Reproduce the paper's Figures 9 to 12, beside its recorded values, with sticky added."""
    console = Console(stderr=True, log_path=False, soft_wrap=True)
    with to_stderr() if json_ else nullcontext():
        scores, starts, outcomes = run_paper(seeds, rows, console, jobs, spark)
    write_scores(output, scores, outcomes)
    _write_report(output, scores, starts, seeds, rows)
    console.print(f"written to {output / 'report.md'}")
    compared = recorded.comparisons(scores, starts)
    if json_:
        document = {
            "scores": score_rows(scores),
            "starts": score_rows(starts),
            "published": [asdict(one) | {"difference": one.difference} for one in compared],
        }
        print_json(document)
        return
    print_table(published_table("paper", recorded.headlines(scores)))
    print_table(published_tables("paper", compared)[0])
    Console(soft_wrap=True, highlight=False).print(f"Published: {recorded.SOURCE}.")


def run_paper(
    seeds: int, rows: int, console: Console, jobs: int, spark: str | None
) -> tuple[Scores, Scores, list[PackingOutcome]]:
    """Run the paper's packings and `sticky` over streams of the paper's size.

    Returns:
        Scores of the streams with uniformly random rates at first; means over all ways to start;
        and every outcome.
    """
    experiments = [
        Experiment(name, source)
        for start in recorded.STARTS
        for source in generated_sources(recorded.DELTAS, seeds, recorded.PARTITIONS, rows, start)
        for name in (*PAPER, *recorded.STICKY)
    ]
    outcomes = run_packings(experiments, console, jobs, spark)
    pairs = zip(experiments, outcomes, strict=True)
    uniform = [outcome for experiment, outcome in pairs if experiment.source.start is None]
    return compare(uniform), compare(outcomes), outcomes


def _write_report(output: Path, scores: Scores, starts: Scores, seeds: int, rows: int) -> None:
    # matplotlib takes a second of CPU: not before the experiments have run.
    from binwright.lab.packing.report import paper_section  # noqa: PLC0415
    from binwright.lab.report.files import (  # noqa: PLC0415
        as_markdown,
        write_json,
        write_section,
    )

    section = paper_section(scores, starts, seeds, rows)
    write_section(section, output)
    write_json(output / "fronts.json", score_rows(starts))
    (output / "report.md").write_text(as_markdown(section), encoding="utf-8")


def run_parallel(
    experiments: Sequence[Experiment], on_progress: OnProgress, jobs: int, spark: str | None = None
) -> list[PackingOutcome]:
    """Run all experiments; return their outcomes in the same order.

    Args:
        experiments: Each runs independently.
        on_progress: Called with the number of experiments that ended since the last call.
        jobs: Processes on this machine; 1: only this one.
        spark: A Spark Connect server, sc://HOST:PORT, that runs them instead.

    Raises:
        UserError: An experiment names an unknown packing, or its stream is malformed.
        LakeUnavailable: Spark failed.
    """
    if spark is not None:
        texts = [experiment.encode() for experiment in experiments]
        return [
            PackingOutcome.decode(text)
            for text in run_on_spark(run_encoded, texts, on_progress, spark)
        ]
    return run_all(run_experiment, experiments, lambda _: on_progress(1), jobs)
