"""`binwright shadow rank`: what each recorded group would cost under other rules."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
import yaml

from binwright.cli.options import Json, settings_at
from binwright.cli.runner import progress_console
from binwright.cli.terminal import (
    TerminalColumn,
    fitting_table,
    page_console,
    print_json,
    print_page,
)
from binwright.lab import processes
from binwright.lab.commands import options
from binwright.lab.commands.options import progress_bar
from binwright.lab.shadow.objects import keda_objects, object_name, scaled_group, translated
from binwright.lab.shadow.past import NotComparable, read_pasts
from binwright.lab.shadow.ranking import (
    ASSIGNED,
    LAG,
    SCALED,
    Assumptions,
    Comparison,
    GroupJob,
    jobs_of,
    ranked,
)
from binwright.lab.shadow.samples import decode_recorded
from binwright.lab.simulation.scenario import Timing
from binwright.protocol.errors import SettingsError, StreamError
from binwright.protocol.orders import SimulatedCost
from binwright.protocol.texts import first_of
from binwright.scaler.keda.translation import Translation, translate
from binwright.streams.recording import RecordingReader

HOUR_MS, MINUTE_S = 3_600_000, 60.0
RULES = {LAG: "KEDA", SCALED: "ScaledGroup", ASSIGNED: "assigned"}
BASES = {"given": "", "measured": "", "seen": "≥ "}
SHOWN = 10
"""Names of groups that are not compared, for each reason."""


def rank(
    recording: Annotated[Path, typer.Argument(help="A file of `binwright shadow record`.")],
    *,
    sla: options.Sla = 30.0,
    target: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Share of records in time; else as much as with today's members."
        ),
    ] = None,
    capacity: Annotated[
        list[str] | None,
        typer.Option(help="Records/s that a member sustains: GROUP=NUMBER, or NUMBER for others."),
    ] = None,
    keda: Annotated[
        list[Path] | None,
        typer.Option(help="ScaledObjects (YAML), or a directory of them, to be translated."),
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="A directory for ScaledGroup objects, in mode observe.")
    ] = None,
    start_up: options.StartUp = options.TIMING.start_up_s,
    jobs: options.Jobs = options.CORES,
    json_: Json = False,
) -> None:
    """Rank recorded groups by what scaling them by load would save, at as many records in time.

    Of each group: as it is, by KEDA's rule on lag, as a ScaledGroup, and with its partitions
    assigned by load.
    """
    console = progress_console(json_=True)  # standard output has the ranking alone
    objects = _translations(keda or ())
    assumptions = Assumptions(
        settings=settings_at(None),
        timing=Timing(start_up_s=start_up),
        sla_s=sla,
        target=target,
        capacities=_capacities(capacity or ()),
        thresholds={group: one.lag_threshold for group, one in objects.items()},
    )
    try:
        with console.status(f"reading {recording}"), recording.open("rb") as file:
            pasts = read_pasts(RecordingReader(file).messages(decode_recorded), sla)
    except (OSError, StreamError) as exc:
        raise StreamError(f"{recording}: {exc}") from exc
    planned, others = jobs_of(pasts, assumptions)
    with progress_bar(console) as progress:
        task = progress.add_task("groups", total=len(planned))
        costs = processes.run_all(
            GroupJob.run,
            planned,
            lambda _: progress.advance(task),
            jobs,
            cost=lambda job: len(job.past.recorded.partitions) * job.past.members.end,
        )
    comparisons = ranked(
        assumptions.compare(job.past, job.capacity, cost)
        for job, cost in zip(planned, costs, strict=True)
    )
    if json_:
        print_json({"sla_s": sla, "groups": [*map(_json, comparisons)], "others": _reasons(others)})
    else:
        _print(comparisons, others, sla)
    if write is not None:
        count = _write(write, comparisons, sla, objects)
        console.log(f"written {count} ScaledGroups to {write}")


def _capacities(texts: Iterable[str]) -> dict[str, float]:
    given: dict[str, float] = {}
    for text in texts:
        group, _, number = text.rpartition("=")
        try:
            given[group] = float(number)
        except ValueError:
            given[group] = 0.0
        if not 0 < given[group] < float("inf"):
            raise SettingsError(f"--capacity: expected GROUP=NUMBER or NUMBER, got {text!r}")
    return given


def _translations(paths: Iterable[Path]) -> dict[str, Translation]:
    """Return what ScaledObjects come to, by their consumer groups."""
    found: dict[str, Translation] = {}
    for path in paths:
        files = sorted(path.rglob("*.y*ml")) if path.is_dir() else [path]
        for file in files:
            try:
                objects = keda_objects(file.read_text())
            except (OSError, ValueError, yaml.YAMLError) as exc:
                raise SettingsError(f"{file}: {exc}") from exc
            for one in map(translate, objects):
                found[one.group] = one
    return found


# --- what is shown -------------------------------------------------------------------------------


def _print(
    comparisons: Sequence[Comparison], others: Sequence[NotComparable], sla_s: float
) -> None:
    columns = [
        TerminalColumn("group", "left"),
        TerminalColumn("members"),
        TerminalColumn("records/s", shown_from=100),
        TerminalColumn("a member's"),
        TerminalColumn("as is"),
        TerminalColumn(f"% in {sla_s:g} s"),
        TerminalColumn("seen, %", shown_from=100),
        *(TerminalColumn(name) for name in RULES.values()),
        TerminalColumn("saves"),
    ]
    console = page_console()
    print_page(console, fitting_table(columns, map(_row, comparisons), console.width))
    for line in _sentences(comparisons, others):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _row(one: Comparison) -> list[str]:
    past, minutes = one.past, one.own.replica_minutes
    written = float(past.recorded.written[-1].sum() - past.recorded.written[0].sum())
    return [
        past.group,
        f"{past.members_mean:.1f}",
        f"{written / past.members.end:,.0f}",
        f"{BASES[one.capacity.basis]}{one.capacity.records_per_s:,.0f}",
        f"{minutes:,.0f}",
        f"{100 * one.own.within_sla:.2f}",
        "" if past.within is None else f"{100 * past.within:.2f}",
        *(_minutes(one.rules[rule]) for rule in RULES),
        f"{one.saved / minutes:.0%}" if one.best else "-",
    ]


def _minutes(cost: SimulatedCost | None) -> str:
    return "late" if cost is None else f"{cost.replica_minutes:,.0f}"


def _sentences(comparisons: Sequence[Comparison], others: Sequence[NotComparable]) -> Iterable[str]:
    yield (
        "Replica-minutes, simulated; KEDA's at the lagThreshold that costs least of those that "
        "read as much in time; late: it reads less in time."
    )
    if comparisons:
        own = sum(one.own.replica_minutes for one in comparisons)
        saved = sum(one.saved for one in comparisons)
        hours = max(one.past.until_ms - one.past.from_ms for one in comparisons) / HOUR_MS
        yield (
            f"{len(comparisons)} groups, {hours:,.1f} hours: {own:,.0f} replica-minutes, of which "
            f"{saved:,.0f} ({saved / own:.0%}) would be saved."
        )
    if any(one.capacity.basis == "seen" for one in comparisons):
        yield (
            "≥: the group was never behind, so this is the most that a member has read. If one "
            "sustains more, less is needed than shown: --capacity GROUP=RECORDS_PER_S."
        )
    unseen_s = max((one.past.unseen_s for one in comparisons), default=0.0)
    if unseen_s:
        yield f"The recording has gaps, of {unseen_s / MINUTE_S:,.0f} minutes in some groups."
    for reason, groups in _reasons(others).items():
        yield f"Not compared: {first_of(groups, SHOWN)}: {reason}."


def _reasons(others: Iterable[NotComparable]) -> dict[str, list[str]]:
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for one in others:
        reasons[one.reason].append(one.group)
    return dict(reasons)


def _json(one: Comparison) -> dict[str, object]:
    past = one.past
    costs: dict[str, SimulatedCost | None] = {"as_is": one.own, **one.rules}
    return {
        "group": past.group,
        "from_ms": past.from_ms,
        "until_ms": past.until_ms,
        "unseen_s": past.unseen_s,
        "members_mean": past.members_mean,
        "capacity": {"records_per_s": one.capacity.records_per_s, "basis": one.capacity.basis},
        "within_as_committed": past.within,
        "costs": {
            rule.replace("-", "_"): cost
            and {
                "replica_minutes": cost.replica_minutes,
                "within_sla": cost.within_sla,
                "setting": cost.change,
            }
            for rule, cost in costs.items()
        },
        "saved_replica_minutes": one.saved,
    }


# --- what is written -----------------------------------------------------------------------------


def _write(
    directory: Path,
    comparisons: Iterable[Comparison],
    sla_s: float,
    keda: Mapping[str, Translation],
) -> int:
    """Write an object for each group that it would save something, and for each of KEDA's."""
    texts: dict[str, str] = {}
    compared = {one.past.group: one for one in comparisons}
    for group, one in compared.items():
        if one.best is not None or group in keda:
            name = object_name(group, texts)
            texts[name] = scaled_group(one, sla_s, name, keda.get(group))
    for group, translation in keda.items():
        if group not in compared:
            texts[object_name(group, texts)] = translated(translation)
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        try:
            with (directory / f"{name}.yaml").open("x") as file:
                file.write(text)
        except FileExistsError as exc:
            raise SettingsError(f"{exc.filename} is there already: name another directory") from exc
    return len(texts)
