"""`binwright lab report`: every experiment that needs no live system, on one page."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from binwright.cli.terminal import Console
from binwright.lab.commands.latency import FIGURE_5, latency_experiments, run_latencies
from binwright.lab.commands.options import (
    CORES,
    KAFKA,
    Jobs,
    generated_source,
    packing_names,
    recorded_source,
)
from binwright.lab.commands.packing import run_paper
from binwright.lab.commands.slo import published_section
from binwright.lab.latency import published as latency_paper
from binwright.lab.packing import published as packing_paper
from binwright.packing.catalogue import PAPER
from binwright.protocol.errors import SettingsError

if TYPE_CHECKING:
    from binwright.lab.report.contents import ReportSection

TITLE = "The papers' experiments, computed by binwright"
PAGE = "index.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRun:
    """What the experiments of a report have in common."""

    console: Console  # for progress
    stream: str | None  # of the latency experiment
    rows: int
    seeds: int
    slo_runs: int | None
    jobs: int

    def packings(self) -> "ReportSection":
        """Return Figures 9 to 12 of the paper on packing."""
        scores, starts, _ = run_paper(self.seeds, self.rows, self.console, self.jobs, None)
        from binwright.lab.packing.report import paper_section  # noqa: PLC0415 - see `report`

        return paper_section(scores, starts, self.seeds, self.rows)

    def latency(self) -> "ReportSection":
        """Return Figures 5 to 8 of the same paper."""
        if self.stream is not None:
            source = recorded_source(self.stream, self.console, None)
        else:
            source = generated_source(
                latency_paper.PARTITIONS, latency_paper.ROWS, latency_paper.DELTA, 0
            )
        shown, model = packing_names(FIGURE_5), latency_paper.MODEL
        names = (*KAFKA, *PAPER, "sticky")
        experiments = latency_experiments(names, source, model, shown)
        outcomes = run_latencies(experiments, self.console, self.jobs)
        from binwright.lab.latency.report import latency_section  # noqa: PLC0415 - see `report`

        return latency_section(outcomes, source, model, shown)

    def slo(self) -> "ReportSection":
        """Return the tables and figures of the paper on queues under an SLA."""
        return published_section(self.slo_runs, self.jobs)

    def simulation(self) -> "ReportSection":
        """Return every policy over a random walk."""
        from binwright.lab.simulation.report import random_walk  # noqa: PLC0415 - see `report`

        return random_walk(self.jobs)


EXPERIMENTS: tuple[tuple[str, Callable[[ReportRun], "ReportSection"]], ...] = (
    ("latency", ReportRun.latency),
    ("packings", ReportRun.packings),
    ("slo", ReportRun.slo),
    ("simulation", ReportRun.simulation),
)
"""The directory of each one's files, and what runs it; in the order of the page."""
NAMES = ",".join(name for name, _ in EXPERIMENTS)


def report(
    output: Annotated[Path, typer.Option(help="Directory of the page and all files.")] = Path(
        "lab-report"
    ),
    *,
    stream: Annotated[
        str | None,
        typer.Option(
            help="Stream of the latency experiment: a file, or delta://PATH; else generated."
        ),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=2, help="Measurements of the streams of Figures 9 to 12.")
    ] = packing_paper.ROWS,
    seeds: Annotated[int, typer.Option(min=1, help="Streams for each of their deltas.")] = 1,
    slo_runs: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Runs of each policy of `lab slo`.",
            show_default="as there",
        ),
    ] = None,
    only: Annotated[
        str, typer.Option(help="Parts of the report, separated by commas; others are left out.")
    ] = NAMES,
    jobs: Jobs = CORES,
) -> None:
    """Run every experiment of the papers that needs no live system; write one page of all."""
    console = Console(stderr=True, log_path=False, soft_wrap=True)
    wanted = ReportRun(
        console=console, stream=stream, rows=rows, seeds=seeds, slo_runs=slo_runs, jobs=jobs
    )
    experiments = _named(only)
    output.mkdir(parents=True, exist_ok=True)  # before minutes of work, so that it fails at once
    sections = []
    for name, run in experiments:
        begun = time.monotonic()
        sections.append(run(wanted))
        console.print(f"{name}: {time.monotonic() - begun:.0f} s")
    # matplotlib takes a second of CPU: not before the experiments have run.
    from binwright.lab.report.files import write_section  # noqa: PLC0415
    from binwright.lab.report.html import as_html  # noqa: PLC0415
    from binwright.lab.report.publications import overview  # noqa: PLC0415

    published = overview(sections)
    for name, section in (
        ("published", published),
        *((name, section) for (name, _), section in zip(experiments, sections, strict=True)),
    ):
        write_section(section, output / name)
    summary = f"Made by binwright {version('binwright')}."
    (output / PAGE).write_text(as_html(TITLE, summary, [published, *sections]), encoding="utf-8")
    console.print(f"written to {output / PAGE}")


def _named(names: str) -> Sequence[tuple[str, Callable[[ReportRun], "ReportSection"]]]:
    """Return these experiments in the order of the page; raise `SettingsError` for another one."""
    wanted = [name.strip() for name in names.split(",")]
    known = dict(EXPERIMENTS)
    if unknown := [name for name in wanted if name not in known]:
        raise SettingsError(f"--only: {', '.join(unknown)}; there are: {', '.join(known)}")
    return [(name, run) for name, run in EXPERIMENTS if name in wanted]
