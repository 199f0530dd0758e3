"""`make bench NAME=catch-up`: a backlog beside a live load, and a load that trebles.

A real broker and Spark, consumers in processes of their own, each bounded to a little more than the
limit, so that the cores are not. How long until all rows are within the target again: with one
consumer allowed and with three, with three where Spark is frozen most of the time, and after the
load trebles. A line each ten seconds on standard error, JSON on standard output.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import figures
from bench.landing.bench_broker import BenchBroker, until
from bench.landing.forms import BYTES
from bench.paced_group import paced, paced_group, settings_of
from binwright.local.kafka import run_broker
from binwright.local.server import no_progress
from binwright.local.spark import SparkServer, run_spark
from binwright.local.stack import Servers
from binwright.look.group_view import GroupView
from binwright.protocol.model import TopicPartition
from binwright.runtime.logs import configure_logging
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.kafka import KafkaSettings

PARTITIONS = 8
LIMIT, PACE = 8e6, 10e6  # bytes/s: what is planned for a consumer, and what it can fetch
LIVE = 2e6
BACKLOG = 1_000_000  # records: a gigabyte
CATCH_UP_S, WINDOW_S = 60.0, 30.0
TARGET_S, CALM_S = 6.0, 5.0  # twice the default freshness, and for how long it must hold
AWAKE_S, ASLEEP_S = 0.5, 4.5  # of a Spark that is the limit
STEP, STEP_FROM = 3.0, 0.6 * LIMIT
LOOK_S, BEGIN_S, WATCH_S = 0.5, 240.0, 600.0


@dataclass
class Case:
    """A group, and what was seen of it."""

    name: str
    settings: Settings
    live: float  # bytes/s that are written
    view: GroupView = field(default_factory=GroupView)
    consumers: int = 0  # at most, at a time
    worst_s: float = 0.0

    def behind_s(self) -> float:
        """Return how many seconds of the live load have not landed."""
        topic = self.settings.topics[0]
        each = (TopicPartition(topic, number) for number in range(PARTITIONS))
        return sum(self.view.partition_lag(p) for p in each) * BYTES.record_bytes / self.live

    async def within_target(self) -> float:
        """Watch until the target is met and stays met; return the seconds that it took."""
        began, calm, printed = time.monotonic(), None, 0.0
        while (at := time.monotonic() - began) < WATCH_S:
            behind, running = self.behind_s(), len(self.view.reports)
            self.worst_s = max(self.worst_s, behind)
            self.consumers = max(self.consumers, running)
            calm = (calm or at) if behind <= TARGET_S else None
            if calm is not None and at - calm >= CALM_S:
                return calm
            if at - printed >= 10.0:
                printed = at
                print_line(f"{self.name}: {at:.0f} s, {behind:.1f} s behind, {running} consumers")
            await asyncio.sleep(LOOK_S)
        return WATCH_S


def print_line(text: str) -> None:
    """Write to standard error."""
    sys.stderr.write(f"{text}\n")


def case(name: str, ran: Servers, place: Path, slots: int) -> Case:
    """Return a group in a directory of its own, with so many consumers at most."""
    (place / name).mkdir()
    chosen = {"limit_bytes_per_s": LIMIT, "catch_up_s": CATCH_UP_S, "max_slots": slots}
    return Case(name, settings_of(name, ran, place / name, window_s=WINDOW_S, **chosen), LIVE)


async def backlog(each: Case, broker: BenchBroker, place: Path) -> dict[str, Any]:
    """Let a group find a gigabyte beside its live load; return how long it was late."""
    topic = each.settings.topics[0]
    broker.create([topic], PARTITIONS)
    await asyncio.to_thread(broker.fill, topic, PARTITIONS, BACKLOG, BYTES)
    async with (
        broker.load([topic], PARTITIONS, each.live),
        paced_group(each.settings, place / each.name, each.view, PARTITIONS),
    ):
        # From the first report on: a start is the same with one consumer and with three.
        await until(lambda: each.behind_s() > TARGET_S, BEGIN_S, "the backlog is measured")
        await until(lambda: bool(each.view.reports), BEGIN_S, "a consumer reports")
        took = await each.within_target()
    return {"within_target_s": round(took, 1), "consumers": each.consumers}


async def step(each: Case, broker: BenchBroker, place: Path) -> dict[str, Any]:
    """Treble the load of a warm group; return how late rows became, and for how long."""
    topic = each.settings.topics[0]
    broker.create([topic], PARTITIONS)
    async with paced_group(each.settings, place / each.name, each.view, PARTITIONS):
        each.live = STEP_FROM
        async with broker.load([topic], PARTITIONS, STEP_FROM):
            await until(lambda: bool(each.view.landed), BEGIN_S, "rows land")
            await each.within_target()
            await asyncio.sleep(WINDOW_S)  # the monitor's window is full of this load, no other
            before = each.consumers
            each.live, each.worst_s = STEP * STEP_FROM, 0.0
            async with broker.load([topic], PARTITIONS, (STEP - 1) * STEP_FROM):
                began = time.monotonic()
                await until(lambda: each.behind_s() > TARGET_S, WINDOW_S, "the load is too much")
                late = time.monotonic() - began
                took = late + await each.within_target()
    return {
        "late_from_s": round(late, 1),
        "within_target_s": round(took, 1),
        "behind_at_most_s": round(each.worst_s, 1),
        "consumers_before": before,
        "consumers": each.consumers,
    }


@contextlib.asynccontextmanager
async def mostly_frozen(spark: SparkServer) -> AsyncIterator[None]:
    """Let Spark run for a tenth of the time only."""

    async def freeze() -> None:
        assert spark.pid is not None
        try:
            while True:
                await asyncio.sleep(AWAKE_S)
                os.kill(spark.pid, signal.SIGSTOP)
                await asyncio.sleep(ASLEEP_S)
                os.kill(spark.pid, signal.SIGCONT)
        finally:
            os.kill(spark.pid, signal.SIGCONT)

    freezing = asyncio.create_task(freeze())
    try:
        yield
    finally:
        freezing.cancel()
        await asyncio.gather(freezing, return_exceptions=True)


async def measure(place: Path, wanted: list[str]) -> dict[str, Any]:
    """Play the cases that are wanted, one after the other."""
    os.environ |= paced(PACE)
    found: dict[str, Any] = {}
    async with (
        run_broker(place / "kafka", progress=no_progress) as kafka,
        run_spark(place / "spark", progress=no_progress) as spark,
    ):
        ran = Servers(kafka.bootstrap_servers, spark.address, 0.0, spark.token_file)
        broker = BenchBroker(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers))
        for name in wanted:
            one = case(name, ran, place, 1 if name == "one" else 3)
            if name == "step":
                found[name] = await step(one, broker, place)
            elif name == "sink":
                async with mostly_frozen(spark):
                    found[name] = await backlog(one, broker, place)
            else:
                found[name] = await backlog(one, broker, place)
            print_line(f"{name}: {found[name]}")
    return found


CASES = ("warm-up", "one", "three", "step", "sink")


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=catch-up", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=[*CASES])
    figures.add_option(parser)
    wanted = parser.parse_args()
    configure_logging("warning", "console")
    with tempfile.TemporaryDirectory(prefix="binwright-catch-up-") as name:
        found = asyncio.run(measure(Path(name), wanted.only))
    figures.progress("catch-up", {"cores": os.cpu_count(), **found}, wanted.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
