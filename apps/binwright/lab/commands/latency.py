"""`binwright lab latency`: how late records are read, beside Kafka's own assignment."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.table import Table

from binwright.cli.console import to_stderr
from binwright.cli.options import Json, Seed
from binwright.cli.terminal import Console, print_json
from binwright.lab.commands.options import (
    CORES,
    Delta,
    Jobs,
    Partitions,
    Rows,
    generated_source,
    packing_names,
    print_table,
    progress_bar,
    recorded_source,
)
from binwright.lab.latency import published
from binwright.lab.latency.experiments import (
    LatencyExperiment,
    LatencyModel,
    LatencyOutcome,
    run_latency,
)
from binwright.lab.latency.published import (
    NOTE,
    Likeness,
    comparisons,
    headlines,
    likeness,
    values,
)
from binwright.lab.packing.experiments import Experiment, PackingStream
from binwright.lab.processes import run_all
from binwright.lab.report.comparisons import published_table, published_tables

FIGURE_5 = "kd_27,mwf"


def latency(  # noqa: PLR0913 - one parameter for each option
    *,
    algorithms: Annotated[
        str,
        typer.Option(help="Names, separated by commas; `paper`: its twelve; `kafka`: its kd_n."),
    ] = "kafka,paper,sticky",
    stream: Annotated[
        str | None,
        typer.Option(help="A recorded stream instead of a generated one: a file, or delta://PATH."),
    ] = None,
    partitions: Partitions = published.PARTITIONS,
    rows: Rows = published.ROWS,
    delta: Delta = published.DELTA,
    seed: Seed = 0,
    limit: Annotated[
        float, typer.Option(help="C': what a consumer reads, per cent of capacity.")
    ] = published.MODEL.limit,
    interval_s: Annotated[
        float, typer.Option(help="T: time between measurements, seconds.")
    ] = published.MODEL.interval_s,
    rebalance_s: Annotated[
        float, typer.Option(help="Time until a moved partition is read again, seconds.")
    ] = published.MODEL.rebalance_s,
    histogram: Annotated[
        str, typer.Option(help="Packings of the histogram, as far as they run.")
    ] = FIGURE_5,
    spark: Annotated[
        str | None, typer.Option(help="Reads delta://PATH: sc://HOST:PORT; else one is embedded.")
    ] = None,
    jobs: Jobs = CORES,
    output: Annotated[
        Path | None, typer.Option(help="Write the tables (CSV, JSON) and Figures 5 to 8 here.")
    ] = None,
    json_: Json = False,
) -> None:
    """Compute the paper's latency model: records read late, because of moves or overload."""
    progress = Console(stderr=True, log_path=False, soft_wrap=True)
    names = packing_names(algorithms)
    shown = packing_names(histogram, "--histogram")
    model = LatencyModel(limit=limit, interval_s=interval_s, rebalance_s=rebalance_s)
    if stream is not None:
        source = recorded_source(stream, progress, spark)
    else:
        source = generated_source(partitions, rows, delta, seed)
    experiments = latency_experiments(names, source, model, shown)
    with to_stderr() if json_ else nullcontext():
        outcomes = run_latencies(experiments, progress, jobs)
    like = likeness(source, model)
    compared = headlines(outcomes) if like is Likeness.OTHER else comparisons(outcomes)
    document = {
        "stream": source.label,
        "recorded": like is Likeness.SAME,
        "model": asdict(model),
        "packings": [{"algorithm": one.algorithm, **values(one)} for one in outcomes],
        "published": [asdict(one) | {"difference": one.difference} for one in compared],
    }
    if output is not None:
        # matplotlib takes a second of CPU: only for those who want files.
        from binwright.lab.latency.report import latency_section  # noqa: PLC0415
        from binwright.lab.report.files import (  # noqa: PLC0415
            as_markdown,
            write_json,
            write_section,
        )

        section = latency_section(outcomes, source, model, shown)
        write_section(section, output)
        write_json(output / "latency.json", document)
        (output / "latency.md").write_text(as_markdown(section), encoding="utf-8")
        progress.print(f"written to {output}")
    if json_:
        print_json(document)
    else:
        console = Console(highlight=False)
        console.print(_table(outcomes))
        console.print(
            "p90: of the samples above 0, p99: of all, seconds. A sample is a hundredth of what a "
            "full consumer reads in a second."
        )
        tables = published_tables("latency", compared)
        for table in (published_table("latency", headlines(outcomes)), *tables[:1]):
            print_table(table)
        console.print(NOTE)


def latency_experiments(
    names: Sequence[str], source: PackingStream, model: LatencyModel, shown: Sequence[str]
) -> list[LatencyExperiment]:
    """Return an experiment for each packing; those that are `shown` keep their samples."""
    return [
        LatencyExperiment(packing=Experiment(name, source), model=model, keep_samples=name in shown)
        for name in names
    ]


def run_latencies(
    experiments: Sequence[LatencyExperiment], console: Console, jobs: int
) -> list[LatencyOutcome]:
    """Run all experiments with a progress bar; return their outcomes in the same order."""
    with progress_bar(console) as bar:
        task = bar.add_task("packings", total=len(experiments))
        return run_all(run_latency, experiments, lambda _: bar.advance(task), jobs)


def _table(outcomes: Sequence[LatencyOutcome]) -> Table:
    table = Table("packing", box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("consumers", "late, %", "p90", "p99", "max"):
        table.add_column(head, justify="right")
    for one in outcomes:
        late = (one.above_zero_s.get(90), one.all_s.get(99), one.max_s)
        table.add_row(
            *(one.algorithm, f"{one.consumers:.2f}", f"{100 * one.share:.2f}"),
            *("-" if each is None else f"{each:.3f}" for each in late),
        )
    return table
