"""Which figures can be drawn from what was run."""

from collections.abc import Mapping, Sequence

from binwright.lab.report.section import Chart
from binwright.lab.slo.report import figures
from binwright.lab.slo.results import RIVAL, TableResult

OURS = figures.OURS
ALGORITHMS = ("Algorithm 1", RIVAL)
MAIN = ("w1", "w2", "w1-skew", "w2-skew", "workload")
LATENCIES = {
    "w1": ("slo-fig4-latencies-w1", "Figure 4"),
    "w2": ("slo-fig6-latencies-w2", "Figure 6"),
    "w2-skew": ("slo-fig8-latencies-w2-skew", "Figure 8"),
    "workload": ("slo-latencies", "Figure 4"),
}


def charts_of(results: Sequence[TableResult]) -> list[Chart]:
    """Return the charts for these tables, in the order of the paper's figures."""
    found = {one.case.name: one for one in results}
    main = [found[name] for name in MAIN if name in found]
    even = [one for one in main if not one.case.name.endswith("-skew")]
    charts = [figures.workloads(even or main), figures.trade_off(main)]
    for name, (file, number) in LATENCIES.items():
        if name in found:
            charts.append(figures.latencies(found[name], file, number))
    charts += [figures.consumers(found[name]) for name in ("w1", "workload") if name in found]
    if "w1-skew" in found:
        charts.append(_skew(found["w1-skew"]))
    if "w1" in found:
        charts += _heartbeats_and_rebalances(found)
    if "workload" in found:
        charts.append(_own(found["workload"]))
    return charts


def _skew(found: TableResult) -> Chart:
    lines = {name: (found, name) for name in (RIVAL, "Linear", OURS)}
    caption = "Latencies on the skewed workload 1 (Figure 7)."
    return figures.distributions("slo-fig7-skew", caption, lines, floor=70)


def _own(found: TableResult) -> Chart:
    lines = {name: (found, name) for name in found.by_name}
    return figures.distributions("slo-distributions", f"Latencies, {found.case.title}.", lines)


def _heartbeats_and_rebalances(found: Mapping[str, TableResult]) -> list[Chart]:
    """Return Figures 9 to 12, all on workload 1."""
    usual, quick = found["w1"], found["w1-heartbeat"]
    half, two = found["w1-rebalance-500ms"], found["w1-rebalance-2s"]
    return [
        figures.distributions(
            "slo-fig9-heartbeat",
            "Latencies on workload 1 by heartbeat interval (Figure 9).",
            {
                f"{RIVAL}, 3 s": (usual, RIVAL),
                f"{RIVAL}, 0.5 s": (quick, RIVAL),
                f"{OURS}, 3 s": (usual, OURS),
                f"{OURS}, 0.5 s": (quick, OURS),
            },
            floor=90,
        ),
        figures.distributions(
            "slo-fig10-algorithm-1",
            "Latencies of Algorithm 1 on workload 1 by the time of a rebalance (Figure 10).",
            {
                "50 ms": (found["w1-algorithm-1"], "Algorithm 1"),
                "0.5 s": (half, "Algorithm 1"),
                "2 s": (two, "Algorithm 1"),
            },
        ),
        *(
            figures.distributions(
                f"slo-fig{number}-rebalance-{label}",
                f"Latencies on workload 1 with rebalances of {seconds} (Figure {number}).",
                {name: (one, name) for name in (*ALGORITHMS, OURS, f"{OURS}, incremental")},
            )
            for number, label, seconds, one in (
                (11, "500ms", "0.5 s", half),
                (12, "2s", "2 s", two),
            )
        ),
    ]
