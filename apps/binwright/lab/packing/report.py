"""Packings compared: charts, and the paper's Figures 9 to 12 as a section of the lab's report."""

from collections.abc import Mapping, Sequence

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from binwright.lab.packing import published
from binwright.lab.packing.experiments import PackingScore
from binwright.lab.packing.published import (
    RECORDED,
    computed_points,
    recorded_points,
)
from binwright.lab.report.comparisons import published_tables
from binwright.lab.report.contents import Cell, Chart, ReportSection, ReportTable
from binwright.lab.report.publications import GROUPS
from binwright.packing.catalogue import PAPER
from binwright.packing.score import pareto_front

Scores = Mapping[tuple[int, str], PackingScore]


def paper_section(scores: Scores, starts: Scores, seeds: int, rows: int) -> ReportSection:
    """Return the tables and charts of Figures 9 to 12, computed beside recorded values.

    Args:
        scores: Of streams with uniformly random rates at first.
        starts: Means over all of the paper's `STARTS`.
        seeds: Streams for each delta and start.
        rows: Measurements of a stream.
    """
    compared = published.comparisons(scores, starts)
    return ReportSection(
        title="Consumers and moves of the paper's packings",
        source=published.SOURCE,
        about=f"{published.PARTITIONS} partitions, {rows} measurements, streams a delta: {seeds}; "
        f"published: {published.ROWS} measurements.",
        tables=[*_tables(scores, starts), *published_tables("paper", compared)],
        charts=_charts(scores, starts),
        publication=GROUPS,
        comparisons=compared,
    )


def _tables(scores: Scores, starts: Scores) -> list[ReportTable]:
    return [
        _table("paper-cbs", "CBS, %", "cbs", scores, ("Figure 9", "Figure 10")),
        _table("paper-rscore", "E[R], capacities", "expected_rscore", scores, ("Figure 11",)),
        _table("paper-moves", "Partitions moved at a decision", "moves", scores),
        _table("paper-cbs-starts", "CBS of four starts, %", "cbs", starts, ("Figure 12",)),
        _table(
            *("paper-rscore-starts", "E[R] of four starts, capacities", "expected_rscore"),
            *(starts, ("Figure 12",)),
        ),
        _pareto(starts),
    ]


def _table(
    name: str, title: str, field: str, scores: Scores, figures: Sequence[str] = ()
) -> ReportTable:
    deltas = sorted({delta for delta, _ in scores})
    scale = 100 if field == "cbs" else 1
    return ReportTable(
        name=name,
        title=title,
        columns=["packing", *(f"delta {delta}" for delta in deltas)],
        rows=[
            [
                packing,
                *(round(scale * float(getattr(scores[at, packing], field)), 2) for at in deltas),
            ]
            for packing in dict.fromkeys(packing for _, packing in scores)
        ],
        figures=figures,
    )


def _pareto(starts: Scores) -> ReportTable:
    """Return which of the twelve are undominated; with `sticky` among them most are not."""
    rows = list[list[Cell]]()
    for delta in sorted({delta for delta, _ in starts}):
        computed = {
            name: point
            for name, point in published.computed_points(starts, delta).items()
            if name in PAPER
        }
        recorded = published.recorded_points(delta, published.OF_FOUR_STARTS)
        every = published.computed_points(starts, delta)
        compared = (computed, recorded, every)
        rows.append([delta, *(", ".join(pareto_front(points)) for points in compared)])
    return ReportTable(
        name="paper-fronts",
        title="Undominated packings, mean of four starts (Figure 12)",
        columns=("delta", "of the twelve, computed", "of the twelve, recorded", "of all, computed"),
        rows=rows,
        figures=("Figure 12",),
    )


def _charts(scores: Scores, starts: Scores) -> list[Chart]:
    deltas = sorted({delta for delta, _ in starts})
    names = dict.fromkeys(name for _, name in scores)
    modified = [name for name in names if name not in published.CLASSICAL]
    return [
        Chart(
            name="paper-figure-9",
            figures=("Figure 9",),
            caption="Figure 9: CBS of the classical algorithms, computed and recorded.",
            figure=per_delta(scores, "cbs", published.CLASSICAL),
        ),
        Chart(
            name="paper-figure-10",
            figures=("Figure 10",),
            caption="Figure 10: CBS of the modified algorithms, computed and recorded, and sticky.",
            figure=per_delta(scores, "cbs", modified),
        ),
        Chart(
            name="paper-figure-11",
            figures=("Figure 11",),
            caption="Figure 11: E[R], computed and recorded.",
            figure=per_delta(scores, "expected_rscore"),
        ),
        Chart(
            name="paper-figure-12",
            figures=("Figure 12",),
            caption=(
                "Figure 12: means over four ways to start: rates uniformly random, or all 0, 50 or "
                "100 per cent. Lines join the undominated packings: of the twelve, dotted of all."
            ),
            figure=fronts(starts, deltas, published.OF_FOUR_STARTS),
        ),
    ]


