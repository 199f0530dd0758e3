"""`binwright load`: records for the user's own topics, at random rates or those of a stream."""

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from binwright.cli.options import Bootstrap, Json, OptionalSpark, Seed, settings_at
from binwright.cli.runner import progress_console, run_for_result, split
from binwright.protocol.errors import SettingsError
from binwright.recordings.commands.load_summary import show, to_json
from binwright.recordings.commands.loader import Loader, LoadTopics
from binwright.recordings.commands.options import DEFAULT_ROW_S, Stream, StreamCapacity
from binwright.recordings.commands.stream_load import StreamLoad
from binwright.recordings.generated import Walk, generate
from binwright.recordings.load_pacing import Load
from binwright.recordings.location import StreamLocation
from binwright.recordings.sample_records import MIN_RECORD_BYTES
from binwright.runtime.settings import Settings

UNLIMITED_S = 1e9
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
        int, typer.Option(min=1, help="Of each topic that is created.", rich_help_panel=WALK)
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
        typer.Option(min=1e-9, help="Multiplies every rate.", rich_help_panel=STREAM),
    ] = 1.0,
    capacity: StreamCapacity = None,
    prefix: Annotated[
        str,
        typer.Option(
            help="Before each topic's name: what runs on the stream's own topics is left alone.",
            rich_help_panel=STREAM,
        ),
    ] = "",
    spark: OptionalSpark = None,
    record_bytes: Annotated[int, typer.Option(min=MIN_RECORD_BYTES, help="Of one record.")] = 1_000,
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
            help="How long; else until Ctrl-C, or with --stream once. A shorter stream repeats.",
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
        load = Load(
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
        sys.stdout.write(json.dumps(to_json(result), indent=2) + "\n")
    else:
        console.print(show(result))


def _named(topics: str, settings: Settings) -> tuple[str, ...]:
    named = split(topics) or settings.topics
    if not named:
        raise SettingsError("no topics: name some with --topics")
    return named
