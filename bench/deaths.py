"""`make bench NAME=deaths`: from `kill -9` of a consumer until another one reads on.

Four consumers, 16 partitions, 25 records/s each, a process fleet, two controllers; Spark is away,
so nothing lands. The consumer that has lived longest is killed; when all four read again, the next
one. Then the controller that leads is killed together with a consumer. Times are the longest of the
consumer's partitions. A line for each on standard error, JSON on standard output.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from tests.chaos.system import led_since

from bench import figures
from bench.handover.binwright_group import HOOKS, ROOT, settings
from bench.handover.marks import read_marks
from bench.handover.scenario import MEMBERS, PARTITIONS, BenchTopic, until
from binwright.fleets.process import process_fleet
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.kafka import run_broker
from binwright.local.server import HOST, reserve_port
from binwright.local.stack import Service
from binwright.look.follower import watch_group
from binwright.look.group_view import GroupView, percentile
from binwright.protocol.model import Slot
from binwright.runtime.logs import configure_logging
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.runtime.settings.loading import settings_environment

ALL_READ_S, DEATH_S, SETTLED_S = 120.0, 30.0, 2.0


@dataclass
class Site:
    """A group that reads, and how to harm it."""

    chosen: Settings
    topic: str
    directory: Path
    controllers: tuple[Service, ...]
    view: GroupView

    async def all_read(self) -> None:
        """Return when four consumers have read everything for a while."""
        began = time.monotonic()
        while time.monotonic() - began < SETTLED_S:
            await asyncio.sleep(0.1)
            if not self._all_read():
                await until(self._all_read, ALL_READ_S, f"{MEMBERS} consumers read everything")
                began = time.monotonic()

    def _all_read(self) -> bool:
        running = process_fleet(self.chosen).running()
        held = {slot: r.reading for slot, r in self.view.reports.items() if r.reading}
        read_now = [p for reading in held.values() for p, at in reading.items() if at is not None]
        alive = len(running) == MEMBERS and running.keys() == held.keys()
        return alive and len(read_now) == len(set(read_now)) == PARTITIONS

    async def kill(self, *, leader: bool) -> float:
        """Kill a consumer, and the leader with it; return when all of it is read by others, s."""
        (victim,) = min(process_fleet(self.chosen).running().items(), key=_born)[1]
        slot = _slot(victim)
        owned = {p.partition for p in self.view.reports[slot].reading}
        if leader:
            os.kill(self._leader(), signal.SIGKILL)
        victim.kill()
        killed = time.monotonic()
        first: dict[int, float] = {}

        def read_by_others() -> bool:
            for mark in read_marks(self.directory):
                if mark.at > killed and mark.reader != victim.pid and mark.partition in owned:
                    first.setdefault(mark.partition, mark.at)
            return first.keys() == owned

        await until(read_by_others, DEATH_S, f"other consumers read {sorted(owned)}")
        return max(first.values()) - killed

    def _leader(self) -> int:
        logs = [self.directory / f"controller-{n}" / "controller.log" for n in range(2)]
        pid = self.controllers[max(range(2), key=lambda n: led_since(logs[n]))].pid
        assert pid is not None
        return pid


def _born(running: tuple[Slot, list[psutil.Process]]) -> float:
    return min(float(process.create_time()) for process in running[1])


def _slot(process: psutil.Process) -> Slot:
    command = process.cmdline()
    return Slot(int(command[command.index("--slot") + 1]))


@contextlib.asynccontextmanager
async def site(ground: BenchTopic, directory: Path) -> AsyncIterator[Site]:
    """Run monitor, two controllers and their consumers; end all of them."""
    os.environ["HANDOVER_MARKS"] = str(directory)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(HOOKS), str(ROOT), os.environ.get("PYTHONPATH", "")]
    )
    with reserve_port() as unused:
        chosen = settings(ground, f"sc://{HOST}:{unused}", directory)
    chosen = chosen.model_copy(update={"log_format": "json"})
    environment = {**os.environ, **settings_environment(chosen)}
    controllers = tuple(
        Service("controller", directory / f"controller-{n}", environment) for n in range(2)
    )
    view = GroupView()
    async with KafkaControlTopics(chosen.kafka) as bus:
        for topic, config in (
            (chosen.metadata_topic, METADATA_CONFIG),
            (chosen.monitor.topic, METRICS_CONFIG),
        ):
            await bus.ensure(topic, 1, config)
        await bus.ensure(ground.topic, PARTITIONS, {})
        watching = watch_group(bus, chosen.metadata_topic, chosen.monitor.topic, view)
        monitor = Service("monitor", directory / "monitor", environment)
        works = (watching, *(service.run() for service in (monitor, *controllers)))
        try:
            async with background_tasks(*works):
                yield Site(chosen, ground.topic, directory, controllers, view)
        finally:
            fleet = process_fleet(chosen)
            fleet.grace_s = 15.0
            await fleet.close()


async def measure(directory: Path, kills: int, both: int) -> dict[str, Any]:
    """Return how long each death lasted, s."""
    found: dict[str, list[float]] = {"consumer": [], "consumer_and_leader": []}
    async with run_broker(directory / "kafka") as broker:
        ground = BenchTopic(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), "orders")
        place = directory / "site"
        place.mkdir()
        async with site(ground, place) as made, ground.load(risen=False):
            for kind, times in (("consumer", kills), ("consumer_and_leader", both)):
                for _ in range(times):
                    await made.all_read()
                    found[kind].append(await made.kill(leader=kind != "consumer"))
                    sys.stderr.write(f"{kind}: {found[kind][-1]:.2f} s\n")
    return {kind: summary(times) for kind, times in found.items()}


def summary(times: list[float]) -> dict[str, Any]:
    """Return the figures of one kind of death."""
    shares = {f"p{q}": percentile(times, q / 100) for q in (50, 99)}
    return {"times": len(times), **shares, "all_s": [round(each, 3) for each in times]}


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="make bench NAME=deaths", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--with-leader", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="an empty directory for logs and marks")
    figures.add_option(parser)
    wanted = parser.parse_args()
    configure_logging("warning", "console")
    with tempfile.TemporaryDirectory(prefix="binwright-deaths-") as name:
        directory = wanted.keep or Path(name)
        found = asyncio.run(measure(directory, wanted.kills, wanted.with_leader))
    figures.progress("deaths", {"cores": os.cpu_count(), **found}, wanted.figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
