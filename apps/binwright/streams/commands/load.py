"""`binwright load`: records for the user's own topics, at random rates or those of a stream."""

import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from binwright.cli.options import Bootstrap, Json, OptionalSpark, Seed, settings_at
from binwright.cli.runner import progress_console, run_for_result, split
from binwright.cli.terminal import data_size, print_json, print_page
from binwright.protocol.errors import SettingsError
from binwright.runtime.settings.group import Settings
from binwright.streams.commands.loader import UNLIMITED_S, Loader, LoadTopics, StreamLoad
from binwright.streams.generated import Walk, generate
from binwright.streams.load import MIN_RECORD_BYTES, LoadResult, Sent
from binwright.streams.load_pacing import Pacing
from binwright.streams.location import DEFAULT_ROW_S, Stream, StreamCapacity, StreamLocation

ROWS, WALK_ROW_S = 240, 15.0
WALK, STREAM = "Random rates", "Rates of a stream (--stream)"


def command(  # noqa: PLR0913 - one parameter for each option
    *,
    topics: Annotated[
        str,
        typer.Option(
            help="Topics, separated by commas; else the settings'. With --stream: only these of "
            "its topics, also if they hold records; else all, which must hold none."
        ),
    ] = "",
    partitions: Annotated[
        int,
        typer.Option(min=1, help="Partitions of each topic that is created.", rich_help_panel=WALK),
    ] = 4,
    bytes_per_s: Annotated[
        float, typer.Option(min=1.0, help="Highest rate of one partition.", rich_help_panel=WALK)
    ] = 300_000.0,
    delta: Annotated[
        int, typer.Option(min=0, help="Largest step of a rate, per cent.", rich_help_panel=WALK)
    ] = 15,
    seed: Seed = 0,
    stream: Stream = None,
    speed: Annotated[
        float,
        typer.Option(
            min=0.001,
            help="A row lasts 1/SPEED of its time, at the same rates.",
            rich_help_panel=STREAM,
        ),
    ] = 1.0,
    scale: Annotated[
        float,
        typer.Option(min=1e-9, help="Factor on every rate.", rich_help_panel=STREAM),
    ] = 1.0,
    capacity: StreamCapacity = None,
    prefix: Annotated[
        str,
        typer.Option(
            help="Prefix of each topic's name; the stream's own topics are left alone.",
            rich_help_panel=STREAM,
        ),
    ] = "",
    spark: OptionalSpark = None,
    record_bytes: Annotated[
        int, typer.Option(min=MIN_RECORD_BYTES, help="Size of a record, bytes.")
    ] = 1_000,
    row_s: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help=f"Seconds that a row's rates last; else {WALK_ROW_S:g}, or {DEFAULT_ROW_S:g} with "
            "--stream.",
        ),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            help="Length, minutes; else until Ctrl-C, or --stream once. A shorter stream repeats.",
        ),
    ] = None,
    bootstrap_servers: Bootstrap = None,
    json_: Json = False,
) -> None:
    """Write records to topics, at rates that walk at random or those of a stream or recording."""
    console = progress_console(json_=json_)
    settings = settings_at(bootstrap_servers)
    if stream is None:
        walk = Walk(
            topics=_named(topics, settings),
            partitions=partitions,
            rows=ROWS,
            delta=delta,
            seed=seed,
        )
        load = Pacing(
            row_s=row_s or WALK_ROW_S,
            bytes_per_per_cent=bytes_per_s / 100,
            record_bytes=record_bytes,
            duration_s=UNLIMITED_S if minutes is None else minutes * 60,
        )
        counts = dict.fromkeys(walk.topics, partitions)
        to = LoadTopics(partitions=counts, named=walk.topics, grow=True)
        result = run_for_result(Loader(console, settings, to, list(generate(walk)), load).run)
    else:
        with tempfile.TemporaryDirectory(prefix="binwright-") as directory:
            played = StreamLoad(
                location=StreamLocation(console, Path(directory), stream, spark),
                settings=settings,
                topics=split(topics),
                prefix=prefix,
                capacity=capacity,
                scale=scale,
                row_s=row_s,
                speed=speed,
                minutes=minutes,
                record_bytes=record_bytes,
            )
            result = run_for_result(played.run)
    if json_:
        print_json(to_json(result))
    else:
        print_page(console, show(result))


def _named(topics: str, settings: Settings) -> tuple[str, ...]:
    named = split(topics) or settings.topics
    if not named:
        raise SettingsError("no topics: name some with --topics")
    return named


def to_json(result: LoadResult) -> dict[str, Any]:
    """Return the figures of every partition, with units in their names."""
    return {
        "elapsed_s": result.elapsed_s,
        "rows": result.rows,
        "shed_bytes": result.shed_bytes,
        "partitions": {
            str(partition): {
                "records": sent.records,
                "bytes": sent.bytes,
                "due_bytes": sent.due_bytes,
            }
            for partition, sent in result.partitions.items()
        },
    }


def show(result: LoadResult) -> RenderableType:
    """Return a table with a line for each topic, and the total."""
    table = Table(title_justify="left", title=_title(result))
    table.add_column("topic")
    for name in ("partitions", "records", "due", "written", "least of a partition"):
        table.add_column(name, justify="right")
    for topic, members in groupby(result.partitions.items(), lambda item: item[0].topic):
        sent = [each for _, each in members]
        table.add_row(
            topic,
            f"{len(sent):,}",
            f"{sum(one.records for one in sent):,}",
            data_size(sum(one.due_bytes for one in sent)),
            data_size(sum(one.bytes for one in sent)),
            _least(sent),
        )
    if not result.shed_bytes:
        return table
    return Group(
        table,
        f"{data_size(result.shed_bytes)} were due and not written: the brokers or this machine "
        "were too slow",
    )


def _title(result: LoadResult) -> str:
    records = sum(sent.records for sent in result.partitions.values())
    size = data_size(sum(sent.bytes for sent in result.partitions.values()))
    return f"{records:,} records in {result.elapsed_s:.0f} s: {size}"


def _least(sent: Sequence[Sent]) -> str:
    """Return the smallest share of what was due that a partition got."""
    shares = [one.bytes / one.due_bytes for one in sent if one.due_bytes]
    return f"{100 * min(shares):.1f} %" if shares else ""
