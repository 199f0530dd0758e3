"""How far the experiment's figures and tables are from the published ones."""

from collections.abc import Iterator, Mapping, Sequence

from binwright.lab.report.section import Chart, Counterpart, Table
from binwright.lab.slo.paper import PUBLISHED, WORKLOADS
from binwright.lab.slo.report.charts import LATENCIES
from binwright.lab.slo.results import RIVAL, TableResult

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


def counterparts(
    results: Sequence[TableResult], tables: Sequence[Table], charts: Sequence[Chart]
) -> list[Counterpart]:
    """Return what there is of the paper's figures and tables, as far as they were run."""
    found = {one.case.name: one for one in results}
    drawn, shown = {one.name for one in charts}, {one.name: one for one in tables}
    return [
        *_workloads(found),
        *(
            Counterpart(of=item, ours=_places(chart, rows), difference=_shares(found, rows))
            for item, (chart, rows) in FIGURES.items()
            if chart in drawn and all(table in found for table, _ in rows)
        ),
        *(
            Counterpart(
                of=item,
                ours=[f"slo-{name}" for name in names],
                difference=" ".join(_of_table(shown[f"slo-{name}"]) for name in names),
            )
            for item, names in TABLES.items()
            if all(f"slo-{name}" in shown for name in names)
        ),
    ]


def _workloads(found: Results) -> Iterator[Counterpart]:
    for name, (item, published) in WORKLOADS.items():
        if name in found:
            workload = found[name].case.workload
            events = sum(workload.events)
            stand_in = " The shape is a stand-in's." if workload.is_stand_in else ""
            yield Counterpart(
                of=item,
                ours=("slo-workloads",),
                difference=f"{events:,} events, {100 * (events / published - 1):+.1f} %.{stand_in}",
            )


def _places(chart: str, rows: Rows) -> list[str]:
    return [chart, *dict.fromkeys(f"slo-{table}" for table, _ in rows)]


def _shares(found: Results, rows: Rows) -> str:
    """Return the shares within the SLA, and the longest latency."""
    parts = []
    for table, policy in rows:
        result, published = found[table].by_name[policy], PUBLISHED[table, policy]
        gap = "" if published.is_reproducible else ", a known gap"
        parts.append(
            f"{policy} ({table}): {result.sla:.2f} % in time, "
            f"{result.sla - published.sla:+.2f} points{gap}"
        )
    return f"{'; '.join(parts)}."


def _of_table(table: Table) -> str:
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
