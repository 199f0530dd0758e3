"""What the paper printed, how close to it a simulation is expected to come, and how close it is.

Ezzeddine, Baude, Huet, "Tail-Latency Aware and Resource-Efficient Bin Pack Autoscaling for
Distributed Event Queues", CLOSER 2024, doi:10.5220/0012630100003711: Tables 2 and 3, sections 5.1
to 5.3. Each value is of a single run on real servers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from binwright.lab.report.contents import Chart, PublishedComparison, ReportTable
from binwright.lab.slo.policies import APART
from binwright.lab.slo.results import RIVAL, TableResult

SOURCE = (
    "Ezzeddine, Baude, Huet, Tail-Latency Aware and Resource-Efficient Bin Pack Autoscaling for "
    "Distributed Event Queues, CLOSER 2024: Tables 2 and 3, the skewed workloads of section 5.1, "
    "heartbeats (5.2), long rebalances (5.3), Figures 4 to 12"
)

SLA_POINTS = 1.7
MEAN_SLA_POINTS = 0.72
MINUTES_SHARE = 0.11
STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row of the paper, and the tolerance for a simulated one."""

    sla: float  # % of events within 500 ms
    minutes: float | None = None  # replica-minutes
    ups: int | None = None
    downs: int | None = None
    minutes_share: float = MINUTES_SHARE
    is_reproducible: bool = True  # False: no simulation comes near, see `GAP`


GAP = (
    "Algorithm 1 with rebalances of 0.5 and 2 s does better here than in the paper, by 5 to 7 "
    f"points as printed and by 8 to 9{APART}: no setting of the simulator reproduces these two "
    "rows, so the gain of Algorithm 2 over it is not a target."
)

WORKLOADS = {"w1": ("Figure 2", 109_000), "w2": ("Figure 3", 1_350_000)}
"""The figure of each workload, and about how many events the paper says that it has."""

Row = tuple[str, str]
"""Table and policy."""

PUBLISHED: dict[Row, Published] = {
    ("w1", "Algorithm 2"): Published(sla=97.4, minutes=30.21, ups=6, downs=6),
    ("w1", "Linear"): Published(sla=94.7, minutes=25.5, ups=6, downs=6),
    ("w1", "Optimal"): Published(sla=100, minutes=32.7, ups=6, downs=6, minutes_share=0.002),
    ("w1", "Overprovision"): Published(sla=100, minutes=50, ups=0, downs=0, minutes_share=0.002),
    ("w2", "Algorithm 2"): Published(sla=98.9, minutes=402.9, ups=20, downs=16),
    ("w2", "Linear"): Published(sla=95.4, minutes=325.7, ups=23, downs=20),
    # The paper prints 20 and 16 steps; its own workload gives 120 and 120.
    ("w2", "Optimal"): Published(sla=100, minutes=414.11),
    ("w2", "Overprovision"): Published(sla=100, minutes=600, ups=0, downs=0, minutes_share=0.002),
    ("w1-skew", "Algorithm 2"): Published(sla=98.9, minutes=29.8),
    ("w1-skew", "Linear"): Published(sla=84.7, minutes=25.5),
    ("w2-skew", "Algorithm 2"): Published(sla=99.08, minutes=392.15, minutes_share=0.16),
    ("w2-skew", "Linear"): Published(sla=85.9, minutes=329.7),
    ("w1-heartbeat", "Algorithm 2"): Published(sla=98.1),
    ("w2-heartbeat", "Algorithm 2"): Published(sla=99.07),
    ("w1-rebalance-500ms", "Algorithm 1"): Published(
        sla=90.1, minutes=33.85, is_reproducible=False
    ),
    ("w1-rebalance-500ms", "Algorithm 2"): Published(sla=98.2, minutes=34.61),
    ("w1-rebalance-2s", "Algorithm 1"): Published(sla=85.4, minutes=34.16, is_reproducible=False),
    ("w1-rebalance-2s", "Algorithm 2"): Published(sla=99.4, minutes=44.7),
}


def published_row(table: str, policy: str) -> Published | None:
    """Return the published row that a policy stands beside; a variant beside its algorithm's."""
    return PUBLISHED.get((table, policy.removesuffix(APART)))


def deviations(published: Published, sla: float, minutes: float, steps: Sequence[float]) -> str:
    """Return what exceeds the tolerance for a published row, in words; empty: nothing.

    Args:
        published: The row.
        sla: Simulated, %.
        minutes: Simulated, as the paper counts.
        steps: Replicas added, and taken away.
    """
    faults = []
    if abs(sla - published.sla) > SLA_POINTS:
        faults.append("SLA")
    if published.minutes is not None:
        share = abs(minutes / published.minutes - 1)
        if share > published.minutes_share:
            faults.append("replica-minutes")
    wanted = (published.ups, published.downs)
    if any(w is not None and abs(s - w) > STEPS for s, w in zip(steps, wanted, strict=True)):
        faults.append("steps")
    return ", ".join(faults)


