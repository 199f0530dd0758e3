"""`make bench NAME=landing`: binwright beside what else lands topics, in one run, on one broker.

A backlog (MB/s, MB per CPU-second of all processes but the broker), a live load (age of rows, cost,
commits and files), many tables, and what a commit costs in a table that is old. Each side is warmed
up before it is measured; those with a Spark have one each, with the same settings. Tables on
standard error, JSON on standard output.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from bench import figures
from bench.landing.backlog import backlog, backlog_in_columns, backlog_of_avro
from bench.landing.bench_broker import BenchBroker
from bench.landing.growth import growth
from bench.landing.live import live, live_in_columns, peers, tables
from binwright.cli.terminal import Console
from binwright.local.kafka import run_broker
from binwright.protocol.errors import BinwrightError
from binwright.runtime.logs import configure_logging
from binwright.runtime.run import root_cause
from binwright.runtime.settings.kafka import KafkaSettings

SCENARIOS = (
    *("backlog", "backlog-columns", "backlog-avro"),
    *("live", "live-columns", "peers", "tables", "growth"),
)


async def measure(only: Sequence[str], megabytes: int, directory: Path) -> dict[str, Any]:
    """Run the scenarios one after the other; return what was seen."""
    progress = Console(stderr=True, width=160).print
    results: dict[str, Any] = {}
    async with run_broker(directory / "kafka", progress=progress) as broker:
        ground = BenchBroker(KafkaSettings(bootstrap_servers=broker.bootstrap_servers))
        if "backlog" in only:
            results["backlog"] = await backlog(ground, directory, megabytes, progress)
        if "backlog-columns" in only:
            found = await backlog_in_columns(ground, directory, megabytes, progress)
            results["backlog-columns"] = found
        if "backlog-avro" in only:
            found = await backlog_of_avro(ground, directory, megabytes, progress)
            results["backlog-avro"] = found
        if "live" in only:
            results["live"] = await live(ground, directory, progress)
        if "live-columns" in only:
            results["live-columns"] = await live_in_columns(ground, directory, progress)
        if "peers" in only:
            results["peers"] = await peers(ground, directory, progress)
        if "tables" in only:
            results["tables"] = await tables(ground, directory, progress)
    if "growth" in only:
        results["growth"] = await growth(directory, progress)
    return results


def show(name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Print a scenario as a table, a side or a setting each row."""
    table = Table(title=name)
    for column in rows[0]:
        table.add_column(column, justify="left" if column == "side" else "right")
    for row in rows:
        table.add_row(*(f"{v:,.2f}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(stderr=True, width=160).print(table)


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--megabytes", type=int, default=1_000, help="of the backlog")
    parser.add_argument("--keep", type=Path, help="keep tables and logs here")
    figures.add_option(parser)
    given = parser.parse_args()
    configure_logging("error", "console")
    with tempfile.TemporaryDirectory(prefix="bench-landing-") as scratch:
        try:
            work = measure(given.only, given.megabytes, given.keep or Path(scratch))
            results = asyncio.run(work)
        except (BinwrightError, BaseExceptionGroup) as exc:
            sys.stderr.write(f"bench-landing: {root_cause(exc)}\n")
            return 1
    for name, rows in results.items():
        show(name, rows)
    figures.progress("landing", results, given.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
