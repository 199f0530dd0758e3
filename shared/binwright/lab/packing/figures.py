"""The lab's plots: computed values beside those recorded by the paper."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from binwright.core.packing.score import pareto_front
from binwright.lab.packing.experiments import Score
from binwright.lab.packing.paper import RECORDED

Scores = Mapping[tuple[int, str], Score]
RGBA = tuple[float, float, float, float]
COLOURS = colormaps["tab20"]
COLUMNS = 3
"""Panels in a row."""


def write_figures(scores: Scores, directory: Path, front: Scores | None = None) -> list[Path]:
    """Write CBS and E[R] per delta and the Pareto front as PNG; return the files.

    Args:
        scores: Of each algorithm at each delta.
        directory: Created if it does not exist.
        front: Scores for the Pareto front; None: the same.
    """
    directory.mkdir(parents=True, exist_ok=True)
    deltas = sorted({delta for delta, _ in scores})
    figures = {
        "cbs.png": per_delta(scores, deltas, "cbs", "CBS"),
        "rscore.png": per_delta(scores, deltas, "expected_rscore", "E[R]"),
        "front.png": fronts(front or scores, deltas),
    }
    for name, figure in figures.items():
        figure.savefig(directory / name, dpi=120)
    return [directory / name for name in figures]


def per_delta(scores: Scores, deltas: Sequence[int], field: str, label: str) -> Figure:
    """Return a plot of one score over delta, a line for each algorithm; dashed: the paper's."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    for name, colour in _colours(scores).items():
        shown = [delta for delta in deltas if (delta, name) in scores]
        values = [float(getattr(scores[delta, name], field)) for delta in shown]
        axes.plot(shown, values, "o-", color=colour, label=name, markersize=3)
        recorded = RECORDED[field].get(name, {})
        known = [delta for delta in shown if str(delta) in recorded]
        axes.plot(known, [recorded[str(d)] for d in known], "x--", color=colour, alpha=0.5)
    axes.set_xlabel("delta, per cent of capacity (dashed: recorded by the paper, 200 partitions)")
    axes.set_ylabel(label)
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def fronts(scores: Scores, deltas: Sequence[int]) -> Figure:
    """Return CBS against E[R], a panel for each delta, with the line of undominated packings."""
    columns = min(len(deltas), COLUMNS)
    rows = -(-len(deltas) // columns)
    figure = Figure(figsize=(4 * columns + 1.5, 3.5 * rows), layout="constrained")
    colours = _colours(scores)
    for index, delta in enumerate(deltas):
        axes = figure.add_subplot(rows, columns, index + 1)
        _front(axes, scores, delta, colours)
    figure.supxlabel("CBS (crosses: recorded by the paper, 200 partitions)")
    figure.supylabel("E[R]")
    shown = [
        Line2D([], [], marker="o", linestyle="", color=colour, label=name)
        for name, colour in colours.items()
    ]
    figure.legend(handles=shown, loc="outside right upper", fontsize=8)
    return figure


def _front(axes: Axes, scores: Scores, delta: int, colours: Mapping[str, RGBA]) -> None:
    points = {
        name: (score.cbs, score.expected_rscore)
        for (at, name), score in scores.items()
        if at == delta
    }
    front = [points[name] for name in pareto_front(points)]
    axes.plot(*zip(*front, strict=True), "-", color="0.7", zorder=0)
    cbs, moved = RECORDED["cbs"], RECORDED["expected_rscore"]
    for name, point in points.items():
        axes.plot(*point, "o", color=colours[name], markersize=4)
        if str(delta) in cbs.get(name, {}):
            recorded = (cbs[name][str(delta)], moved[name][str(delta)])
            axes.plot(*recorded, "x", color=colours[name], alpha=0.6)
    axes.set_title(f"delta {delta}", fontsize=9)


def _colours(scores: Scores) -> dict[str, RGBA]:
    """Return a colour for each algorithm: distinct for up to twenty."""
    names = dict.fromkeys(name for _, name in scores)
    return {name: COLOURS(index % COLOURS.N) for index, name in enumerate(names)}
