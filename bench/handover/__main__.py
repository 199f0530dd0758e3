"""`make bench NAME=handover`: a rolling bounce and a growth, for today's groups and for binwright.

One run, one broker, one topic: 16 partitions, 25 records/s each, four members. Each of the systems
has the machine for itself: steady load, then every member is asked to end and started again, then
four partitions' load doubles and a fifth member comes (binwright decides so by itself). A table on
standard error, JSON on standard output.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from bench import figures
from bench.handover.ages import ages, landed_rows
from bench.handover.binwright_group import run_binwright_group
from bench.handover.member import KINDS
from bench.handover.peers import Peer
from bench.handover.scenario import MEMBERS, PARTITIONS, BenchTopic, measure
from bench.landing.table_log import DeltaLog
from binwright.cli.terminal import Console
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.kafka import run_broker
from binwright.local.spark import run_spark
from binwright.look.group_view import percentile
from binwright.protocol.errors import BinwrightError
from binwright.runtime.logs import configure_logging
from binwright.runtime.run import root_cause
from binwright.runtime.settings.kafka import KafkaSettings

BINWRIGHT = "binwright"
PHASES = ("bounce", "growth")


async def of_peer(kind: str, ground: BenchTopic, directory: Path, times: int) -> dict[str, Any]:
    """Measure one of today's groups."""
    peer = Peer(kind, ground, directory)
    try:
        return await measure(peer, ground, times)
    finally:
        await peer.end()


async def of_ours(ground: BenchTopic, directory: Path, times: int, progress: Any) -> dict[str, Any]:
    """Measure binwright, with a Spark of its own."""
    async with (
        run_spark(directory / "spark", memory="2g", progress=progress) as spark,
        run_binwright_group(ground, spark.url, directory) as subject,
    ):
        disturbances = await measure(subject, ground, times)
        pauses = [1e3 * move.pause_s for move in subject.view.moves]
    log = DeltaLog(directory / "lake" / ground.topic)
    log.read_new_commits()
    writes = written(directory)
    return disturbances | {
        "moves": len(pauses),
        "pause_per_move_ms": {f"p{q}": percentile(pauses, q / 100) for q in (50, 99, 100)},
        "write_s": {f"p{q}": percentile(writes, q / 100) for q in (50, 99)},
        "age_s": ages(list(landed_rows(log.commits)), disturbances["when"]),
    }


def written(directory: Path) -> list[float]:
    """Return how long our commits took, s."""
    return [float(s) for path in directory.glob("*.writes") for s in path.read_text().split()]


async def run(
    kinds: Sequence[str], directory: Path, times: int, console: Console
) -> dict[str, Any]:
    """Measure one after the other."""
    by_subject = {}
    async with run_broker(directory / "kafka", progress=console.log) as broker:
        kafka = KafkaSettings(bootstrap_servers=broker.bootstrap_servers)
        ground = BenchTopic(kafka, "orders")
        async with KafkaControlTopics(kafka) as bus:
            await bus.ensure(ground.topic, PARTITIONS, {})
        for kind in kinds:
            console.log(f"measuring {kind}")
            place = empty(directory / kind)
            measuring = (
                of_ours(ground, place, times, console.log)
                if kind == BINWRIGHT
                else of_peer(kind, ground, place, times)
            )
            by_subject[kind] = await measuring
    return by_subject


def empty(directory: Path) -> Path:
    """Make a directory that must not be there yet."""
    directory.mkdir(parents=True)
    return directory


def table(by_subject: dict[str, Any], phase: str) -> Table:
    """Return one phase side by side."""
    made = Table(title=phase)
    for head in (
        "",
        "disturbed",
        "changed hands",
        "pauses",
        "partition-s",
        "of hand-overs",
        "max s",
    ):
        made.add_column(head, justify="left" if not head else "right")
    for kind, facts in by_subject.items():
        one = facts[phase]
        made.add_row(
            kind,
            str(one["disturbed"]),
            str(one["changed_hands"]),
            str(one["pauses"]),
            f"{one['paused_s']:.2f}",
            f"{one['handed_over_s']:.2f}",
            f"{one['longest_gap_s']:.2f}",
        )
    return made


def compared(by_subject: dict[str, Any]) -> dict[str, Any]:
    """Return our pauses as shares of the best of the others'."""
    others = [facts for kind, facts in by_subject.items() if kind != BINWRIGHT]
    if BINWRIGHT not in by_subject or not others:
        return {}
    shares: dict[str, Any] = {}
    for phase in PHASES:
        for figure in ("paused_s", "longest_gap_s"):
            best = min(facts[phase][figure] for facts in others)
            shares[f"{phase}_{figure}"] = (
                by_subject[BINWRIGHT][phase][figure] / best if best else None
            )
    return shares


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=handover", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=(*KINDS, BINWRIGHT), default=(*KINDS, BINWRIGHT)
    )
    parser.add_argument("--keep", type=Path, help="an empty directory for logs and marks")
    parser.add_argument("--bounces", type=int, default=MEMBERS, help="how many members, of four")
    figures.add_option(parser)
    wanted = parser.parse_args()
    console = Console(stderr=True, width=100)
    configure_logging("warning", "console")
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="binwright-handover-") as name:
        try:
            by_subject = asyncio.run(
                run(wanted.only, wanted.keep or Path(name), wanted.bounces, console)
            )
        except (BinwrightError, BaseExceptionGroup) as exc:
            cause = root_cause(exc)
            if not isinstance(cause, BinwrightError):
                raise
            console.print(f"bench-handover: {cause}")
            return 1
    for phase in PHASES:
        console.print(table(by_subject, phase))
    facts = {"cores": os.cpu_count(), "load_average_before": load_before, **by_subject}
    figures.progress("handover", {**facts, "ours_to_best": compared(by_subject)}, wanted.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
