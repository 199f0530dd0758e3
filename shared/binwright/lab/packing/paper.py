"""The values recorded by the paper, and a report with computed values beside them.

Landau, Andrade, Barbosa, arXiv 2402.06085: 200 partitions, 501 measurements, uniformly random rates
at first; CBS (Fig. 9, 10), E[R] (Fig. 11). Its Pareto front (Fig. 12) shows means over four ways to
start; of the other three only a few recorded numbers are known.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from importlib.resources import files
from typing import Final

from binwright.lab.packing.experiments import Score

RECORDED: Final[Mapping[str, Mapping[str, Mapping[str, float]]]] = json.loads(
    (files("binwright.lab.packing") / "paper.json").read_bytes()
)
"""cbs, expected_rscore and moves -> algorithm -> delta -> mean."""
DELTAS = (0, 5, 10, 15, 20, 25)
PARTITIONS = 200
ROWS = 501
STARTS = (None, 0, 50, 100)
"""Every rate at first, per cent; None: uniformly random."""
STICKY = ("sticky:0.4", "sticky:0.8", "sticky", "sticky:10")

_TITLES = {
    "cbs": "CBS, per cent (Figures 9 and 10): computed / recorded",
    "expected_rscore": "E[R] (Figure 11): computed / recorded",
    "moves": "Partitions moved at a decision: computed / recorded",
}
_FIGURES = {"cbs": "cbs.png", "expected_rscore": "rscore.png"}
_FRONTS = """## Pareto fronts (Figure 12): CBS in per cent, E[R]

Means over four ways to start, as in the paper's figure: rates uniformly random, or all 0, 50 or
100 per cent. The crosses are what the paper recorded of the first of these.

![Pareto fronts](front.png)
"""


def report(
    scores: Mapping[tuple[int, str], Score],
    fronts: Mapping[tuple[int, str], Score],
    seeds: int,
    rows: int,
) -> str:
    """Return the tables and plots of Figures 9 to 12, in Markdown.

    Args:
        scores: Of streams with uniformly random rates at first.
        fronts: Means over all of `STARTS`.
        seeds: Streams for each delta and start.
        rows: Measurements of a stream.
    """
    parts = [
        "# The paper's figures, reproduced\n",
        f"{PARTITIONS} partitions, {rows} measurements, means over {seeds} streams a delta.\n",
    ]
    for field, title in _TITLES.items():
        parts += [f"## {title}\n", _table(scores, partial(_beside, field))]
        if field in _FIGURES:
            parts.append(f"![{title}]({_FIGURES[field]})\n")
    return "\n".join([*parts, _FRONTS, _table(fronts, _both)])


def _table(scores: Mapping[tuple[int, str], Score], cell: Callable[[Score, int, str], str]) -> str:
    deltas = sorted({delta for delta, _ in scores})
    head = "| | " + " | ".join(f"delta {delta}" for delta in deltas) + " |"
    lines = [head, "|---" * (len(deltas) + 1) + "|"]
    for name in dict.fromkeys(name for _, name in scores):
        cells = [cell(scores[delta, name], delta, name) for delta in deltas]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _beside(field: str, score: Score, delta: int, name: str) -> str:
    scale = 100 if field == "cbs" else 1
    recorded = RECORDED[field].get(name, {}).get(str(delta))
    beside = "" if recorded is None else f" / {scale * recorded:.2f}"
    return f"{scale * getattr(score, field):.2f}{beside}"


def _both(score: Score, delta: int, name: str) -> str:
    del delta, name
    return f"{100 * score.cbs:.2f}, {score.expected_rscore:.2f}"
