"""The command line: `binwright --help`."""

import json
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Console

from binwright.cli import approve, lab, load, metrics, page, status, summary
from binwright.cli.audit import Audit, table
from binwright.cli.demo import Demo, Wishes
from binwright.cli.heap import EmbeddedSpark
from binwright.cli.options import Bootstrap
from binwright.cli.reference import page as reference
from binwright.cli.up import Up
from binwright.consumer.__main__ import main as run_consumer
from binwright.controller.__main__ import main as run_controller
from binwright.core.errors import SettingsError, UserError
from binwright.lab import streams
from binwright.monitor.__main__ import main as run_monitor
from binwright.shell.logs import configure
from binwright.shell.run import EXIT_FAILED, EXIT_OK, complain, run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Scale a Kafka consumer group by load, and land its topics in Delta tables exactly once.",
)
T = TypeVar("T")
WORKERS = 2  # of `up --cluster`

Topics = Annotated[str, typer.Option(help="Topics, separated by commas.")]
Spark = Annotated[str | None, typer.Option(help="A Spark Connect server, sc://HOST:PORT.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def _result(work: Callable[[], Awaitable[T]]) -> T:
    """Run `work` to its end and return what it gives; exit with its code if there is nothing."""
    given: list[T] = []

    async def keep() -> None:
        given.append(await work())

    code = run(keep)
    if not given:
        # Ended by a signal without a result: not a success.
        raise typer.Exit(code or EXIT_FAILED)
    return given[0]


@contextmanager
def _workplace(kept: Path | None) -> Iterator[Path]:
    """Give a directory: the one named, or one that is gone afterwards."""
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept.absolute()
        return
    made = Path(tempfile.mkdtemp(prefix="binwright-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _split(topics: str) -> tuple[str, ...]:
    return tuple(topic.strip() for topic in topics.split(",") if topic.strip())


@app.command()
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
    with _workplace(keep) as directory:
        outcome = _result(Demo(wishes, console, directory).run)
    if json_:
        sys.stdout.write(json.dumps(outcome.facts(), indent=2) + "\n")
    else:
        console.print(summary.show(outcome))
    raise typer.Exit(EXIT_OK if outcome.clean else EXIT_FAILED)


@app.command()
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
    with _workplace(directory) as place:
        system = Up(
            console=Console(log_path=False, soft_wrap=True),
            directory=place,
            topics=_split(topics),
            bootstrap_servers=bootstrap_servers,
            spark=spark,
            lake=lake,
            partitions=partitions,
            embedded=EmbeddedSpark(spark_memory, WORKERS if cluster else 0),
        )
        raise typer.Exit(run(system.run))


@app.command()
def audit(  # noqa: PLR0913 - one parameter for each option
    *,
    topics: Topics = "",
    bootstrap_servers: Bootstrap = None,
    spark: Spark = None,
    lake: Annotated[str | None, typer.Option(help="Where the tables are.")] = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Take every offset that has no row and that the topic no longer keeps for lost.",
        ),
    ] = False,
    json_: Json = False,
) -> None:
    """Compare the tables with the topics: every offset exactly once? Exit code 1 if not."""
    configure("error", "console")
    console = Console(stderr=json_, log_path=False, soft_wrap=True)
    with _workplace(None) as place:
        wanted = Audit(console, place, _split(topics), bootstrap_servers, spark, lake, strict)
        found = _result(wanted.run)
    if json_:
        sys.stdout.write(json.dumps(found.to_json(), indent=2) + "\n")
    else:
        console.print(table(found))
    raise typer.Exit(EXIT_OK if found.clean else EXIT_FAILED)


@app.command()
def generate(  # noqa: PLR0913 - one parameter for each option
    file: Annotated[Path, typer.Argument(help="Where to write the stream (JSON).")],
    *,
    topics: Topics = "orders,clicks",
    partitions: Annotated[int, typer.Option(min=1, help="Of each topic.")] = 16,
    rows: Annotated[int, typer.Option(min=1, help="Measurements.")] = 100,
    delta: Annotated[int, typer.Option(min=0, help="Largest step, per cent of capacity.")] = 5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same stream.")] = 0,
    start: Annotated[
        int | None, typer.Option(min=0, max=100, help="Every rate at first; else drawn evenly.")
    ] = None,
) -> None:
    """Make a measurement stream by the paper's rule (a random walk of every rate)."""
    walk = streams.Walk(
        topics=_split(topics), partitions=partitions, rows=rows, delta=delta, seed=seed, start=start
    )
    streams.write(file, list(streams.generate(walk)))


app.add_typer(lab.app, name="lab")
app.command()(metrics.record)
app.command()(metrics.replay)
app.command()(metrics.top)
app.command("load")(load.command)
app.command("status")(status.command)
app.command("page")(page.command)
app.command("approve")(approve.command)


@app.command()
def settings() -> None:
    """Print every setting there is, with its default."""
    sys.stdout.write(reference())


@app.command()
def monitor() -> None:
    """Run the monitor alone, with the settings of the file and the environment."""
    raise typer.Exit(run_monitor([]))


@app.command()
def controller() -> None:
    """Run a controller alone, with the settings of the file and the environment."""
    raise typer.Exit(run_controller([]))


@app.command()
def consumer(
    slot: Annotated[int, typer.Option(help="The consumer's number, 0 or more.")],
) -> None:
    """Run one consumer alone, with the settings of the file and the environment."""
    raise typer.Exit(run_consumer(["--slot", str(slot)]))


def main() -> None:
    """Run the command line; what a person can mend is told without a traceback."""
    try:
        app()
    except UserError as exc:
        sys.exit(complain(exc))
    except OSError as exc:
        sys.exit(complain(SettingsError(str(exc))))
