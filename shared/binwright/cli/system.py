"""`binwright demo` and `binwright up`: the whole system on this machine."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from binwright.cli import summary
from binwright.cli.demo import Demo, Wishes
from binwright.cli.heap import EmbeddedSpark
from binwright.cli.options import Bootstrap, Json, Spark, Topics
from binwright.cli.up import Up
from binwright.cli.work import result, run, split, workplace
from binwright.core.errors import SettingsError
from binwright.shell.logs import configure
from binwright.shell.run import EXIT_FAILED, EXIT_OK

WORKERS = 2  # of `up --cluster`


def demo(  # noqa: PLR0913 - one parameter for each option
    *,
    minutes: Annotated[float, typer.Option(min=0.1, help="How long the load lasts.")] = 3.0,
    speed: Annotated[
        float, typer.Option(min=0.1, help="30 s of the stream last 30/SPEED s.")
    ] = 2.5,
    stream: Annotated[
        Path | None, typer.Option(help="A measurement stream (JSON) instead of ours.")
    ] = None,
    capacity: Annotated[
        float, typer.Option(min=1.0, help="A stream's 100 per cent, bytes/s of one consumer.")
    ] = 500_000.0,
    chaos: Annotated[
        bool, typer.Option(help="kill -9 a consumer, and later the controller.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Keep tables and logs in this directory.")
    ] = None,
    json_: Json = False,
) -> None:
    """Play a recorded load through the whole system on this machine, and audit the tables."""
    configure("error", "console")
    console = Console(stderr=json_, log_path=False, soft_wrap=True)
    wishes = Wishes(stream=stream, minutes=minutes, speed=speed, capacity=capacity, chaos=chaos)
    with workplace(keep) as directory:
        outcome = result(Demo(wishes, console, directory).run)
    if json_:
        sys.stdout.write(json.dumps(outcome.facts(), indent=2) + "\n")
    else:
        console.print(summary.show(outcome))
    raise typer.Exit(EXIT_OK if outcome.clean else EXIT_FAILED)


def up(  # noqa: PLR0913 - one parameter for each option
    *,
    topics: Topics = "",
    bootstrap_servers: Bootstrap = None,
    spark: Spark = None,
    lake: Annotated[str | None, typer.Option(help="Where the tables go.")] = None,
    partitions: Annotated[
        int, typer.Option(min=1, help="Of topics made on the embedded broker.")
    ] = 4,
    directory: Annotated[
        Path | None, typer.Option(help="Keep the embedded broker's data and all logs here.")
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Embed Spark as a cluster: a master, two workers.")
    ] = False,
    spark_memory: Annotated[
        str, typer.Option(help="Heap of the embedded Spark, and of each executor.")
    ] = EmbeddedSpark().heap,
) -> None:
    """Run the whole system for your own topics until Ctrl-C; what you do not name is embedded."""
    configure("error", "console")
    if cluster and spark is not None:
        raise SettingsError("--cluster is about the embedded Spark: leave --spark out, or it")
    with workplace(directory) as place:
        system = Up(
            console=Console(log_path=False, soft_wrap=True),
            directory=place,
            topics=split(topics),
            bootstrap_servers=bootstrap_servers,
            spark=spark,
            lake=lake,
            partitions=partitions,
            embedded=EmbeddedSpark(spark_memory, WORKERS if cluster else 0),
        )
        raise typer.Exit(run(system.run))