LATENCIES = {
    "w1": ("slo-fig4-latencies-w1", "Figure 4"),
    "w2": ("slo-fig6-latencies-w2", "Figure 6"),
    "w2-skew": ("slo-fig8-latencies-w2-skew", "Figure 8"),
    "workload": ("slo-latencies", "Figure 4"),
}
"""Table -> the chart of its latencies over time, and the paper's figure that it is like."""

Results = Mapping[str, TableResult]
Rows = Sequence[tuple[str, str]]
"""Table and policy."""

FIGURES: Mapping[str, tuple[str, Rows]] = {
    "Figure 4": (LATENCIES["w1"][0], [("w1", RIVAL)]),
    "Figure 5": ("slo-fig5-consumers", [("w1", RIVAL)]),
    "Figure 6": (LATENCIES["w2"][0], [("w2", RIVAL)]),
    "Figure 7": ("slo-fig7-skew", [("w1-skew", RIVAL), ("w1-skew", "Linear")]),
    "Figure 8": (LATENCIES["w2-skew"][0], [("w2-skew", RIVAL)]),
    "Figure 9": ("slo-fig9-heartbeat", [("w1", RIVAL), ("w1-heartbeat", RIVAL)]),
    "Figure 10": (
        "slo-fig10-algorithm-1",
        [("w1-rebalance-500ms", "Algorithm 1"), ("w1-rebalance-2s", "Algorithm 1")],
    ),
    "Figure 11": (
        "slo-fig11-rebalance-500ms",
        [("w1-rebalance-500ms", "Algorithm 1"), ("w1-rebalance-500ms", RIVAL)],
    ),
    "Figure 12": (
        "slo-fig12-rebalance-2s",
        [("w1-rebalance-2s", "Algorithm 1"), ("w1-rebalance-2s", RIVAL)],
    ),
}
"""The chart of each figure, and the rows of the tables that say how far it is from the paper's.

Figures are printed without numbers; what the text says of them is the share within 500 ms.
"""
TABLES: Mapping[str, Sequence[str]] = {
    "Table 2": ["w1"],
    "Table 3": ["w2"],
    "Section 5.1": ["w1-skew", "w2-skew"],
}


def published_comparisons(
    results: Sequence[TableResult], tables: Sequence[ReportTable], charts: Sequence[Chart]
) -> list[PublishedComparison]:
    """Return what there is of the paper's figures and tables, as far as they were run."""
    by_name = {one.case.name: one for one in results}
    drawn, shown = {one.name for one in charts}, {one.name: one for one in tables}
    return [
        *_workloads(by_name),
        *(
            PublishedComparison(
                of=item, ours=_places(chart, rows), difference=_shares(by_name, rows)
            )
            for item, (chart, rows) in FIGURES.items()
            if chart in drawn and all(table in by_name for table, _ in rows)
        ),
        *(
            PublishedComparison(
                of=item,
                ours=[f"slo-{name}" for name in names],
                difference=" ".join(_of_table(shown[f"slo-{name}"]) for name in names),
            )
            for item, names in TABLES.items()
            if all(f"slo-{name}" in shown for name in names)
        ),
    ]


def _workloads(results: Results) -> Iterator[PublishedComparison]:
    for name, (item, published) in WORKLOADS.items():
        if name in results:
            workload = results[name].case.workload
            events = sum(workload.events)
            stand_in = " The shape is a stand-in's." if workload.is_stand_in else ""
            yield PublishedComparison(
                of=item,
                ours=("slo-workloads",),
                difference=f"{events:,} events, {100 * (events / published - 1):+.1f} %.{stand_in}",
            )


def _places(chart: str, rows: Rows) -> list[str]:
    return [chart, *dict.fromkeys(f"slo-{table}" for table, _ in rows)]


def _shares(results: Results, rows: Rows) -> str:
    """Return the shares within the SLA, and the longest latency."""
    parts = []
    for table, policy in rows:
        result, published = results[table].by_name[policy], PUBLISHED[table, policy]
        gap = "" if published.is_reproducible else ", a known gap"
        parts.append(
            f"{policy} ({table}): {result.sla:.2f} % in time, "
            f"{result.sla - published.sla:+.2f} points{gap}"
        )
    return f"{'; '.join(parts)}."


def _of_table(table: ReportTable) -> str:
    """Return the largest differences of a table's rows."""
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    name = table.name.removeprefix("slo-")
    sla = _largest(rows, "SLA difference, points")
    minutes = _largest(rows, "difference, %")
    return f"{name}: SLA at most {sla} points; replica-minutes at most {minutes} %."


def _largest(rows: Sequence[Mapping[str, object]], column: str) -> str:
    gaps = [
        (value, row["policy"])
        for row in rows
        for value in [row[column]]
        if isinstance(value, int | float)
    ]
    gap, policy = max(gaps, key=lambda one: abs(one[0]))
    return f"{gap:+g} ({policy})"
