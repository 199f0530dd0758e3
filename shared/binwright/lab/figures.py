"""The lab's plots: ours beside what the paper recorded."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from binwright.core.score import pareto_front
from binwright.lab.paper import RECORDED
from binwright.lab.trials import Score

Scores = Mapping[tuple[int, str], Score]


def draw(scores: Scores, directory: Path) -> list[Path]:
    """Write CBS and E[R] per delta and the Pareto front as PNG; return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    deltas = sorted({delta for delta, _ in scores})
    figures = {
        "cbs.png": per_delta(scores, deltas, "cbs", "CBS"),
        "rscore.png": per_delta(scores, deltas, "expected_rscore", "E[R]"),
        "front.png": fronts(scores, deltas),
    }
    for name, figure in figures.items():
        figure.savefig(directory / name, dpi=120)
    return [directory / name for name in figures]


def per_delta(scores: Scores, deltas: Sequence[int], field: str, label: str) -> Figure:
    """Return a plot of one number over delta, a line an algorithm; dashed: the paper's."""
    figure, axes = _figure()
    for index, name in enumerate(_names(scores)):
        shown = [delta for delta in deltas if (delta, name) in scores]
        values = [float(getattr(scores[delta, name], field)) for delta in shown]
        colour = f"C{index % 10}"
        axes.plot(shown, values, "o-", color=colour, label=name, markersize=3)
        recorded = RECORDED[field].get(name, {})
        known = [delta for delta in shown if str(delta) in recorded]
        axes.plot(known, [recorded[str(d)] for d in known], "x--", color=colour, alpha=0.5)
    axes.set_xlabel("delta, per cent of capacity (dashed: recorded by the paper, 200 partitions)")
    axes.set_ylabel(label)
    axes.legend(fontsize=7, ncols=2)
    return figure


def fronts(scores: Scores, deltas: Sequence[int]) -> Figure:
    """Return CBS against E[R], a colour a delta, with the line of those whom nobody beats."""
    figure, axes = _figure()
    for index, delta in enumerate(deltas):
        points = {
            name: (score.cbs, score.expected_rscore)
            for (at, name), score in scores.items()
            if at == delta
        }
        colour = f"C{index % 10}"
        _points(axes, points, colour)
        front = [points[name] for name in pareto_front(points)]
        axes.plot(*zip(*front, strict=True), "-", color=colour, label=f"delta {delta}")
        cbs, moved = RECORDED["cbs"], RECORDED["expected_rscore"]
        known = [(cbs[n][str(delta)], moved[n][str(delta)]) for n in cbs if str(delta) in cbs[n]]
        if known:
            axes.plot(*zip(*known, strict=True), "x", color=colour, alpha=0.5)
    axes.set_xlabel("CBS (crosses: recorded by the paper, 200 partitions)")
    axes.set_ylabel("E[R]")
    axes.legend(fontsize=7)
    return figure


def _points(axes: Axes, points: Mapping[str, tuple[float, float]], colour: str) -> None:
    for name, point in points.items():
        axes.plot(*point, "o", color=colour, markersize=3)
        axes.annotate(name, point, fontsize=5)


def _names(scores: Scores) -> list[str]:
    return list(dict.fromkeys(name for _, name in scores))


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8, 5), layout="constrained")
    return figure, figure.add_subplot()
