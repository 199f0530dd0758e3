"""The paper's Figures 2 to 12 in their meaning, from simulated runs."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator, PercentFormatter

from binwright.lab.report.contents import Chart
from binwright.lab.simulation.records.consumers import Floats
from binwright.lab.slo.policies import APART
from binwright.lab.slo.published import LATENCIES, PUBLISHED, WORKLOADS
from binwright.lab.slo.results import GRID_S, RIVAL, PolicyResult, TableResult

OURS = "binwright"
COLOURS = {
    RIVAL: "tab:blue",
    f"{RIVAL}{APART}": "lightsteelblue",
    "Algorithm 1": "tab:purple",
    f"Algorithm 1{APART}": "plum",
    "Linear": "tab:red",
    "Overprovision": "tab:gray",
    "KEDA, lag": "tab:brown",
    "HPA, CPU": "tab:pink",
    OURS: "tab:green",
    "binwright, default": "tab:olive",
    "binwright, incremental": "tab:cyan",
}
WIDTH = 7.5
LOW = 90
"""Distributions that begin below this, %, have a line at every 5 %."""


def workloads(tables: Sequence[TableResult]) -> Chart:
    """Return the events of each workload (Figures 2 and 3)."""
    figure = Figure(figsize=(WIDTH, 2.6 * len(tables)), layout="constrained")
    for number, table in enumerate(tables, start=1):
        axes = figure.add_subplot(len(tables), 1, number)
        workload = table.case.workload
        axes.plot(range(workload.duration_s), workload.events, color="0.3", linewidth=0.8)
        stand_in = ", a stand-in" if workload.is_stand_in else ""
        axes.set_title(f"{workload.name}{stand_in}: {sum(workload.events):,} events", fontsize=9)
        axes.set_ylabel("events/s")
        axes.set_ylim(bottom=0)
    axes.set_xlabel("time, s")
    caption = "The workloads (the paper's Figures 2 and 3)."
    shown = [WORKLOADS[one.case.name][0] for one in tables if one.case.name in WORKLOADS]
    return Chart(name="slo-workloads", caption=caption, figure=figure, figures=shown)


def latencies(table: TableResult, name: str, figure_number: str) -> Chart:
    """Return latencies over time of Algorithm 2 and of ours (Figures 4, 6 and 8)."""
    shown = [table.by_name[one] for one in (RIVAL, OURS)]
    figure = Figure(figsize=(WIDTH, 5), layout="constrained")
    top = max(one.outcomes[0].longest_s for one in shown) * 1.05
    for number, result in enumerate(shown, start=1):
        axes = figure.add_subplot(2, 1, number)
        trace = result.outcomes[0].trace
        assert trace is not None
        _points(axes, trace.done_s, trace.latency_s, result)
        _sla_line(axes, result)
        axes.set_ylim(0, top)
        axes.set_ylabel("latency, s")
        axes.set_title(_label(table, result), fontsize=9)
    axes.set_xlabel("time, s")
    caption = (
        f"Latencies in one run, {table.case.title} ({figure_number} shows those of Algorithm 2): "
        "the last record of each lot that arrived together. The line is the SLA."
    )
    return Chart(name=name, caption=caption, figure=figure, figures=(figure_number,))


def consumers(table: TableResult) -> Chart:
    """Return the latencies of each consumer of Algorithm 2 (Figure 5)."""
    result = table.by_name[RIVAL]
    trace = result.outcomes[0].trace
    assert trace is not None
    numbers = sorted(set(trace.consumer.tolist()))
    figure = Figure(figsize=(WIDTH, 0.8 * len(numbers) + 1), layout="constrained")
    every = figure.subplots(len(numbers), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axes, number in zip(every, reversed(numbers), strict=True):
        own = trace.consumer == number
        _points(axes, trace.done_s[own], trace.latency_s[own], result)
        _sla_line(axes, result)
        axes.set_ylabel(f"C{number + 1}, s", fontsize=8)
        axes.set_ylim(bottom=0)
    every[0].set_title(_label(table, result), fontsize=9)
    every[-1].set_xlabel("time, s")
    caption = (
        f"Latencies by consumer in one run of Algorithm 2, {table.case.title}: each begins and "
        "ends with its consumer. Peaks follow a scale-down (Figure 5)."
    )
    return Chart(name="slo-fig5-consumers", caption=caption, figure=figure, figures=("Figure 5",))


def distributions(
    name: str,
    caption: str,
    lines: Mapping[str, tuple[TableResult, str]],
    floor: float = 80,
    figures: Sequence[str] = (),
) -> Chart:
    """Return distributions of latencies (Figures 7 and 9 to 12).

    Args:
        name: Of the files.
        caption: Of the chart.
        lines: Label -> table and policy.
        floor: The lowest share that is shown, %.
        figures: The published ones that it is like.
    """
    figure = Figure(figsize=(WIDTH, 4.2), layout="constrained")
    axes = figure.add_subplot()
    styles, markers = ("-", "--", ":"), ("x", "+", "1")
    used: dict[str, int] = {}
    for label, (table, policy) in lines.items():
        result = table.by_name[policy]
        again = used[policy] = used.get(policy, -1) + 1
        colour = COLOURS[policy]
        axes.plot(GRID_S, result.distribution, styles[again], color=colour, label=label)
        if published := PUBLISHED.get((table.case.name, policy)):
            axes.plot(
                *(result.setup.settings.sla_s, published.sla, markers[again]),
                color=colour,
                label=f"{label}: in the paper, {published.sla:g} %",
            )
    _sla_line(axes, result, vertical=True)
    axes.set_xscale("log")
    axes.set_xlim(0.05, 10)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(floor, 100.5)
    axes.yaxis.set_major_locator(MultipleLocator(5 if floor < LOW else 2))
    axes.yaxis.set_major_formatter(PercentFormatter(decimals=0))
    axes.set_xlabel("latency, s")
    axes.set_ylabel("records at most as late")
    axes.grid(color="0.9")
    axes.legend(fontsize=8, loc="lower right")
    axes.set_title(caption, fontsize=9)
    return Chart(name=name, caption=caption, figure=figure, figures=figures)


def trade_off(tables: Sequence[TableResult]) -> Chart:
    """Return late records against replica-minutes, a panel for each table."""
    columns = min(2, len(tables))
    rows = -(-len(tables) // columns)
    figure = Figure(figsize=(WIDTH * columns / 2 + 1.5, 3.6 * rows), layout="constrained")
    for number, table in enumerate(tables, start=1):
        axes = figure.add_subplot(rows, columns, number)
        for result in table.results:
            _point(axes, table, result)
        axes.set_title(table.case.title, fontsize=8)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
        axes.set_xlabel("replica-minutes, as the paper counts")
        axes.set_ylabel("records later than the SLA")
        axes.grid(color="0.9")
    seen = {r.setup.name: None for table in tables for r in table.results}
    handles = [axes.plot([], [], "o", color=COLOURS[name], label=name)[0] for name in seen]
    handles += axes.plot([], [], "x", color="0.3", label="in the paper")
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    caption = "Late records against replica-minutes: further down and to the left is better."
    return Chart(name="slo-trade-off", caption=caption, figure=figure)


LEAST_LATE = 0.001
"""Fewer late records than this, %, are drawn as this: a logarithmic axis has no 0."""


def _point(axes: Axes, table: TableResult, result: PolicyResult) -> None:
    colour = COLOURS[result.setup.name]
    axes.plot(result.paper_minutes, max(LEAST_LATE, 100 - result.sla), "o", color=colour)
    published = PUBLISHED.get((table.case.name, result.setup.name))
    if published is not None and published.minutes is not None:
        axes.plot(published.minutes, max(LEAST_LATE, 100 - published.sla), "x", color=colour)


def _points(axes: Axes, time_s: Floats, latency_s: Floats, result: PolicyResult) -> None:
    # As pixels also within an SVG: some ten thousand points.
    colour = COLOURS[result.setup.name]
    axes.plot(time_s, latency_s, ".", color=colour, markersize=2, rasterized=True)


def _sla_line(axes: Axes, result: PolicyResult, *, vertical: bool = False) -> None:
    line = axes.axvline if vertical else axes.axhline
    line(result.setup.settings.sla_s, color="0.5", linewidth=0.8)


def _label(table: TableResult, result: PolicyResult) -> str:
    published = PUBLISHED.get((table.case.name, result.setup.name))
    own = f"{result.setup.name}: {result.outcomes[0].sla:.2f} % in time in this run"
    mean = f", {result.sla:.2f} % in {len(result.outcomes)} runs"
    paper = "" if published is None else f", {published.sla:g} % in the paper"
    return own + mean + paper


ALGORITHMS = ("Algorithm 1", RIVAL)
MAIN = ("w1", "w2", "w1-skew", "w2-skew", "workload")


def charts_of(results: Sequence[TableResult]) -> list[Chart]:
    """Return the charts for these tables, in the order of the paper's figures."""
    by_name = {one.case.name: one for one in results}
    main = [by_name[name] for name in MAIN if name in by_name]
    even = [one for one in main if not one.case.name.endswith("-skew")]
    charts = [workloads(even or main), trade_off(main)]
    for name, (file, number) in LATENCIES.items():
        if name in by_name:
            charts.append(latencies(by_name[name], file, number))
    charts += [consumers(by_name[name]) for name in ("w1", "workload") if name in by_name]
    if "w1-skew" in by_name:
        charts.append(_skew(by_name["w1-skew"]))
    if "w1" in by_name:
        charts += _heartbeats_and_rebalances(by_name)
    if "workload" in by_name:
        charts.append(_own(by_name["workload"]))
    return charts


