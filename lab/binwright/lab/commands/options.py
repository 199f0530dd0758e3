"""Options that several of the lab's commands share."""

import os
from typing import Annotated

import typer

from binwright.lab.simulation.scenario import Timing

CORES = os.cpu_count() or 1
TIMING = Timing()
"""Times that a simulation assumes by default."""
TOPICS = ("one", "two")
"""Of a drawn load."""

Jobs = Annotated[
    int,
    typer.Option(min=1, help="Processes on this machine.", show_default="one for each core"),
]
Partitions = Annotated[int, typer.Option(min=1, help="Of a generated stream.")]
Rows = Annotated[int, typer.Option(min=1, help="Measurements of a generated stream.")]
DrawnRows = Annotated[int, typer.Option(min=1, help="Of a drawn load.")]
DrawnDelta = Annotated[int, typer.Option(min=0, help="Its largest step, per cent.")]
FullRate = Annotated[
    float | None,
    typer.Option(help="100 per cent of a stream, bytes/s; else the settings' capacity."),
]
Sustains = Annotated[
    float | None,
    typer.Option(help="What a consumer really sustains, bytes/s; else the settings' limit."),
]
Sla = Annotated[float, typer.Option(min=0, help="Within which a record is to be read, seconds.")]
Price = Annotated[float | None, typer.Option(help="Of one consumer for an hour; adds the cost.")]
StartUp = Annotated[
    float, typer.Option(min=0, help="From the request for a consumer until it reads, seconds.")
]
HandOver = Annotated[
    float, typer.Option(min=0, help="For which a moving partition is not read, seconds.")
]
