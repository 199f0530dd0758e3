"""`make bench NAME=groups`: one controller process over many small groups, on a real broker.

Each group has ten partitions, a topic of its own and two consumers, which are played: they speak
the real messages. The controller is a process of its own with the product's leaderships in it, over
fleets that start nothing. It prints CPU seconds per second in steady state, memory, how long
it took until all groups were synchronized, and how long after the first measurement of an overload
the plan against it stood in the group's topic.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from bench import figures
from bench.fake_consumers import FakeConsumer, measurement
from binwright.controller.__main__ import GATHER_MS
from binwright.controller.fleets.fixed import FixedFleet
from binwright.controller.group_context import group_context
from binwright.controller.leadership import Leadership
from binwright.kafka.control_records import (
    COMMANDS_CONFIG,
    CONTROLLER_PARTITION,
    LANDING_CONFIG,
    LANDING_PARTITIONS,
    METADATA_CONFIG,
    METRICS_CONFIG,
    messages,
)
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.metrics_topic import run_measurements
from binwright.kafka.publishing import publish_message
from binwright.local.child import Child, Command
from binwright.local.kafka import run_broker
from binwright.protocol.metadata import Planned, decode_inbound
from binwright.protocol.model import Slot
from binwright.runtime.environment import clean_environment
from binwright.runtime.logs import configure_logging
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.serve import serve
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.programs import ProgramSettings

PARTITIONS, CONSUMERS = 10, 2
RATE, LIMIT = 1_000.0, 7_500.0
METRICS = "bench.metrics"
PLAYED_GATHER_MS = 500  # the players must leave the machine to who is measured
BROKER = {
    # Thousands of partitions whose first index entry is due at the same moment: 10 ms each here.
    "log.index.interval.bytes": str(1 << 30),
    "log.index.size.max.bytes": str(64 << 10),
}
ROOT = Path(__file__).parents[1]
SETTLED_S, SETTLE_MOST_S, MEASURED_S, REACTIONS = 10.0, 600.0, 60.0, 5
AT_ONCE = 50  # topics that are made, consumers that begin


def settings_of(bootstrap: str, number: int) -> Settings:
    """Return a group's settings."""
    return load_settings(
        group=f"group-{number:04}",
        topics=[f"topic-{number:04}"],
        kafka={"bootstrap_servers": bootstrap, "request_timeout_s": 60.0},
        controller={
            "fleet": "fixed",
            "max_slots": CONSUMERS + 1,
            "limit_bytes_per_s": LIMIT,
        },
        monitor={"topic": METRICS},
    )


async def control(bootstrap: str, groups: int) -> None:
    """Rule all groups, for ever."""
    base = settings_of(bootstrap, 0).kafka
    async with (
        KafkaControlTopics(base, fetch_wait_ms=GATHER_MS) as bus,
        run_measurements(bus, METRICS) as measurements,
        asyncio.TaskGroup() as leaderships,
    ):
        for number in range(groups):
            ruled = group_context(settings_of(bootstrap, number))
            leadership = Leadership(bus, FixedFleet(CONSUMERS + 1), ruled, measurements).lead()
            leaderships.create_task(must_not_end(leadership))


