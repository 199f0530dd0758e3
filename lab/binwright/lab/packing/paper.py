"""The values recorded by the paper, and what it concludes from them.

Landau, Andrade, Barbosa, arXiv 2402.06085: 200 partitions, 501 measurements. CBS (Fig. 9, 10) and
E[R] (Fig. 11) are of uniformly random rates at first; the Pareto front (Fig. 12) is of means over
four ways to start.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from binwright.lab.packing.experiments import Score
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
class Saving:
    """How much less MWF moves than the classical algorithm that moves least, and for what."""

    rival: str
    rscore_change: float  # of E[R], as a share; below 0 is less
    cbs: float  # MWF's


def saving(points: Points) -> Saving | None:
    """Return the paper's headline of one delta; None: a packing is missing, or nothing moves."""
    if "mwf" not in points or not set(CLASSICAL) <= points.keys():
        return None
    rival = min(CLASSICAL, key=lambda name: points[name][1])
    cbs, moved = points["mwf"]
    return Saving(rival, moved / points[rival][1] - 1, cbs) if points[rival][1] else None


def computed_points(scores: Mapping[tuple[int, str], Score], delta: int) -> Points:
    """Return what was computed at a delta."""
    found = ((name, score) for (at, name), score in scores.items() if at == delta)
    return {name: (score.cbs, score.expected_rscore) for name, score in found}


def recorded_points(delta: int, suffix: str = "") -> Points:
    """Return what the paper recorded at a delta; none for a delta that is not its.

    Args:
        delta: Per cent.
        suffix: `OF_FOUR_STARTS` for the means over these.
    """
    cbs, moved = RECORDED[f"cbs{suffix}"], RECORDED[f"expected_rscore{suffix}"]
    key = str(delta)
    return {name: (cbs[name][key], moved[name][key]) for name in cbs if key in cbs[name]}


def headlines(scores: Mapping[tuple[int, str], Score]) -> Sequence[str]:
    """Return the paper's two headline ratios, ours beside the recorded, a sentence each."""
    found = []
    for delta in HEADLINE_DELTAS:
        ours, theirs = saving(computed_points(scores, delta)), saving(recorded_points(delta))
        if ours is not None and theirs is not None:
            found.append(
                f"delta {delta}: MWF's E[R] is {_percent(ours.rscore_change)} beside {ours.rival}, "
                f"the classical algorithm that moves least, at a CBS of {100 * ours.cbs:.2f} % "
                f"(recorded: {_percent(theirs.rscore_change)} beside {theirs.rival}, "
                f"{100 * theirs.cbs:.2f} %)"
            )
    return found


def _percent(share: float) -> str:
    return f"{100 * share:+.2f} %"
