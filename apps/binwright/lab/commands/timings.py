"""`binwright lab timings`: how fast a live system reacts, beside what the paper published."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from binwright.cli.options import Bootstrap, Json, Seed, settings_at
from binwright.cli.runner import run_for_result, working_directory
from binwright.cli.terminal import Console, print_json
from binwright.lab.commands.options import CORES, print_table
from binwright.lab.report.comparisons import published_table
from binwright.lab.timings.outcome import TimedParts, shortfalls
from binwright.lab.timings.published import SOURCE
from binwright.lab.timings.tables import capacities, comparisons, counts, durations, events
from binwright.packing.catalogue import algorithm as by_name
from binwright.protocol.errors import SettingsError
from binwright.runtime.clock import wall_ms

if TYPE_CHECKING:
    from binwright.lab.report.contents import ReportTable

EVENTS, SCALE = 100, 1.0
"""Events of each kind that stand beside the paper's, at least; the share of its backlogs."""
DEADLINE_S = 1_500.0
MINUTES = 10
EMBEDDED, RUNNING = "Embedded system", "A group that runs (--running)"
"""Panels of the help."""
_embedded = partial(typer.Option, rich_help_panel=EMBEDDED)
_running = partial(typer.Option, rich_help_panel=RUNNING)


def timings(  # noqa: PLR0913 - one parameter for each option
    *,
    events: Annotated[
        int,
        _embedded(min=0, help="The least number of triggers, starts and changes each; 0: none."),
    ] = EVENTS,
    deadline_s: Annotated[
        float,
        _embedded(
            min=1.0,
            help="Time limit for these events, seconds; then fewer are reported, with a note.",
        ),
    ] = DEADLINE_S,
    steps: Annotated[int, _embedded(min=0, help="Steps of the monitor's test; 0: none.")] = EVENTS,
    scale: Annotated[
        float,
        _embedded(
            min=0,
            help="Size of the backlogs of the capacity test, as a share of the paper's; 0: none.",
        ),
    ] = SCALE,
    consumers: Annotated[
        int,
        _embedded(
            min=1,
            max=20,
            help="Mean number of consumers of the group that changes; the paper had up to 20.",
        ),
    ] = 8,
    packing: Annotated[
        str, _embedded(help="Packing of the tested controller; the paper's was mwf.")
    ] = "sticky",
    window_s: Annotated[
        float, _embedded(min=2.0, help="Window of the tested monitor, seconds.")
    ] = 30.0,
    seed: Seed = 0,
    keep: Annotated[Path | None, _embedded(help="Keep tables and logs in this directory.")] = None,
    running: Annotated[
        bool, _running("--running", help="Read the history of the settings' group.")
    ] = False,
    since: Annotated[
        datetime | None,
        _running(help="Begin of the range, in local time.", show_default=f"{MINUTES} minutes ago"),
    ] = None,
    until: Annotated[
        datetime | None,
        _running(
            help="End of the range, in local time; a time to come is waited for.",
            show_default="now",
        ),
    ] = None,
    bootstrap_servers: Bootstrap = None,
    output: Annotated[
        Path | None, typer.Option(help="Write tables (CSV), figures (SVG, PNG) and JSON here.")
    ] = None,
    json_: Json = False,
) -> None:
    """Time a live system: measurement, plan, start of consumers, change of state, capacity."""
    console = Console(stderr=True, log_path=False, soft_wrap=True)
    if running:
        timed, about = _of_group(console, since, until, bootstrap_servers)
    elif since or until or bootstrap_servers:
        raise SettingsError("--since, --until and --bootstrap-servers go with --running")
    else:
        by_name(packing)  # raises for an unknown name before anything runs
        parts = Parts(events, deadline_s, steps, scale, consumers, packing, window_s, seed)
        timed, about = parts.run(console, keep), parts.about()
    show(timed, about, console, output, json_=json_)


