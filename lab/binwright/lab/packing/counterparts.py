"""How far Figures 9 to 12 are from the published ones."""

from collections.abc import Mapping
from statistics import fmean

from binwright.lab.packing import paper
from binwright.lab.packing.experiments import Score
from binwright.lab.report.section import Counterpart
from binwright.packing.catalogue import PAPER
from binwright.packing.score import pareto_front

Scores = Mapping[tuple[int, str], Score]
Gaps = Mapping[tuple[int, str], float]


def differences(scores: Scores, field: str, suffix: str = "") -> dict[tuple[int, str], float]:
    """Return computed minus recorded, of each delta and packing that was recorded."""
    recorded = paper.RECORDED[f"{field}{suffix}"]
    return {
        (delta, name): float(getattr(score, field)) - recorded[name][str(delta)]
        for (delta, name), score in scores.items()
        if str(delta) in recorded.get(name, {})
    }


def counterparts(scores: Scores, starts: Scores) -> list[Counterpart]:
    """Return what there is of Figures 9 to 12; arguments as `paper_section` has them."""
    cbs = differences(scores, "cbs")
    classical = {key: gap for key, gap in cbs.items() if key[1] in paper.CLASSICAL}
    modified = {key: gap for key, gap in cbs.items() if key[1] not in paper.CLASSICAL}
    moved = differences(scores, "expected_rscore")
    return [
        _one("9", "paper-cbs", in_words(classical, 100, "points")),
        _one("10", "paper-cbs", in_words(modified, 100, "points")),
        _one("11", "paper-rscore", in_words(moved, 1, "capacities")),
        Counterpart(
            of="Figure 12",
            ours=("paper-figure-12", "paper-cbs-starts", "paper-rscore-starts", "paper-fronts"),
            difference=_figure_12(starts),
        ),
    ]


def in_words(gaps: Gaps, scale: float, unit: str) -> str:
    """Return the mean and the largest difference."""
    (delta, name), worst = max(gaps.items(), key=lambda gap: abs(gap[1]))
    mean = fmean(abs(gap) for gap in gaps.values())
    return (
        f"{scale * mean:.2f} {unit} in the mean, "
        f"at most {scale * worst:+.2f} ({name}, delta {delta})."
    )


def _one(number: str, table: str, difference: str) -> Counterpart:
    ours = (f"paper-figure-{number}", table)
    return Counterpart(of=f"Figure {number}", ours=ours, difference=difference)


def _figure_12(starts: Scores) -> str:
    cbs = differences(starts, "cbs", paper.OF_FOUR_STARTS)
    moved = differences(starts, "expected_rscore", paper.OF_FOUR_STARTS)
    deltas = sorted({delta for delta, _ in starts})
    same = sum(_front(starts, delta) == _recorded_front(delta) for delta in deltas)
    return (
        f"CBS: {in_words(cbs, 100, 'points')} E[R]: {in_words(moved, 1, 'capacities')} "
        f"The same front of the twelve at {same} of {len(deltas)} deltas."
    )


def _front(starts: Scores, delta: int) -> list[str]:
    points = paper.computed_points(starts, delta)
    return pareto_front({name: point for name, point in points.items() if name in PAPER})


def _recorded_front(delta: int) -> list[str]:
    return pareto_front(paper.recorded_points(delta, paper.OF_FOUR_STARTS))
