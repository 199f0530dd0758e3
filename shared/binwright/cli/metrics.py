"""The commands about measurements: record, replay, top."""

import math
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.record import Place, Recorder, Replayer, settings_at
from binwright.shell.logs import configure
from binwright.shell.run import run

Bootstrap = Annotated[str | None, typer.Option(help="Kafka's address, HOST:PORT.")]
Spark = Annotated[
    str | None, typer.Option(help="A Spark Connect server, sc://HOST:PORT; else one is embedded.")
]


def record(
    *,
    to: Annotated[str, typer.Option(help="A file (JSON lines), or delta://PATH.")],
    bootstrap_servers: Bootstrap = None,
    spark: Spark = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Also what the topic still holds.")
    ] = False,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="For so long; else until Ctrl-C.")
    ] = None,
) -> None:
    """Record what monitors say, for `replay`, and for all that reads a stream."""
    configure("error", "console")
    with tempfile.TemporaryDirectory(prefix="binwright-") as directory:
        place = Place(Console(log_path=False, soft_wrap=True), Path(directory), to, spark)
        work = Recorder(place, settings_at(bootstrap_servers), from_beginning, seconds)
        raise typer.Exit(run(work.run))


def replay(
    source: Annotated[str, typer.Argument(help="A file that `record` wrote, or delta://PATH.")],
    *,
    bootstrap_servers: Bootstrap = None,
    spark: Spark = None,
    speed: Annotated[
        float, typer.Option(min=0.001, help="Seconds of the recording that pass in one.")
    ] = 1.0,
    flat_out: Annotated[
        bool, typer.Option("--flat-out", help="As fast as it goes, without waiting.")
    ] = False,
) -> None:
    """Say a recording again on the metrics topic, to whatever controllers read it."""
    configure("error", "console")
    with tempfile.TemporaryDirectory(prefix="binwright-") as directory:
        place = Place(Console(log_path=False, soft_wrap=True), Path(directory), source, spark)
        pace = math.inf if flat_out else speed
        raise typer.Exit(run(Replayer(place, settings_at(bootstrap_servers), pace).run))