@dataclass(frozen=True, slots=True)
class Parts:
    """What is run of the embedded system; a part of size 0 is left out."""

    events: int  # triggers, starts and changes, of each at least
    deadline_s: float  # for these; then they end, also with fewer
    steps: int  # partitions of the step test
    scale: float  # share of the bytes of Table VI
    consumers: int  # of the group that changes, on average
    packing: str  # of its controller
    window_s: float  # the monitor's
    seed: int  # of the group's stream

    def run(self, console: Console, keep: Path | None) -> TimedParts:
        """Run it with progress bars; every process is ended at the end."""
        # Kafka's and the services' modules take a second: not for `--help`.
        from binwright.lab.timings.live.embedded import Embedded  # noqa: PLC0415

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:.0f} %"),
        )
        with (
            working_directory(keep) as directory,
            Progress(*columns, TimeElapsedColumn(), console=console) as progress,
        ):
            embedded = Embedded(directory, progress, self)
            return run_for_result(embedded.run)

    def about(self) -> str:
        """Return what was run."""
        return (
            f"All processes share {CORES} cores. Step test: {self.steps} partitions, window "
            f"{self.window_s:g} s. Changes: {self.events} events of each kind at least, "
            f"{self.consumers} consumers on average, packing {self.packing}. Backlogs: "
            f"{self.scale:g} of the paper's."
        )


def _of_group(
    console: Console, since: datetime | None, until: datetime | None, servers: str | None
) -> tuple[TimedParts, str]:
    """Return what the settings' group did in a range of time."""
    from binwright.lab.timings.live.history import RunningGroup  # noqa: PLC0415 - see `Parts.run`

    settings, now_s = settings_at(servers), wall_ms() / 1_000
    until_s = until.timestamp() if until else now_s
    since_s = since.timestamp() if since else min(now_s, until_s) - 60 * MINUTES
    if since_s >= until_s:
        raise SettingsError("--since must be before --until")
    with Progress(TextColumn("{task.description}"), BarColumn(), console=console) as progress:
        task = progress.add_task(f"reading {settings.metadata_topic}", total=until_s - since_s)
        group = RunningGroup(
            settings, since_s, until_s, lambda done_s: progress.update(task, completed=done_s)
        )
        timed = run_for_result(group.run)
    about = f"Group {settings.group}, {_text(since_s)} to {_text(until_s)}; Δt1 needs a step test."
    return timed, about


def _text(at_s: float) -> str:
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC"


def show(
    timed: TimedParts, about: str, console: Console, output: Path | None, *, json_: bool
) -> None:
    """Print what was timed; write it as files into `output` if that is given.

    Args:
        timed: What was timed.
        about: The system and its load.
        console: For progress.
        output: A directory.
        json_: Print JSON instead of tables.
    """
    value = as_json(timed, about)
    if output is not None:
        # matplotlib takes a second of CPU: only for those who want files.
        from binwright.lab.report.files import write_json, write_section  # noqa: PLC0415
        from binwright.lab.timings.report import section  # noqa: PLC0415

        write_section(section(timed, about), output)
        write_json(output / "timings.json", value)
        console.print(f"written to {output}")
    for short in shortfalls(timed):
        console.print(
            f"too few events: Δt{short.delta}, {short.label}: {short.events} of {short.wanted}",
            style="bold",
        )
    if json_:
        print_json(value)
        return
    shown = Console(soft_wrap=True, highlight=False)
    for table in tables_of(timed):
        if table.rows and table.name != "timings-events":
            print_table(table)
            shown.print(f"{table.note}\n", style="dim")
    shown.print(f"{about} Published: {SOURCE}.", soft_wrap=False)


def tables_of(timed: TimedParts) -> "Sequence[ReportTable]":
    """Return all tables."""
    return (
        *(durations(timed), capacities(timed.capacities), counts(timed)),
        *(published_table("timings", comparisons(timed)), events(timed)),
    )


def as_json(timed: TimedParts, about: str) -> dict[str, Any]:
    """Return tables and events as JSON has them."""
    return {
        "about": about,
        "unfinished": timed.unfinished,
        "untriggered": timed.untriggered,
        "missing": timed.missing,
        "too_few": [asdict(short) for short in shortfalls(timed)],
        "tables": {
            table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in tables_of(timed)
        },
    }
