"""What was timed, as tables on the terminal, as JSON and as files."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from binwright.lab.report.section import Cell, Table
from binwright.lab.timings.outcome import Timings, shortfalls
from binwright.lab.timings.remarks import remarks
from binwright.lab.timings.tables import NAMES, capacities, durations, events

LEAST_WIDTH = 112  # of a table; cells are not cut in a narrower terminal


def show(found: Timings, about: str, console: Console, output: Path | None, *, json_: bool) -> None:
    """Print what was timed; write it as files into `output` if that is given.

    Args:
        found: What was timed.
        about: The system and its load, in sentences.
        console: For progress.
        output: A directory.
        json_: Print JSON instead of tables.
    """
    value = as_json(found, about)
    if output is not None:
        # matplotlib takes a second of CPU: only for those who want files.
        from binwright.lab.report.files import write_json, write_section  # noqa: PLC0415
        from binwright.lab.timings.section import section  # noqa: PLC0415

        write_section(section(found, about), output)
        write_json(output / "timings.json", value)
        console.print(f"written to {output}")
    for short in shortfalls(found):
        console.print(
            f"too few events: Δt{short.delta}, {short.label}: {short.events} of {short.wanted}",
            style="bold",
        )
    if json_:
        sys.stdout.write(json.dumps(value, indent=2) + "\n")
        return
    wide = Console(soft_wrap=True, highlight=False)
    wide.width = max(wide.width, LEAST_WIDTH)
    for table, shown in ((durations(found), DURATIONS), (capacities(found.capacities), CAPACITIES)):
        if table.rows:
            wide.print(_as_rich(table, shown))
            wide.print(f"{table.note}\n", style="dim")
    wide.print(" ".join([about, *remarks(found)]), soft_wrap=False)


def as_json(found: Timings, about: str) -> dict[str, Any]:
    """Return tables and events as JSON has them."""
    tables = (durations(found), capacities(found.capacities), events(found))
    return {
        "about": about,
        "seen": " ".join(remarks(found)),
        "unfinished": found.unfinished,
        "untriggered": found.untriggered,
        "missing": found.missing,
        "too_few": [asdict(short) for short in shortfalls(found)],
        "tables": {
            table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in tables
        },
    }


DURATIONS: Mapping[str, str] = {
    "Δt": "Δt",
    "event": "event",
    "events": "events",
    **{f"{name}, s": name for name in NAMES},
    "paper's events": "paper's\nevents",
    **{f"paper's {name}, s": name for name in NAMES},
}
CAPACITIES: Mapping[str, str] = {
    "condition": "condition",
    "MB": "MB",
    "partitions": "partitions",
    "tables": "tables",
    "cycles": "cycles",
    **{f"{name}, MB/s": name for name in ("mean", "p5", "p95")},
    "paper's mean, MB/s": "paper's\nmean",
    "paper's p5": "p5",
    "paper's p95": "p95",
}
"""Columns on the terminal and their short names; JSON and CSV have all."""


def _as_rich(table: Table, shown: Mapping[str, str]) -> RichTable:
    found = RichTable(
        title=table.title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for name, head in shown.items():
        at = table.columns.index(name)
        text = any(isinstance(row[at], str) for row in table.rows)
        found.add_column(head, justify="left" if text else "right", no_wrap=True)
    for row in table.rows:
        found.add_row(*(_text_of(row[table.columns.index(name)]) for name in shown))
    return found


def _text_of(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.2f}" if isinstance(cell, float) else f"{cell}"
