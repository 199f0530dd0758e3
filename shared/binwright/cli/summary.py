"""What a demo came to, for people and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table

from binwright.cli.screen import megabytes
from binwright.lab.audit import AuditResult
from binwright.lab.freshness import Freshness
from binwright.lab.load import Played
from binwright.lab.picture import Picture, percentile

BARS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Everything a demo found."""

    ready_s: float  # from its start until every partition was read and every table claimed
    landing_s: float  # from the end of the load until everything had landed
    played: Played
    picture: Picture
    counts: tuple[int, ...]  # ready consumers, sampled twice a second
    faults: tuple[str, ...]
    audit: AuditResult
    ages: Sequence[Freshness]  # of every topic
    commits_per_min: Mapping[str, float] = field(default_factory=dict)  # topic -> while under load

    @property
    def produced(self) -> int:
        """Records that the broker confirmed."""
        return sum(sent.records for sent in self.played.partitions.values())

    @property
    def landed(self) -> int:
        """Rows in the tables."""
        return self.audit.rows

    @property
    def clean(self) -> bool:
        """Whether every record landed exactly once."""
        return self.audit.clean and self.landed == self.produced

    def facts(self) -> dict[str, Any]:
        """Return the figures, units in their names."""
        pauses = [move.pause_s for move in self.picture.moves]
        size = sum(sent.bytes for sent in self.played.partitions.values())
        counts = self.counts or (0,)
        return {
            "clean": self.clean,
            "produced_records": self.produced,
            "produced_bytes": size,
            "landed_rows": self.landed,
            "load_s": self.played.elapsed_s,
            "ready_s": self.ready_s,
            "landed_after_load_s": self.landing_s,
            "consumers": {
                "min": min(counts),
                "mean": sum(counts) / len(counts),
                "max": max(counts),
                "last": counts[-1],
            },
            "plans": len(self.picture.plans),
            "moves": len(pauses),
            "rscore_sum": sum(plan.rscore for plan in self.picture.plans),
            "rscore_per_plan": _mean([plan.rscore for plan in self.picture.plans]),
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
            "rescued_partitions": self.picture.rescued,
            "writer_changes": self.picture.tables.writer_changes,
            "gaps": self.picture.gaps,
            "faults": list(self.faults),
        }


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _seconds(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f} s"


def show(outcome: Outcome) -> RenderableType:
    """Return the summary as a table."""
    facts = outcome.facts()
    consumers, pause = facts["consumers"], facts["pause_s"]
    table = Table(title="binwright demo", show_header=False, title_justify="left")
    table.add_column(style="bold")
    table.add_column()
    rows = {
        "records produced": f"{outcome.produced:,} ({megabytes(facts['produced_bytes'])} "
        f"in {facts['load_s']:.0f} s)",
        "rows landed": f"{outcome.landed:,}",
        "ready": f"after {facts['ready_s']:.1f} s",
        "last row landed": f"{facts['landed_after_load_s']:.1f} s after the load's end",
        "consumers": f"{consumers['min']} to {consumers['max']}, mean {consumers['mean']:.1f}",
        "consumers over time": sparkline(outcome.counts),
        "plans": f"{facts['plans']}, Rscore {facts['rscore_sum']:.2f} in all",
        "moves": f"{facts['moves']} (and {facts['rescued_partitions']} rescued from the dead)",
        "pause per move": f"p50 {_seconds(pause['p50'])}, p99 {_seconds(pause['p99'])}, "
        f"max {_seconds(pause['max'])}",
    }
    for topic, age in facts["row_age_s"].items():
        rows[f"age of rows, {topic}"] = f"p50 {_seconds(age['p50'])}, p99 {_seconds(age['p99'])}"
    for topic, rate in facts["commits_per_min"].items():
        rows[f"commits, {topic}"] = f"{rate:.1f} a minute"
    if facts["writer_changes"] or facts["gaps"]:
        rows["tables"] = (
            f"{facts['writer_changes']} changes of writer, {facts['gaps']} partitions read again"
        )
    if outcome.faults:
        rows["faults"] = ", ".join(outcome.faults)
    for name, value in rows.items():
        table.add_row(name, value)
    table.add_row("audit", _verdict(outcome))
    return table


def sparkline(counts: Sequence[int], width: int = 60) -> str:
    """Return numbers over time in one line, the highest of each stretch; empty for none."""
    if not counts:
        return ""
    step = max(1, -(-len(counts) // width))
    peaks = [max(counts[i : i + step]) for i in range(0, len(counts), step)]
    return "".join(BARS[round(peak * (len(BARS) - 1) / max(*counts, 1))] for peak in peaks)


def _verdict(outcome: Outcome) -> str:
    if outcome.clean:
        return "[green]every record landed exactly once"
    faults = list(outcome.audit.faults())
    if outcome.landed != outcome.produced:
        faults.append(f"{outcome.produced:,} records were produced, {outcome.landed:,} landed")
    return "[red]" + "\n".join(map(escape, faults))
