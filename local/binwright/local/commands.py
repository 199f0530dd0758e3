"""`binwright demo` and `binwright up`: the whole system on this machine."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from binwright.cli.options import Json, Lake, Spark, Topics
from binwright.cli.runner import progress_console, run, run_for_result, split, working_directory
from binwright.local import summary
from binwright.local.demo import Demo, DemoOptions
from binwright.local.heap import EmbeddedSpark
from binwright.local.up import Up
from binwright.recordings.commands.options import DEFAULT_ROW_S, RowSeconds, Stream
from binwright.runtime.run import EXIT_FAILED, EXIT_OK

WORKERS = 2  # of `up --cluster`


def demo(  # noqa: PLR0913 - one parameter for each option
    *,
    minutes: Annotated[float, typer.Option(min=0.1, help="How long the load lasts.")] = 3.0,
    speed: Annotated[
        float, typer.Option(min=0.1, help="A row of the stream lasts 1/SPEED of its time.")
    ] = 2.5,
    stream: Stream = None,
    row_s: RowSeconds = DEFAULT_ROW_S,
    spark: Annotated[
        str | None,
        typer.Option(
            help="Spark Connect, sc://HOST:PORT, for --stream delta://PATH; else one is embedded."
        ),
    ] = None,
    capacity: Annotated[
        float,
        typer.Option(min=1.0, help="Bytes/s of one consumer; the load is in per cent of it."),
    ] = 500_000.0,
    chaos: Annotated[
        bool, typer.Option(help="kill -9 a consumer, and later the controller.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Keep tables and logs in this directory.")
    ] = None,
    json_: Json = False,
) -> None:
    """Run a recorded load through the whole system on this machine, and audit the tables."""
    console = progress_console(json_=json_)
    options = DemoOptions(
        stream=stream,
        row_s=row_s,
        spark=spark,
        minutes=minutes,
        speed=speed,
        capacity=capacity,
        chaos=chaos,
    )
    with working_directory(keep) as directory:
        result = run_for_result(Demo(options, console, directory).run)
    if json_:
        sys.stdout.write(json.dumps(result.to_json(), indent=2) + "\n")
    else:
        console.print(summary.show(result))
    raise typer.Exit(EXIT_OK if result.clean else EXIT_FAILED)


def up(  # noqa: PLR0913 - one parameter for each option
    *,
    topics: Topics = "",
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(help="Kafka's address, HOST:PORT; else the settings', else one is embedded."),
    ] = None,
    spark: Spark = None,
    lake: Lake = None,
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
    """Run the whole system for your own topics until Ctrl-C; servers not named are embedded."""
    with working_directory(directory) as run_directory:
        system = Up(
            console=progress_console(),
            directory=run_directory,
            topics=split(topics),
            bootstrap_servers=bootstrap_servers,
            spark=spark,
            lake=lake,
            partitions=partitions,
            embedded=EmbeddedSpark(spark_memory, WORKERS if cluster else 0),
        )
        raise typer.Exit(run(system.run))
