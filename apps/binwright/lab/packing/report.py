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
    differences,
    in_words,
    published_comparisons,
    recorded_points,
)
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
    return ReportSection(
        title="Consumers and moves of the paper's packings",
        source="Landau, Andrade, Barbosa, arXiv 2402.06085, Section VI-E, Figures 9 to 12",
        expected=(
            "Of the twelve, BFD uses the fewest consumers and MWF moves the least; MWF, MBF and "
            "MBFP are on the Pareto front at each delta but 0. Published tables: 200 partitions, "
            "501 measurements."
        ),
        seen=_seen(scores, starts, seeds, rows),
        tables=_tables(scores, starts),
        charts=_charts(scores, starts),
        publication=GROUPS,
        comparisons=published_comparisons(scores, starts),
    )


def _seen(scores: Scores, starts: Scores, seeds: int, rows: int) -> str:
    compared = (
        ("CBS", "cbs", scores, "", 100, "points"),
        ("E[R]", "expected_rscore", scores, "", 1, "capacities"),
        ("CBS of four starts", "cbs", starts, published.OF_FOUR_STARTS, 100, "points"),
        (
            "E[R] of four starts",
            "expected_rscore",
            starts,
            published.OF_FOUR_STARTS,
            1,
            "capacities",
        ),
    )
    parts = [f"{published.PARTITIONS} partitions, {rows} measurements, streams a delta: {seeds}."]
    for label, field, means, suffix, scale, unit in compared:
        gaps = differences(means, field, suffix)
        parts.append(f"{label} differs from the recorded by {in_words(gaps, scale, unit)}")
    return " ".join([*parts, *(f"{line}." for line in published.headlines(scores))])


def _tables(scores: Scores, starts: Scores) -> list[ReportTable]:
    shown = (
        ("paper-cbs", "CBS, per cent (Figures 9 and 10)", "cbs", scores, ""),
        ("paper-rscore", "E[R] (Figure 11)", "expected_rscore", scores, ""),
        ("paper-moves", "Partitions moved at a decision", "moves", scores, ""),
        (
            "paper-cbs-starts",
            "CBS of four starts (Figure 12)",
            "cbs",
            starts,
            published.OF_FOUR_STARTS,
        ),
        (
            *("paper-rscore-starts", "E[R] of four starts (Figure 12)", "expected_rscore"),
            *(starts, published.OF_FOUR_STARTS),
        ),
    )
    return [*(_table(*one) for one in shown), _pareto(starts), _headlines(scores)]


def _table(name: str, title: str, field: str, scores: Scores, suffix: str) -> ReportTable:
    deltas = sorted({delta for delta, _ in scores})
    scale = 100 if field == "cbs" else 1
    recorded = published.RECORDED[f"{field}{suffix}"]

    def cell(delta: int, packing: str) -> str:
        beside = recorded.get(packing, {}).get(str(delta))
        computed = f"{scale * getattr(scores[delta, packing], field):.2f}"
        return computed if beside is None else f"{computed} / {scale * beside:.2f}"

    return ReportTable(
        name=name,
        title=f"{title}: computed / recorded",
        columns=["packing", *(f"delta {delta}" for delta in deltas)],
        rows=[
            [packing, *(cell(delta, packing) for delta in deltas)]
            for packing in dict.fromkeys(packing for _, packing in scores)
        ],
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
    )


def _headlines(scores: Mapping[tuple[int, str], PackingScore]) -> ReportTable:
    columns = (
        *("delta", "E[R] of MWF beside the best classical, %", "recorded, %", "difference, points"),
        *("CBS of MWF, %", "recorded, %", "difference, points"),
    )
    rows = []
    for delta in published.HEADLINE_DELTAS:
        ours = published.saving(published.computed_points(scores, delta))
        theirs = published.saving(published.recorded_points(delta))
        if ours is not None and theirs is not None:
            moved = _compared(ours.rscore_change, theirs.rscore_change)
            rows.append([delta, *moved, *_compared(ours.cbs, theirs.cbs)])
    return ReportTable(
        name="paper-headlines",
        title="The paper's two headline ratios",
        columns=columns,
        rows=rows,
        note="The best classical algorithm is the one of least E[R], NFD in all recorded streams.",
    )


def _compared(ours: float, theirs: float) -> Sequence[float]:
    return [round(100 * value, 2) for value in (ours, theirs, ours - theirs)]


def _charts(scores: Scores, starts: Scores) -> list[Chart]:
    deltas = sorted({delta for delta, _ in starts})
    names = dict.fromkeys(name for _, name in scores)
    modified = [name for name in names if name not in published.CLASSICAL]
    return [
        Chart(
            name="paper-figure-9",
            caption="Figure 9: CBS of the classical algorithms, computed and recorded.",
            figure=per_delta(scores, "cbs", published.CLASSICAL),
        ),
        Chart(
            name="paper-figure-10",
            caption="Figure 10: CBS of the modified algorithms, computed and recorded, and sticky.",
            figure=per_delta(scores, "cbs", modified),
        ),
        Chart(
            name="paper-figure-11",
            caption="Figure 11: E[R], computed and recorded.",
            figure=per_delta(scores, "expected_rscore"),
        ),
        Chart(
            name="paper-figure-12",
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
