"""What the paper recorded, and a report with ours beside it.

Landau, Andrade, Barbosa, arXiv 2402.06085: 200 partitions, 501 measurements, rates drawn evenly at
first; CBS (Fig. 9, 10), E[R] (Fig. 11), and both as a Pareto front (Fig. 12).
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from binwright.lab.trials import Score

RECORDED: Final[Mapping[str, Mapping[str, Mapping[str, float]]]] = json.loads(
    (files("binwright.lab") / "data" / "paper.json").read_bytes()
)
"""cbs, expected_rscore and moves -> algorithm -> delta -> mean."""
DELTAS = (0, 5, 10, 15, 20, 25)
PARTITIONS = 200
ROWS = 501
OURS = ("sticky:0.4", "sticky:0.8", "sticky", "sticky:10")

_TITLES = {
    "cbs": "CBS, per cent (Figures 9 and 10): ours / recorded",
    "expected_rscore": "E[R] (Figure 11): ours / recorded",
    "moves": "Partitions moved at a decision: ours / recorded",
}
_PICTURES = {"cbs": "cbs.png", "expected_rscore": "rscore.png"}
_FRONTS = """## Pareto fronts (Figure 12): dots ours, crosses recorded

Of streams that start evenly; the paper's figure is the mean over four ways to start.

![Pareto fronts](front.png)
"""


def report(scores: Mapping[tuple[int, str], Score], seeds: int, rows: int) -> str:
    """Return the tables and pictures of Figures 9 to 12, in Markdown."""
    parts = [
        "# The paper's figures, played again\n",
        f"{PARTITIONS} partitions, {rows} measurements, means over {seeds} streams a delta.\n",
    ]
    for field, title in _TITLES.items():
        parts += [f"## {title}\n", _table(scores, field)]
        if field in _PICTURES:
            parts.append(f"![{title}]({_PICTURES[field]})\n")
    return "\n".join([*parts, _FRONTS])


def _table(scores: Mapping[tuple[int, str], Score], field: str) -> str:
    deltas = sorted({delta for delta, _ in scores})
    head = "| | " + " | ".join(f"delta {delta}" for delta in deltas) + " |"
    lines = [head, "|---" * (len(deltas) + 1) + "|"]
    for name in dict.fromkeys(name for _, name in scores):
        cells = [_cell(scores, field, name, delta) for delta in deltas]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(scores: Mapping[tuple[int, str], Score], field: str, name: str, delta: int) -> str:
    scale = 100 if field == "cbs" else 1
    recorded = RECORDED[field].get(name, {}).get(str(delta))
    told = "" if recorded is None else f" / {scale * recorded:.2f}"
    return f"{scale * getattr(scores[delta, name], field):.2f}{told}"
