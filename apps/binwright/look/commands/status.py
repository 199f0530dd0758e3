"""`binwright status`: every group of a Kafka cluster, from its topics alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live

from binwright.cli.options import Bootstrap, Wide, settings_at
from binwright.cli.runner import run
from binwright.cli.terminal import page_console, print_json, print_page
from binwright.kafka.control_topics import KafkaControlTopics

if TYPE_CHECKING:
    from binwright.look.commands.status_page import Show


def command(
    *,
    group: Annotated[
        list[str] | None, typer.Option("--group", help="Show only this group; may be repeated.")
    ] = None,
    bootstrap_servers: Bootstrap = None,
    watch: Annotated[bool, typer.Option("--watch", help="Repeat until Ctrl-C.")] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Print JSON, for programs; with --watch a line a time.")
    ] = False,
    wide: Wide = False,
) -> None:
    """Show every group: state, consumers, tables, lag, moves in flight, last plan and proposal."""
    settings = settings_at(bootstrap_servers)

    async def work() -> None:
        async with KafkaControlTopics(settings.kafka, read_only=True) as bus:
            # Imported once Kafka answers: messages and views cost a quarter of the CPU of a start.
            from binwright.look.commands.status_page import show_groups  # noqa: PLC0415

            with _output(json_=json_, watch=watch, wide=wide) as show:
                await show_groups(bus, settings, group or (), show, watch=watch)

    raise typer.Exit(run(work))


@contextmanager
def _output(*, json_: bool, watch: bool, wide: bool) -> Iterator["Show"]:
    """Give the function that shows groups: as JSON, as a page, or as a page that is redrawn."""
    from binwright.look.commands.status_page import draw  # noqa: PLC0415 - as above

    console = page_console(wide=wide)
    if json_:
        indent = None if watch else 2
        yield lambda statuses: print_json([each.to_json() for each in statuses], indent)
    elif not (watch and console.is_terminal):
        yield lambda statuses: print_page(console, draw(statuses, console.width))
    else:
        with Live(console=console, auto_refresh=False, screen=True) as live:
            yield lambda statuses: live.update(draw(statuses, console.width), refresh=True)
