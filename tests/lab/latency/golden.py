"""What the latency model gives for a generated stream; `python -m tests.lab.latency.golden` prints.

The recorded stream of the paper has no licence and is not part of this project: this one, drawn by
the paper's rule, proves the same code everywhere.
"""

import json
from functools import cache
from pathlib import Path

from binwright.lab.latency import published
from binwright.lab.latency.experiments import (
    LatencyExperiment,
    LatencyModel,
    LatencyOutcome,
    run_latency,
)
from binwright.lab.latency.published import values
from binwright.lab.packing.experiments import Experiment, PackingStream
from binwright.packing.catalogue import PAPER

FILE = Path(__file__).parent / "golden.json"
SOURCE = PackingStream(
    label="golden",
    partitions=published.PARTITIONS,
    rows=published.ROWS,
    delta=published.DELTA,
    seed=2402,
)
NAMES = ("kd_3", "kd_10", "kd_15", "kd_24", "kd_30", "kd_32", *PAPER)
DIGITS = 6


@cache
def outcome(name: str, source: PackingStream = SOURCE) -> LatencyOutcome:
    experiment = Experiment(name, source)
    return run_latency(LatencyExperiment(packing=experiment, model=LatencyModel()))


def summary(name: str) -> dict[str, float | None]:
    found = values(outcome(name))
    return {key: None if one is None else round(one, DIGITS) for key, one in found.items()}


if __name__ == "__main__":
    lines = [f'"{name}": {json.dumps(summary(name))}' for name in NAMES]
    print("{\n" + ",\n".join(lines) + "\n}")  # noqa: T201 - the file's text