class FakeGroups:
    """The monitor and the consumers of all groups."""

    def __init__(self, bus: KafkaControlTopics, groups: int) -> None:
        self._bus, self._groups = bus, groups
        self.rates = [[RATE] * PARTITIONS for _ in range(groups)]
        self.consumers: list[FakeConsumer] = []
        self.begun = asyncio.Event()

    async def prepare(self) -> None:
        """Make the topics: neither their making nor their growth is what is measured."""
        await self._bus.ensure(METRICS, 1, METRICS_CONFIG)
        for first in range(0, self._groups, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, self._groups))
            await asyncio.gather(*(self._topics(f"group-{n:04}") for n in numbers))

    async def _topics(self, group: str) -> None:
        await self._bus.ensure(f"{group}.metadata", 1, METADATA_CONFIG)
        await self._bus.ensure(f"{group}.commands", CONSUMERS + 1, COMMANDS_CONFIG)
        await self._bus.ensure(f"{group}.landing", LANDING_PARTITIONS, LANDING_CONFIG)

    async def run(self) -> None:
        """Begin; then measure and report each second, spread over it, and obey."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(must_not_end(self._each_second()))
            await self._begin(tasks)

    async def _begin(self, tasks: asyncio.TaskGroup) -> None:
        for first in range(0, self._groups, AT_ONCE):
            fresh = [
                FakeConsumer(self._bus, f"group-{n:04}", Slot(slot))
                for n in range(first, min(first + AT_ONCE, self._groups))
                for slot in range(CONSUMERS)
            ]
            await asyncio.gather(*(consumer.begin() for consumer in fresh))
            self.consumers += fresh
            for consumer in fresh:
                tasks.create_task(must_not_end(consumer.handle_commands()))
        self.begun.set()

    async def _each_second(self) -> None:
        loop, number = asyncio.get_running_loop(), 0
        share = max(1, self._groups // 20)
        while True:
            began, number = loop.time(), number + 1
            begun = len(self.consumers) // CONSUMERS
            for first in range(0, self._groups, share):
                numbers = range(first, min(first + share, begun))
                await asyncio.gather(*(self._second(n, number) for n in numbers))
                due = began + (first + share) / self._groups
                await asyncio.sleep(max(0.0, due - loop.time()))

    async def _second(self, group: int, number: int) -> None:
        sent = measurement(f"topic-{group:04}", number, self.rates[group])
        own = self.consumers[group * CONSUMERS : (group + 1) * CONSUMERS]
        await asyncio.gather(
            publish_message(self._bus, METRICS, 0, sent), *(each.report() for each in own)
        )

    def settled(self) -> int:
        """Return how many groups read all their partitions."""
        reading = (
            sum(len(c.reading) for c in self.consumers[n * CONSUMERS : (n + 1) * CONSUMERS])
            for n in range(self._groups)
        )
        return sum(count == PARTITIONS for count in reading)


async def reaction(bus: KafkaControlTopics, played: FakeGroups, group: int) -> float:
    """Overload one group; return the seconds until its plan stands."""
    topic = f"group-{group:04}.metadata"
    reader = await bus.reader(
        topic, CONTROLLER_PARTITION, await bus.end(topic, CONTROLLER_PARTITION)
    )
    try:
        began = time.monotonic()
        played.rates[group] = [2 * RATE] * PARTITIONS
        async with asyncio.timeout(60):
            async for _, message in messages(reader, decode_inbound):
                if isinstance(message, Planned):
                    return time.monotonic() - began
    finally:
        played.rates[group] = [RATE] * PARTITIONS
        await reader.close()
    raise AssertionError("inbound ends only by an error")


async def bench(groups: int, directory: Path) -> dict[str, Any]:
    """Return the figures for so many groups."""
    async with run_broker(directory / "broker", settings=BROKER, heap="2g") as broker:
        bootstrap = broker.bootstrap_servers
        async with KafkaControlTopics(
            settings_of(bootstrap, 0).kafka, fetch_wait_ms=PLAYED_GATHER_MS
        ) as bus:
            played = FakeGroups(bus, groups)
            await played.prepare()
            async with background_tasks(must_not_end(played.run())):
                await played.begun.wait()
                return await measured(bus, played, groups, bootstrap, directory)


async def measured(
    bus: KafkaControlTopics, played: FakeGroups, groups: int, servers: str, directory: Path
) -> dict[str, Any]:
    """Start the controller, and return its figures."""
    child = Child(
        Command(
            title="the controller",
            argv=(sys.executable, "-m", __spec__.name, "--rule", servers, str(groups)),
            directory=directory,
            log=directory / "controller.log",
            environment=clean_environment({"PYTHONPATH": str(ROOT)}),
        )
    )
    began = time.monotonic()
    try:
        async with asyncio.timeout(SETTLE_MOST_S):
            while played.settled() < groups:
                if child.returncode is not None:
                    raise SystemExit(f"the controller ended: {child.tail()}")
                await asyncio.sleep(0.5)
        settled_s = time.monotonic() - began
        await asyncio.sleep(SETTLED_S)
        process = psutil.Process(child.pid)
        before, at = process.cpu_times(), time.monotonic()
        reports = sum(c.reports for c in played.consumers)
        await asyncio.sleep(MEASURED_S)
        after, passed = process.cpu_times(), time.monotonic() - at
        reports = sum(c.reports for c in played.consumers) - reports
        memory = process.memory_info().rss
        chosen = [n * groups // REACTIONS for n in range(REACTIONS)]
        reactions = [await reaction(bus, played, n) for n in chosen]
    finally:
        await child.kill()
    spent = (after.user + after.system) - (before.user + before.system)
    return {
        "groups": groups,
        "core": spent / passed,
        "MB": memory / 1e6,
        "reports/s": reports / passed,
        "all read after s": settled_s,
        "reaction s, median": statistics.median(reactions),
        "reaction s, longest": max(reactions),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, nargs="*", default=[100, 1_000])
    parser.add_argument("--rule", nargs=2, metavar=("BOOTSTRAP", "GROUPS"), help=argparse.SUPPRESS)
    parser.add_argument("--keep", type=Path, help="for data and logs; else a temporary directory")
    figures.add_option(parser)
    chosen = parser.parse_args(arguments)
    if chosen.rule:
        bootstrap, groups = chosen.rule
        return serve(lambda _: control(bootstrap, int(groups)), ProgramSettings)
    configure_logging("warning", "console")
    rows = []
    for groups in chosen.groups:
        with tempfile.TemporaryDirectory(prefix="binwright-bench-") as directory:
            place = (chosen.keep or Path(directory)) / str(groups)
            place.mkdir(parents=True)
            rows.append(asyncio.run(bench(groups, place)))
        sys.stderr.write(f"{rows[-1]}\n")
    figures.progress("groups", rows, chosen.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
