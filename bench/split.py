"""`make bench NAME=split`: one partition at three times what a consumer sustains, split and not.

A real broker, a real Spark, consumers in processes of their own, each bounded to a little more than
the limit. How far the owner's announcements are behind what is written, in seconds of the load. The
split side has a helper and then the owner killed (kill -9), and is audited at the end. A line each
ten seconds on standard error, JSON on standard output.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import figures
from bench.paced_group import paced, paced_group, settings_of
from binwright.fleets.process import process_fleet
from binwright.inspect.audit import AuditResult, audit
from binwright.local.stack import Servers, servers
from binwright.look.group_view import GroupView
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.logs import configure_logging
from binwright.runtime.settings.group import Settings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

LIMIT, TIMES = 200_000.0, 3.0  # bytes/s, and how many times that is written
RECORD_BYTES = 1_000
PACE = 1.25 * LIMIT
"""What a process can fetch, bytes of memory per second: about 15 % above the limit as stored."""
BEGIN_S, LAND_S, LOOK_S = 240.0, 300.0, 1.0


@dataclass
class Side:
    """One of the two groups, and what was seen of it."""

    settings: Settings
    view: GroupView = field(default_factory=GroupView)
    lags_s: list[float] = field(default_factory=list)
    staged: int = 0  # the next offset to stage, as last reported
    consumers: int = 0  # at most, at a time
    staging: int = 0  # consumers that staged some of it, at most, at a time

    @property
    def partition(self) -> TopicPartition:
        """Return the hot partition."""
        return TopicPartition(self.settings.topics[0], 0)

    @property
    def owner(self) -> Slot | None:
        """Return the consumer that owns it; None: none does at present."""
        return next((s for s, r in self.view.reports.items() if self.partition in r.reading), None)

    def lag_s(self) -> float:
        """Return how many seconds of the load are not announced."""
        if (owner := self.owner) is not None:
            self.staged = self.view.reports[owner].reading[self.partition] or self.staged
        behind = self.view.ends.get(self.partition, 0) - self.staged
        return behind * RECORD_BYTES / (TIMES * LIMIT)

    def stagers(self) -> list[Slot]:
        """Return the consumers that have staged some of it, the owner first."""
        shares = self.view.splits.get(self.partition, ())
        return [share.slot for share in shares if share.rows]

    async def kill(self, slot: Slot) -> None:
        """Kill a consumer's process."""
        for process in process_fleet(self.settings).running().get(slot, ()):
            process.kill()
        sys.stderr.write(f"killed consumer {slot}\n")


def side_of(name: str, ran: Servers, directory: Path, *, split: bool) -> Side:
    """Return a group with a low limit, and room for six consumers."""
    chosen = {"limit_bytes_per_s": LIMIT, "split": split, "max_slots": 6}
    return Side(settings_of(name, ran, directory, window_s=8.0, **chosen))


async def measure(side: Side, directory: Path, seconds: float, *, kills: bool) -> dict[str, Any]:
    """Run a group under load; return how far it was behind."""
    settings = side.settings
    row = {side.partition: PerCent(100.0)}
    load = Pacing(row_s=3_600.0, bytes_per_per_cent=TIMES * LIMIT / 100, record_bytes=RECORD_BYTES)
    stop = asyncio.Event()
    async with paced_group(settings, directory, side.view, 1):
        async with asyncio.timeout(BEGIN_S):
            while side.owner is None:  # noqa: ASYNC110 - other processes work
                await asyncio.sleep(LOOK_S)
        playing = asyncio.create_task(run_load([row], settings.kafka, load, stop=stop))
        try:
            await _watch(side, seconds, kills=kills)
        finally:
            stop.set()
            await playing
        landed = await _landed(side) if settings.controller.split else None
    return _figures(side, landed)


async def _watch(side: Side, seconds: float, *, kills: bool) -> None:
    began, victims = time.monotonic(), _victims(side) if kills else iter(())
    deaths = [seconds / 3, seconds * 2 / 3] if kills else []
    while (at := time.monotonic() - began) < seconds:
        side.lags_s.append(side.lag_s())
        side.consumers = max(side.consumers, len(side.view.reports))
        side.staging = max(side.staging, len(side.stagers()))
        if deaths and at >= deaths[0] and len(side.stagers()) > 1:
            deaths.pop(0)
            await side.kill(next(victims))
        if len(side.lags_s) % 10 == 0:
            sys.stderr.write(
                f"{side.settings.group}: {at:.0f} s, {side.lags_s[-1]:.1f} s behind, "
                f"stagers {side.stagers()}\n"
            )
        await asyncio.sleep(LOOK_S)


def _victims(side: Side) -> Iterator[Slot]:
    yield side.stagers()[1]
    yield side.stagers()[0]


async def _landed(side: Side) -> AuditResult:
    """Wait until all has landed; return what the table has of the topic."""
    settings = side.settings
    found = await audit(settings.topics, settings.kafka, settings.lake)
    until = time.monotonic() + LAND_S
    while not found.clean and time.monotonic() < until:
        await asyncio.sleep(5 * LOOK_S)
        found = await audit(settings.topics, settings.kafka, settings.lake)
    return found


def _figures(side: Side, landed: AuditResult | None) -> dict[str, Any]:
    third = max(1, len(side.lags_s) // 3)
    found: dict[str, Any] = {
        "highest_lag_s": round(max(side.lags_s), 1),
        "mean_lag_of_thirds_s": [
            round(sum(part) / len(part), 1)
            for part in (side.lags_s[:third], side.lags_s[third:-third], side.lags_s[-third:])
        ],
        "lag_at_the_end_s": round(side.lags_s[-1], 1),
        "consumers": side.consumers,
        "staging": side.staging,
        "deaths": side.view.deaths,
    }
    if landed is not None:
        found |= {"audit_clean": landed.clean, "rows": landed.rows}
    return found


def _show(text: str) -> None:
    sys.stderr.write(f"{text}\n")


async def compare(directory: Path, seconds: float) -> dict[str, Any]:
    """Measure both sides, one after the other."""
    os.environ |= paced(PACE)
    async with servers(directory, _show) as ran:
        found: dict[str, Any] = {}
        for name, split in (("split", True), ("alone", False)):
            place = directory / name
            place.mkdir()
            one = side_of(name, ran, place, split=split)
            found[name] = await measure(one, place, seconds, kills=split)
    return found


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=split", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="of load on each side")
    parser.add_argument("--keep", type=Path, help="an empty directory for logs and tables")
    figures.add_option(parser)
    wanted = parser.parse_args()
    configure_logging("warning", "console")
    with tempfile.TemporaryDirectory(prefix="binwright-split-") as name:
        found = asyncio.run(compare(wanted.keep or Path(name), wanted.seconds))
    figures.progress("split", {"cores": os.cpu_count(), **found}, wanted.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
