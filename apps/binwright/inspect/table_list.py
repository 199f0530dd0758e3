"""`binwright table list`: the tables of a group, a line each."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table
from rich.text import Text

from binwright.cli.options import Bootstrap, Group, Json, Lake, Spark, Wide, settings_at
from binwright.cli.runner import progress_console, run_for_result, working_directory
from binwright.cli.terminal import (
    LARGE,
    MEDIUM,
    TerminalColumn,
    fitting_table,
    page_console,
    print_json,
    print_page,
)
from binwright.inspect.table_lookup import (
    Listed,
    group_status,
    known_targets,
    listed,
    read_tables,
)
from binwright.inspect.table_reading import read_facts
from binwright.look.commands.status_page import TABLE_COLOURS
from binwright.protocol.errors import LakeUnavailable

COLOURS = {**TABLE_COLOURS, "waiting": "yellow", "absent": "yellow"}
"""By the states of `listed_state`."""


def drawn(tables: Sequence[Listed], width: int) -> Table:
    """Return a line for each table; what has no room in `width` characters is left out."""
    columns = (
        TerminalColumn("table", "left", fold=True),
        TerminalColumn("topic", "left", fold=True, shown=any(t.name != t.topic for t in tables)),
        TerminalColumn("format", "left"),
        TerminalColumn("state", "left"),
        TerminalColumn("newest row", min_width=8),
        TerminalColumn("rows", min_width=5),
        TerminalColumn("bad", min_width=3),
        TerminalColumn("version", shown_from=MEDIUM),
        TerminalColumn("at", "left", shown_from=LARGE, fold=True),
        TerminalColumn("", "left", fold=True),
    )
    rows = (
        (
            each.name,
            each.topic,
            each.format,
            Text(each.state, style=COLOURS[each.state]),
            age(each.freshness_s),
            number(each.rows),
            number(each.bad),
            number(each.version),
            each.path,
            each.reason,
        )
        for each in tables
    )
    return fitting_table(columns, rows, width)


def age(seconds: float | None) -> str:
    """Return an age as text; empty if it is not known."""
    return "" if seconds is None else f"{seconds:,.1f} s"


def number(value: int | None) -> str:
    """Return a number as text; empty if it is not known."""
    return "" if value is None else f"{value:,}"


def command(
    *,
    group: Group = None,
    bootstrap_servers: Bootstrap = None,
    spark: Spark = None,
    lake: Lake = None,
    json_: Json = False,
    wide: Wide = False,
) -> None:
    """Show every table of a group: format, state, age of the newest row, rows, bad records."""
    settings = settings_at(bootstrap_servers, group=group, lake=lake, spark=spark)
    console = progress_console(json_=json_)

    async def work() -> list[Listed]:
        reported = {each.name: each for each in (await group_status(settings)).tables}
        targets = known_targets(settings, reported.values())
        read = await read_tables(settings, targets, read_facts, (directory, console))
        unread = [each for each in read.values() if isinstance(each, LakeUnavailable)]
        if unread and len(unread) == len(read):
            raise unread[0]
        return [listed(settings, t, reported.get(name), read[name]) for name, t in targets.items()]

    with working_directory(None) as directory:
        tables = run_for_result(work)
    if json_:
        print_json([asdict(each) for each in tables])
    else:
        page = page_console(wide=wide)
        print_page(page, drawn(tables, page.width))