def _skew(table: TableResult) -> Chart:
    lines = {name: (table, name) for name in (RIVAL, "Linear", OURS)}
    caption = "Latencies on the skewed workload 1 (Figure 7)."
    return distributions("slo-fig7-skew", caption, lines, floor=70, figures=("Figure 7",))


def _own(table: TableResult) -> Chart:
    lines = {name: (table, name) for name in table.by_name}
    return distributions("slo-distributions", f"Latencies, {table.case.title}.", lines)


def _heartbeats_and_rebalances(tables: Mapping[str, TableResult]) -> list[Chart]:
    """Return Figures 9 to 12, all on workload 1."""
    usual, quick = tables["w1"], tables["w1-heartbeat"]
    half, two = tables["w1-rebalance-500ms"], tables["w1-rebalance-2s"]
    return [
        distributions(
            "slo-fig9-heartbeat",
            "Latencies on workload 1 by heartbeat interval (Figure 9).",
            {
                f"{RIVAL}, 3 s": (usual, RIVAL),
                f"{RIVAL}, 0.5 s": (quick, RIVAL),
                f"{OURS}, 3 s": (usual, OURS),
                f"{OURS}, 0.5 s": (quick, OURS),
            },
            floor=90,
            figures=("Figure 9",),
        ),
        distributions(
            "slo-fig10-algorithm-1",
            "Latencies of Algorithm 1 on workload 1 by the time of a rebalance (Figure 10).",
            {
                "50 ms": (tables["w1-algorithm-1"], "Algorithm 1"),
                "0.5 s": (half, "Algorithm 1"),
                "2 s": (two, "Algorithm 1"),
            },
            figures=("Figure 10",),
        ),
        *(
            distributions(
                f"slo-fig{number}-rebalance-{label}",
                f"Latencies on workload 1 with rebalances of {seconds} (Figure {number}).",
                {name: (one, name) for name in (*ALGORITHMS, OURS, f"{OURS}, incremental")},
                figures=(f"Figure {number}",),
            )
            for number, label, seconds, one in (
                (11, "500ms", "0.5 s", half),
                (12, "2s", "2 s", two),
            )
        ),
    ]
