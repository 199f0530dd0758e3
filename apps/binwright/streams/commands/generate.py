"""`binwright generate`: a measurement stream by the paper's rule."""

from typing import Annotated

import typer

from binwright.cli.options import Seed
from binwright.cli.runner import split
from binwright.streams.generated import Walk, generate
from binwright.streams.location import open_output
from binwright.streams.streams import stream_lines


def command(
    file: Annotated[str, typer.Argument(help="Where to write the stream (JSON); - to print it.")],
    *,
    topics: Annotated[str, typer.Option(help="Topics, separated by commas.")] = "orders,clicks",
    partitions: Annotated[int, typer.Option(min=1, help="Partitions of each topic.")] = 16,
    rows: Annotated[int, typer.Option(min=1, help="Number of measurements.")] = 100,
    delta: Annotated[int, typer.Option(min=0, help="Largest step, per cent of capacity.")] = 5,
    seed: Seed = 0,
    start: Annotated[
        int | None,
        typer.Option(min=0, max=100, help="First rate of all, per cent; else uniformly random."),
    ] = None,
) -> None:
    """Generate a measurement stream by the paper's rule: a random walk of every rate."""
    walk = Walk(
        topics=split(topics), partitions=partitions, rows=rows, delta=delta, seed=seed, start=start
    )
    with open_output(file) as output:
        output.writelines(line.encode() for line in stream_lines(generate(walk)))
