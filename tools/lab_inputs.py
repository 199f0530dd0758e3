"""`python -m tools.lab_inputs`: where the lab's published inputs come from, and if a file is one.

Neither is part of this project: the recorded stream has no licence, and the second workload is made
of a large data set by a script that is not published. `--stream` and `--workload` take them.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from binwright.lab.latency.published import PARTITIONS, RATES_SHA256, ROWS, rates_sha256
from binwright.lab.slo import workloads
from binwright.streams.streams import parse


@dataclass(frozen=True, slots=True)
class Input:
    """An input of a published experiment: whence it is, and what is known of it.

    Attributes:
        source: The paper, and what it says of the input's place.
        sums: Name -> value, computed of the authors' file.
        read: Makes the same sums of a file; raises `StreamError` if it cannot be read.
    """

    source: str
    sums: dict[str, str]
    read: Callable[[Path], dict[str, str]]


def _stream_sums(path: Path) -> dict[str, str]:
    stream = parse(path.read_bytes())
    partitions = {partition for row in stream for partition in row}
    return {
        "rows": f"{len(stream):,}",
        "partitions": f"{len(partitions):,}",
        "SHA-256 of the rates": rates_sha256(stream),
    }


def _workload_sums(path: Path) -> dict[str, str]:
    events = workloads.read(path).events
    return {
        "seconds": f"{len(events):,}",
        "events": f"{sum(events):,}",
        "events in a second, at most": f"{max(events):,}",
        "stand-in": "yes" if events == workloads.second().events else "no",
    }


STREAM = Input(
    "Recorded stream (`lab latency --stream`): measurements_5.json of the prototype of Landau, "
    "Saurabh, Andrade, Barbosa, arXiv 2402.06085; the paper names the repositories "
    "landaudiogo/kafka-consumer-group-autoscaler and landaudiogo/thesis_data. No licence.",
    {"rows": f"{ROWS}", "partitions": f"{PARTITIONS}", "SHA-256 of the rates": RATES_SHA256},
    _stream_sums,
)
WORKLOAD = Input(
    "Workload 2 (`lab slo --workload`): two hours of Ezzeddine, Baude, Huet (CLOSER 2024), made of "
    "January 2013 of Donovan, Work, New York City Taxi Trip Data (2010-2013), DOI "
    "10.13012/J8PN93H8, 40 seconds of the city in one. A stand-in takes its place in `lab slo`.",
    {
        "seconds": f"{workloads.SECONDS:,}",
        "events": f"{workloads.EVENTS:,}",
        "events in a second, at most": f"{workloads.PEAK:,}",
        "stand-in": "no",
    },
    _workload_sums,
)


def lab_inputs(
    file: Annotated[
        Path | None, typer.Argument(help="Check this file: .json is the stream, others events.")
    ] = None,
) -> None:
    """Say where the inputs come from, and their sums; or compare the sums of a file."""
    if file is None:
        for one in (STREAM, WORKLOAD):
            sums = "".join(f"  {name}: {value}\n" for name, value in one.sums.items())
            sys.stdout.write(f"{one.source}\n{sums}")
        return
    wanted = STREAM if file.suffix == ".json" else WORKLOAD
    found = wanted.read(file)
    for name, value in found.items():
        same = "as expected" if value == wanted.sums[name] else f"NOT {wanted.sums[name]}"
        sys.stdout.write(f"{name}: {value}, {same}\n")
    if found != wanted.sums:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(lab_inputs)
