"""Points of a small sweep."""

from pathlib import Path

from tests.builders import configured

from binwright.lab.simulation.scenario import Timing
from binwright.lab.sweep.points import Point, SweepLoad
from binwright.protocol.model import BytesPerSecond
from binwright.streams.generated import Walk

CAPACITY = BytesPerSecond(1e6)
WALK = Walk(topics=("one",), partitions=6, rows=10, delta=20, seed=1)


def point(replan_interval_s: float, packing: str, *, file: Path | None = None) -> Point:
    """Return a point on a random walk, or on the load of a file."""
    config = configured(1.33e6, CAPACITY, replan_interval_s=replan_interval_s)
    return Point(
        label=f"{packing} {replan_interval_s}",
        policy="binwright",
        load=SweepLoad(
            label="walk", capacity=CAPACITY, walk=None if file is not None else WALK, file=file
        ),
        config=config,
        packing=packing,
        timing=Timing(),
        sustained=None,
        sla_s=5.0,
    )