RGBA = tuple[float, float, float, float]
COLOURS = colormaps["tab20"]
COLUMNS = 3
"""Panels in a row."""
AXES: Mapping[str, tuple[str, int]] = {
    "cbs": ("CBS, %", 100),
    "expected_rscore": ("E[R], capacities of a consumer", 1),
}
"""Label and scale of a score."""


def score_charts(scores: Scores, *, recorded: bool) -> list[Chart]:
    """Return CBS, E[R] and Pareto fronts of any packings at any deltas.

    Args:
        scores: Of each packing at each delta.
        recorded: Show what the paper recorded beside them, which is of its number of partitions.
    """
    deltas = sorted({delta for delta, _ in scores})
    beside = "; dashed: recorded by the paper" if recorded else ""
    made = {
        "cbs": ("CBS", per_delta(scores, "cbs", recorded=recorded)),
        "rscore": ("E[R]", per_delta(scores, "expected_rscore", recorded=recorded)),
        "front": ("CBS and E[R]", fronts(scores, deltas, "" if recorded else None)),
    }
    return [
        Chart(name=name, caption=f"{label}{beside}.", figure=figure)
        for name, (label, figure) in made.items()
    ]


def per_delta(
    scores: Scores, field: str, names: Sequence[str] | None = None, *, recorded: bool = True
) -> Figure:
    """Return a plot of one score over delta, a line for each packing; dashed: the paper's.

    Args:
        scores: Of each packing at each delta.
        field: A key of `AXES`.
        names: Only these packings; None: all.
        recorded: Show the paper's.
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    label, scale = AXES[field]
    for name, colour in _colours(scores).items():
        if names is not None and name not in names:
            continue
        shown = sorted(delta for delta, at in scores if at == name)
        values = [scale * float(getattr(scores[delta, name], field)) for delta in shown]
        axes.plot(shown, values, "o-", color=colour, label=name, markersize=4)
        recorded_means = RECORDED[field].get(name, {}) if recorded else {}
        known = [delta for delta in shown if str(delta) in recorded_means]
        theirs = [scale * recorded_means[str(delta)] for delta in known]
        axes.plot(known, theirs, "x--", color=colour, alpha=0.6, markersize=5)
    axes.set_xlabel("delta, % of capacity")
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    handles = [*axes.get_legend_handles_labels()[0], *_styles(recorded=recorded)]
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    return figure


def fronts(scores: Scores, deltas: Sequence[int], suffix: str | None) -> Figure:
    """Return CBS against E[R], a panel for each delta, with lines of the undominated ones.

    Solid and dashed lines are of the paper's twelve, computed and recorded; dotted ones of all.

    Args:
        scores: Of each packing at each delta.
        deltas: The panels.
        suffix: Which recorded values stand beside them, see `paper.recorded_points`; None: none.
    """
    columns = min(len(deltas), COLUMNS)
    rows = -(-len(deltas) // columns)
    figure = Figure(figsize=(3.2 * columns + 1.6, 3 * rows), layout="constrained")
    colours = _colours(scores)
    for index, delta in enumerate(deltas):
        axes = figure.add_subplot(rows, columns, index + 1)
        theirs = {} if suffix is None else recorded_points(delta, suffix)
        _front(axes, computed_points(scores, delta), theirs, colours)
        axes.set_title(f"delta {delta} %", fontsize=9)
    figure.supxlabel("CBS, %")
    figure.supylabel("E[R], capacities of a consumer")
    shown = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=name)
        for name, colour in colours.items()
    ]
    every = Line2D([], [], linestyle=":", color="0.5", label="of all")
    handles = [*shown, *_styles(recorded=suffix is not None), every]
    figure.legend(handles=handles, loc="outside right upper", fontsize=8)
    return figure


def _front(
    axes: Axes,
    computed: Mapping[str, tuple[float, float]],
    recorded: Mapping[str, tuple[float, float]],
    colours: Mapping[str, RGBA],
) -> None:
    theirs = {name: point for name, point in recorded.items() if name in computed}
    twelve = {name: point for name, point in computed.items() if name in PAPER}
    for points, line in ((computed, ":"), (twelve, "-"), (theirs, "--")):
        front = [points[name] for name in pareto_front(points)]
        axes.plot(*_scaled(front), line, color="0.6", zorder=0)
    for points, marker in ((computed, "o"), (theirs, "x")):
        for name, point in points.items():
            axes.plot(*_scaled([point]), marker, color=colours[name], markersize=5)
    axes.grid(alpha=0.3)


def _scaled(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [100 * cbs for cbs, _ in points], [moved for _, moved in points]


def _styles(*, recorded: bool = True) -> list[Line2D]:
    ours = Line2D([], [], marker="o", linestyle="-", color="0.5", label="computed")
    theirs = Line2D([], [], marker="x", linestyle="--", color="0.5", label="recorded")
    return [ours, theirs] if recorded else [ours]


def _colours(scores: Scores) -> dict[str, RGBA]:
    """Return a colour for each algorithm: distinct for up to twenty."""
    names = dict.fromkeys(name for _, name in scores)
    return {name: COLOURS(index % COLOURS.N) for index, name in enumerate(names)}
