"""The result of a demo, as a table and as JSON."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from binwright.cli.runner import own_command
from binwright.cli.terminal import count, data_size, peaks
from binwright.inspect.audit import AuditResult
from binwright.inspect.row_ages import Freshness
from binwright.look.group_view import GroupView, percentile
from binwright.protocol.names import BAD_SUFFIX
from binwright.streams.load import LoadResult


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoResult:
    """The result of a demo."""

    ready_s: float  # from the start until every partition was read and every table claimed
    landing_s: float  # from the end of the load until everything had landed
    load_result: LoadResult
    view: GroupView
    counts: tuple[int, ...]  # ready consumers, sampled twice a second
    faults: tuple[str, ...]
    audit: AuditResult
    ages: Sequence[Freshness]  # of every topic
    commits_per_min: Mapping[str, float] = field(default_factory=dict)  # by topic, under load
    odd: int = 0  # records that were written to be bad

    @property
    def produced(self) -> int:
        """Records that the broker confirmed."""
        return self.odd + sum(sent.records for sent in self.load_result.partitions.values())

    @property
    def landed(self) -> int:
        """Rows in the tables."""
        return self.audit.rows

    @property
    def clean(self) -> bool:
        """Whether every record landed exactly once, and no other than the odd ones is bad."""
        return self.audit.clean and self.landed == self.produced and self.audit.bad == self.odd

    def to_json(self) -> dict[str, Any]:
        """Return the figures, with units in their names."""
        pauses = [move.pause_s for move in self.view.moves]
        size = sum(sent.bytes for sent in self.load_result.partitions.values())
        counts = self.counts or (0,)
        return {
            "clean": self.clean,
            "produced_records": self.produced,
            "produced_bytes": size,
            "landed_rows": self.landed,
            "bad_records": self.audit.bad,
            "load_s": self.load_result.elapsed_s,
            "ready_s": self.ready_s,
            "landed_after_load_s": self.landing_s,
            "consumers": {
                "min": min(counts),
                "mean": sum(counts) / len(counts),
                "max": max(counts),
                "last": counts[-1],
            },
            "plans": len(self.view.rscores),
            "moves": len(pauses),
            "rscore_sum": sum(self.view.rscores),
            "rscore_per_plan": _mean(self.view.rscores),
            "pause_s": {
                "p50": percentile(pauses, 0.5),
                "p99": percentile(pauses, 0.99),
                "max": max(pauses, default=None),
            },
            "row_age_s": {
                age.topic: {"p50": age.p50_s, "p99": age.p99_s, "max": age.max_s}
                for age in self.ages
            },
            "commits_per_min": dict(self.commits_per_min),
            "rescued_partitions": self.view.rescued,
            "writer_changes": self.view.tables.writer_changes,
            "gaps": self.view.gaps,
            "faults": list(self.faults),
        }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f} s"


def show(result: DemoResult) -> RenderableType:
    """Return the summary as a table."""
    figures = result.to_json()
    consumers, pause = figures["consumers"], figures["pause_s"]
    table = Table(title="binwright demo", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    rows = {
        "records produced": f"{result.produced:,} ({data_size(figures['produced_bytes'])} "
        f"in {figures['load_s']:.0f} s)",
        "rows landed": f"{result.landed:,}",
        "bad records": f"{result.audit.bad:,} of them, written on purpose: in a table of their own",
        "ready": f"after {figures['ready_s']:.1f} s",
        "last row landed": f"{figures['landed_after_load_s']:.1f} s after the load's end",
        "consumers": f"{consumers['min']} to {consumers['max']}, mean {consumers['mean']:.1f}",
        "consumers over time": peaks(result.counts),
        "plans": f"{figures['plans']}, which moved "
        f"{figures['rscore_sum']:.2f} times a consumer's capacity in all",
        "moves": str(figures["moves"]),
        "pause per move": f"p50 {_seconds(pause['p50'])}, p99 {_seconds(pause['p99'])}, "
        f"max {_seconds(pause['max'])}",
    }
    for topic, age in figures["row_age_s"].items():
        rows[f"age of rows, {topic}"] = f"p50 {_seconds(age['p50'])}, p99 {_seconds(age['p99'])}"
    for topic, rate in figures["commits_per_min"].items():
        rows[f"commits, {topic}"] = f"{rate:.1f} a minute"
    if figures["writer_changes"] or figures["gaps"]:
        changes = count(figures["writer_changes"], "time")
        gaps = count(figures["gaps"], "partition")
        rows["tables"] = f"changed their writer {changes}; {gaps} read again"
    if rescued := figures["rescued_partitions"]:
        rows["rescued"] = f"{count(rescued, 'partition')} of consumers that died"
    if result.faults:
        rows["faults"] = ", ".join(result.faults)
    for name, value in rows.items():
        table.add_row(name, value)
    table.add_row("audit", _verdict(result))
    return table


def explain(result: DemoResult) -> str:
    """Return what the summary means, in words for somebody who sees it for the first time."""
    figures = result.to_json()
    consumers, pause = figures["consumers"], figures["pause_s"]
    landed = (
        "Every record that was written to Kafka is in the Delta tables, once."
        if result.clean
        else "Not every record is in the Delta tables once: see the audit."
    )
    few, many = consumers["min"], consumers["max"]
    sized = f"{few} to {many} consumers" if few < many else count(many, "consumer")
    moved = (
        f"A partition that changed its consumer paused for {_seconds(pause['p50'])} (median); "
        "all others were read on."
        if figures["moves"]
        else "No partition had to change its consumer."
    )
    return f"{landed}\n{sized} ran, as many as the load needed at the time.\n{moved}"


def next_steps(kept: Path | None, result: DemoResult) -> str:
    """Return what to type next: keep the tables the next time, or query one."""
    topic = result.ages[-1].topic
    if kept is None:
        return (
            "The tables were deleted. To keep and query them (make demo KEEP=run):\n"
            f"  {own_command()} demo --keep run\n"
            "A topic of your own, in ten minutes: docs/tutorial.md"
        )
    query = (
        "from deltalake import DeltaTable; "
        f"print(DeltaTable('{kept / 'lake' / topic}').to_pandas().tail())"
    )
    return (
        f"The tables are in {kept / 'lake'}. Query one:\n"
        f"  {sys.executable} -m pip install deltalake\n"
        f'  {sys.executable} -c "{query}"\n'
        f"What could not be decoded is in {kept / 'lake' / topic}{BAD_SUFFIX}."
    )


def _verdict(result: DemoResult) -> str:
    if result.clean:
        return "[green]every record landed exactly once"
    faults = list(result.audit.faults())
    if result.audit.bad != result.odd:
        faults.append(f"{result.odd:,} records were written to be bad, {result.audit.bad:,} are")
    if result.landed != result.produced:
        faults.append(f"{result.produced:,} records were produced, {result.landed:,} landed")
    return "[red]" + "\n".join(map(escape, faults))
