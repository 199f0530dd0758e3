"""`binwright lab paper`: the paper's Figures 9 to 12, computed beside recorded values."""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.console import to_stderr
from binwright.cli.options import Json
from binwright.lab.commands.options import CORES, Jobs
from binwright.lab.commands.packing_runs import (
    Scores,
    Spark,
    generated_sources,
    run_packings,
    score_rows,
    write_scores,
)
from binwright.lab.packing import paper as recorded
from binwright.lab.packing.experiments import Experiment, Outcome, compare
from binwright.packing.catalogue import PAPER


def paper(  # noqa: PLR0913 - one parameter for each option
    *,
    seeds: Annotated[int, typer.Option(min=1, help="Streams for each delta.")] = 1,
    rows: Annotated[int, typer.Option(min=1, help="Measurements of a stream.")] = recorded.ROWS,
    jobs: Jobs = CORES,
    spark: Spark = None,
    output: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("paper"),
    json_: Json = False,
) -> None:
    """Reproduce the paper's Figures 9 to 12, beside its recorded values, with sticky added."""
    console = Console(stderr=True, log_path=False, soft_wrap=True)
    with to_stderr() if json_ else nullcontext():
        scores, starts, outcomes = run_paper(seeds, rows, console, jobs, spark)
    write_scores(output, scores, outcomes)
    _write_report(output, scores, starts, seeds, rows)
    console.print(f"written to {output / 'report.md'}")
    headlines = recorded.headlines(scores)
    if json_:
        found = {"scores": score_rows(scores), "starts": score_rows(starts)}
        sys.stdout.write(json.dumps({**found, "headlines": headlines}, indent=2) + "\n")
    else:
        Console(soft_wrap=True, highlight=False).print("\n".join(headlines))


def run_paper(
    seeds: int, rows: int, console: Console, jobs: int, spark: str | None
) -> tuple[Scores, Scores, list[Outcome]]:
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
    from binwright.lab.packing.section import paper_section  # noqa: PLC0415
    from binwright.lab.report.files import write_json, write_section  # noqa: PLC0415
    from binwright.lab.report.markdown import as_markdown  # noqa: PLC0415

    section = paper_section(scores, starts, seeds, rows)
    write_section(section, output)
    write_json(output / "fronts.json", score_rows(starts))
    (output / "report.md").write_text(as_markdown(section), encoding="utf-8")
