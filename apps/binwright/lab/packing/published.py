"""The values recorded by the paper, what it concludes from them, and how far ours are from them.

Landau, Andrade, Barbosa, arXiv 2402.06085: 200 partitions, 501 measurements. CBS (Fig. 9, 10) and
E[R] (Fig. 11) are of uniformly random rates at first; the Pareto front (Fig. 12) is of means over
four ways to start.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from statistics import fmean
from typing import Final

from binwright.lab.packing.experiments import PackingScore
from binwright.lab.report.contents import PublishedComparison
from binwright.packing.catalogue import PAPER
from binwright.packing.score import pareto_front

RECORDED: Final[Mapping[str, Mapping[str, Mapping[str, float]]]] = json.loads(
    (files("binwright.lab.packing") / "paper.json").read_bytes()
)
"""Field -> algorithm -> delta -> mean.

The fields are cbs, expected_rscore and moves; cbs and expected_rscore `OF_FOUR_STARTS`, too.
"""
OF_FOUR_STARTS = "_of_four_starts"
DELTAS = (0, 5, 10, 15, 20, 25)
PARTITIONS = 200
ROWS = 501
STARTS = (None, 0, 50, 100)
"""Every rate at first, per cent; None: uniformly random."""
STICKY = ("sticky:0.4", "sticky:0.8", "sticky", "sticky:10")
CLASSICAL = tuple(name for name in PAPER if not name.startswith("m"))
HEADLINE_DELTAS = (25, 5)
"""At which the paper states what MWF saves."""

Points = Mapping[str, tuple[float, float]]
"""Algorithm -> CBS and E[R], at one delta."""


@dataclass(frozen=True, slots=True)
class MwfSaving:
    """How much less MWF moves than the classical algorithm that moves least, and for what."""

    rival: str
    rscore_change: float  # of E[R], as a share; below 0 is less
    cbs: float  # MWF's


def saving(points: Points) -> MwfSaving | None:
    """Return the paper's headline of one delta; None: a packing is missing, or nothing moves."""
    if "mwf" not in points or not set(CLASSICAL) <= points.keys():
        return None
    rival = min(CLASSICAL, key=lambda name: points[name][1])
    cbs, moved = points["mwf"]
    return MwfSaving(rival, moved / points[rival][1] - 1, cbs) if points[rival][1] else None


def computed_points(scores: Mapping[tuple[int, str], PackingScore], delta: int) -> Points:
    """Return what was computed at a delta."""
    of_delta = ((name, score) for (at, name), score in scores.items() if at == delta)
    return {name: (score.cbs, score.expected_rscore) for name, score in of_delta}


def recorded_points(delta: int, suffix: str = "") -> Points:
    """Return what the paper recorded at a delta; none for a delta that is not its.

    Args:
        delta: Per cent.
        suffix: `OF_FOUR_STARTS` for the means over these.
    """
    cbs, moved = RECORDED[f"cbs{suffix}"], RECORDED[f"expected_rscore{suffix}"]
    key = str(delta)
    return {name: (cbs[name][key], moved[name][key]) for name in cbs if key in cbs[name]}


def headlines(scores: Mapping[tuple[int, str], PackingScore]) -> Sequence[str]:
    """Return the paper's two headline ratios, ours beside the recorded, a sentence each."""
    sentences = []
    for delta in HEADLINE_DELTAS:
        ours, theirs = saving(computed_points(scores, delta)), saving(recorded_points(delta))
        if ours is not None and theirs is not None:
            sentences.append(
                f"delta {delta}: MWF's E[R] is {_percent(ours.rscore_change)} beside {ours.rival}, "
                f"the classical algorithm that moves least, at a CBS of {100 * ours.cbs:.2f} % "
                f"(recorded: {_percent(theirs.rscore_change)} beside {theirs.rival}, "
                f"{100 * theirs.cbs:.2f} %)"
            )
    return sentences


def _percent(share: float) -> str:
    return f"{100 * share:+.2f} %"


Scores = Mapping[tuple[int, str], PackingScore]
Gaps = Mapping[tuple[int, str], float]


def differences(scores: Scores, field: str, suffix: str = "") -> dict[tuple[int, str], float]:
    """Return computed minus recorded, of each delta and packing that was recorded."""
    recorded = RECORDED[f"{field}{suffix}"]
    return {
        (delta, name): float(getattr(score, field)) - recorded[name][str(delta)]
        for (delta, name), score in scores.items()
        if str(delta) in recorded.get(name, {})
    }


def published_comparisons(scores: Scores, starts: Scores) -> list[PublishedComparison]:
    """Return what there is of Figures 9 to 12; arguments as `paper_section` has them."""
    cbs = differences(scores, "cbs")
    classical = {key: gap for key, gap in cbs.items() if key[1] in CLASSICAL}
    modified = {key: gap for key, gap in cbs.items() if key[1] not in CLASSICAL}
    moved = differences(scores, "expected_rscore")
    return [
        _one("9", "paper-cbs", in_words(classical, 100, "points")),
        _one("10", "paper-cbs", in_words(modified, 100, "points")),
        _one("11", "paper-rscore", in_words(moved, 1, "capacities")),
        PublishedComparison(
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


def _one(number: str, table: str, difference: str) -> PublishedComparison:
    ours = (f"paper-figure-{number}", table)
    return PublishedComparison(of=f"Figure {number}", ours=ours, difference=difference)


def _figure_12(starts: Scores) -> str:
    cbs = differences(starts, "cbs", OF_FOUR_STARTS)
    moved = differences(starts, "expected_rscore", OF_FOUR_STARTS)
    deltas = sorted({delta for delta, _ in starts})
    same = sum(_front(starts, delta) == _recorded_front(delta) for delta in deltas)
    return (
        f"CBS: {in_words(cbs, 100, 'points')} E[R]: {in_words(moved, 1, 'capacities')} "
        f"The same front of the twelve at {same} of {len(deltas)} deltas."
    )


def _front(starts: Scores, delta: int) -> list[str]:
    points = computed_points(starts, delta)
    return pareto_front({name: point for name, point in points.items() if name in PAPER})


def _recorded_front(delta: int) -> list[str]:
    return pareto_front(recorded_points(delta, OF_FOUR_STARTS))
