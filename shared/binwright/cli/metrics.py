"""The commands about measurements: record, replay, top."""

import json
import math
import re
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from binwright.cli.options import Bootstrap, settings_at
from binwright.cli.record import Place, Recorder, Replayer
from binwright.cli.top import Top, Wish, draw
from binwright.cli.work import run
from binwright.core.errors import SettingsError
from binwright.lab.board import Board, Key
from binwright.shell.logs import configure

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


def top(  # noqa: PLR0913 - one parameter for each option
    *,
    bootstrap_servers: Bootstrap = None,
    sort: Annotated[Key, typer.Option(help="What comes first.")] = "rate",
    filter_: Annotated[
        str | None, typer.Option("--filter", help="Only names that hold this regular expression.")
    ] = None,
    topics: Annotated[bool, typer.Option("--topics", help="Topics, not partitions.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="No more lines than this.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print it once, and end.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON once, for programs.")] = False,
) -> None:
    """Show topics and partitions by how fast they are written, live."""
    configure("error", "console")
    console = Console(soft_wrap=json_)
    wish = Wish(sort, _pattern(filter_), topics, limit)
    work = Top(console, settings_at(bootstrap_servers), wish, once=once or json_ or _piped(console))
    boards: list[Board] = []

    async def show() -> None:
        boards.append(await work.run())

    code = run(show)
    for board in boards:
        rows = board.rows(sort, wish.pattern, topics=topics)[:limit]
        if json_:
            sys.stdout.write(json.dumps([row.facts() for row in rows], indent=2) + "\n")
        else:
            console.print(draw(board, wish, len(rows), board.heard_at or 0.0))
    raise typer.Exit(code)


def _piped(console: Console) -> bool:
    return not console.is_terminal


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as exc:
        raise SettingsError(f"--filter: not a regular expression: {text!r}: {exc}") from exc
