"""The values recorded by the paper, and how far ours are from them.

Landau, Andrade, Barbosa, arXiv 2402.06085: 200 partitions, 501 measurements. CBS (Fig. 9, 10) and
E[R] (Fig. 11) are of uniformly random rates at first; the Pareto front (Fig. 12) is of means over
four ways to start.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from binwright.lab.packing.experiments import PackingScore
from binwright.lab.report.contents import PublishedComparison
from binwright.packing.catalogue import PAPER

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


Scores = Mapping[tuple[int, str], PackingScore]

FIGURES: Sequence[tuple[str, str, str, str, int]] = (
    ("cbs", "", "CBS", "%", 100),
    ("expected_rscore", "", "E[R]", "capacities", 1),
    ("moves", "", "partitions moved at a decision", "partitions", 1),
    ("cbs", OF_FOUR_STARTS, "CBS, mean of four starts", "%", 100),
    ("expected_rscore", OF_FOUR_STARTS, "E[R], mean of four starts", "capacities", 1),
)
"""A field, `OF_FOUR_STARTS` or nothing, what it is, its unit, and what to multiply it by."""
SOURCE = "Landau, Andrade, Barbosa, arXiv 2402.06085, Section VI-E, Figures 9 to 12"
TEXT = "Section VI-E"
"""Where the paper says in its text what MWF saves."""


def comparisons(scores: Scores, starts: Scores) -> list[PublishedComparison]:
    """Return every recorded value beside ours; arguments as `paper_section` has them."""
    return [
        PublishedComparison(
            figure=_figure(field, suffix, name),
            what=f"{name}, delta {delta}: {what}",
            unit=unit,
            published=scale * RECORDED[f"{field}{suffix}"][name][str(delta)],
            ours=scale * float(getattr(score, field)),
        )
        for field, suffix, what, unit, scale in FIGURES
        for (delta, name), score in (starts if suffix else scores).items()
        if str(delta) in RECORDED[f"{field}{suffix}"].get(name, {})
    ] + headlines(scores)


def _figure(field: str, suffix: str, name: str) -> str:
    if suffix:
        return "Figure 12"
    if field == "cbs":
        return "Figure 9" if name in CLASSICAL else "Figure 10"
    return "Figure 11" if field == "expected_rscore" else TEXT


def headlines(scores: Scores) -> list[PublishedComparison]:
    """Return what the paper's text says of MWF at two deltas, beside ours."""
    return [
        PublishedComparison(
            figure=TEXT, what=what, unit="%", published=100 * published, ours=100 * computed
        )
        for delta in HEADLINE_DELTAS
        if (ours := saving(computed_points(scores, delta)))
        and (theirs := saving(recorded_points(delta)))
        for what, published, computed in (
            (
                f"delta {delta}: E[R] of mwf beside {theirs.rival}, the least classical one",
                theirs.rscore_change,
                ours.rscore_change,
            ),
            (f"delta {delta}: CBS of mwf", theirs.cbs, ours.cbs),
        )
    ]
