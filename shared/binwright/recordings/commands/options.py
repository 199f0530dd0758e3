"""Options of the commands that read a stream or a recording."""

from typing import Annotated

import typer

from binwright.recordings.stream_files.stream_file import ROW_S

DEFAULT_ROW_S = ROW_S
NAMES = "a file, - (standard input or output), or delta://PATH"

Stream = Annotated[
    str | None,
    typer.Option(help="A stream or a recording: a file, - (standard input), or delta://PATH."),
]
RowSeconds = Annotated[
    float,
    typer.Option(
        "--row-s",
        min=0.1,
        help="Seconds that a row lasts: of a stream, which does not say, or made of a recording.",
    ),
]
StreamCapacity = Annotated[
    float | None,
    typer.Option(
        min=1.0,
        help="A stream's 100 per cent, bytes/s; else the settings' capacity of a consumer.",
    ),
]
