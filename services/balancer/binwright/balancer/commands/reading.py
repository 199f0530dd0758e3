"""How commands read the cluster that they plan for, and the options for it."""

from pathlib import Path
from typing import Annotated

import typer

from binwright.balancer import description
from binwright.balancer.cluster_model import Snapshot
from binwright.balancer.decide.cluster import Cluster
from binwright.balancer.description import Description
from binwright.balancer.snapshot import MEASURE_S

DescriptionFile = Annotated[
    Path | None,
    typer.Option("--describe", help="TOML: capacities, readers, groups, pins, exclusions."),
]
RatesFile = Annotated[
    Path | None,
    typer.Option("--rates", help="A recording; else the metrics topic, else sizes that grow."),
]
MeasureSeconds = Annotated[
    float,
    typer.Option(
        "--measure", min=0, help="Seconds to measure what no monitor does; 0: it counts as idle."
    ),
]
MEASURE = MEASURE_S


def described(path: Path | None) -> Description:
    """Read the description; raise `SettingsError`."""
    return description.read(path)


def unmeasured_text(seen: Snapshot, cluster: Cluster) -> str | None:
    """Return a warning where rates are not known."""
    if not seen.unmeasured:
        return None
    return f"{seen.unmeasured} of {len(cluster.partitions)} partitions count as idle: not measured"
