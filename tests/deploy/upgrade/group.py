"""A group whose services are each of a version, under load, and what of it has landed."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from deltalake import DeltaTable
from tests.deploy.upgrade.versions import Version

from binwright.inspect.audit import AuditResult, audit
from binwright.kafka.control_records import CONTROLLER_PARTITION, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.child import Child, Command
from binwright.local.server import HOST, reserve_port
from binwright.look.follower import read_group
from binwright.look.status import status
from binwright.look.table_status import TableStatus
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.group import Settings, load_settings
from binwright.runtime.settings.programs import FILE_VARIABLE
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

PARTITIONS = 4
SLOTS = 2
CONSUMERS = tuple(f"consumer-{slot}" for slot in range(SLOTS))
ORDER = ("monitor", "controller", *CONSUMERS)
"""In which an operator replaces services, one by one."""
DRAIN_S, END_S, RESTART_S = 15.0, 30.0, 1.0
STEP_S = 600.0
BYTES_PER_S = 5_000  # of each partition
LOAD_S = 3_600.0  # at most


@dataclass(slots=True)
class Service:
    """A process that is started again whenever it ends, as by an orchestrator."""

    name: str
    arguments: tuple[str, ...]
    port: int  # of its probes
    directory: Path
    settings: Path
    _child: Child | None = None
    _running: "asyncio.Task[None] | None" = None

    async def replace(self, version: Version) -> None:
        """End the process, start one of this version, and wait until that is ready."""
        await self.stop()
        self._running = asyncio.create_task(self._run(version))
        await until(f"{self.name} of {version.name} is ready", self._is_ready)

    async def stop(self) -> None:
        """End the process; it hands over what it has."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
            self._running = None

    @property
    def log(self) -> Path:
        """The file with the output of all its processes."""
        return self.directory / f"{self.name}.log"

    async def _run(self, version: Version) -> None:
        passed = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "BINWRIGHT_", "COV_"))
        }
        port = {"BINWRIGHT_HEALTH__PORT": str(self.port), FILE_VARIABLE: str(self.settings)}
        command = Command(
            title=self.name,
            argv=(str(version.python), "-m", *self.arguments),
            directory=self.directory,
            log=self.log,
            environment={**passed, **port},
        )
        while True:
            self._child = Child(command)
            try:
                await self._child.wait()
            except asyncio.CancelledError:
                await asyncio.shield(self._child.stop(grace_s=END_S))
                raise
            await asyncio.sleep(RESTART_S)

    async def _is_ready(self) -> bool:
        assert self._running is not None
        if self._running.done():
            self._running.result()
        url = f"http://{HOST}:{self.port}/ready"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as reply:
                return reply.status == 200
        except aiohttp.ClientError:
            return False


@dataclass(slots=True)
class RollingGroup:
    """A group of a monitor, a controller and two consumers, and a load on its topic."""

    settings: Settings  # as the services have them
    bus: KafkaControlTopics
    services: dict[str, Service]
    stop_load: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def topic(self) -> str:
        """The topic that it lands."""
        return self.settings.topics[0]

    async def roll(self, version: Version, names: Sequence[str] = ORDER) -> None:
        """Replace these services one by one; after each, all that is written by then lands."""
        for name in names:
            await self.services[name].replace(version)
            await self.lands()

    async def start(self, version: Version) -> None:
        """Start all services at once, and wait until records land."""
        await asyncio.gather(*(each.replace(version) for each in self.services.values()))
        await self.lands()

    async def stop(self, names: Sequence[str] = ORDER) -> None:
        """End services."""
        await asyncio.gather(*(self.services[name].stop() for name in names))

    async def lands(self) -> None:
        """Wait until the table has all that is in the topic now."""
        written = sum([await self.bus.end(self.topic, number) for number in range(PARTITIONS)])

        async def landed() -> bool:
            return await asyncio.to_thread(self.rows) >= written

        await until(f"{written} records have landed", landed)

    def rows(self) -> int:
        """Return the table's number of rows."""
        path = Path(self.settings.lake.path) / self.topic
        if not any((path / "_delta_log").glob("*.json")):
            return 0
        return int(DeltaTable(str(path)).to_pyarrow_dataset().count_rows())

    async def versions(self) -> dict[int, str]:
        """Return the version that each slot's last process reported when it started."""
        topic, found = self.settings.metadata_topic, dict[int, str]()
        end = await self.bus.end(topic, CONTROLLER_PARTITION)
        reader = await self.bus.reader(topic, CONTROLLER_PARTITION, 0)
        while reader.position < end:
            for record in await reader.read(1.0):
                if (record.key or b"").startswith(b"hello/"):
                    hello = orjson.loads(record.value or b"{}")
                    found[hello["slot"]] = hello["version"]
        await reader.close()
        return found

    async def table(self) -> TableStatus | None:
        """Return the table as its writer reports it."""
        view = await read_group(self.bus, self.settings.group)
        return next(iter(status(self.settings.group, view, wall_ms()).tables), None)

    async def audit(self) -> AuditResult:
        """End the load, wait until all of it has landed, and compare the table with the topic."""
        self.stop_load.set()
        await self.lands()
        return await audit([self.topic], self.settings.kafka, self.settings.lake)

    def longest_pause_s(self) -> float:
        """Return the longest time between two commits to the table."""
        log = Path(self.settings.lake.path) / self.topic / "_delta_log"
        commits = (json.loads(line) for f in log.glob("*.json") for line in f.open())
        moments = sorted(c["commitInfo"]["timestamp"] for c in commits if "commitInfo" in c)
        return max((after - before for before, after in pairwise(moments)), default=0) / 1000


async def until(what: str, holds: Callable[[], Awaitable[bool]], limit_s: float = STEP_S) -> None:
    """Ask again and again until it holds; fail by its name after `limit_s` seconds."""
    try:
        async with asyncio.timeout(limit_s):
            while not await holds():  # noqa: ASYNC110 - other processes work
                await asyncio.sleep(0.3)
    except TimeoutError as exc:
        raise AssertionError(f"not within {limit_s:g} s: {what}") from exc


@asynccontextmanager
async def rolling_group(
    group_name: str, directory: Path, bootstrap_servers: str, spark: str, columns: str = ""
) -> AsyncIterator[RollingGroup]:
    """Run a load on a group's topic; the services are to be started, and end with it.

    With `columns` its values are decoded into these.
    """
    async with AsyncExitStack() as stack:
        values: dict[str, Any] = {
            "group": group_name,
            "topics": [f"{group_name}-orders"],
            "kafka": {"bootstrap_servers": bootstrap_servers},
            "lake": {"path": str(directory / "lake"), "spark": spark, "freshness_s": 1.0},
            "monitor": {"topic": f"{group_name}.metrics", "interval_s": 1.0, "window_s": 5.0},
            "consumer": {"drain_timeout_s": DRAIN_S},
            "controller": {
                "fleet": "fixed",
                "max_slots": SLOTS,
                "min_slots": SLOTS,
                "limit_bytes_per_s": 1e6,
                "consumer_timeout_s": 60.0,  # a busy machine is no death
            },
        }
        if columns:
            entry = {"topics": values["topics"], "format": "json", "columns": columns}
            values["tables"] = [entry]
        file = directory / "binwright.toml"
        file.write_text(toml(values))
        settings = load_settings(**values)
        bus = await stack.enter_async_context(KafkaControlTopics(settings.kafka))
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        await bus.ensure(settings.topics[0], PARTITIONS, {})
        arguments: dict[str, tuple[str, ...]] = {
            name: (f"binwright.{name}",) for name in ("monitor", "controller")
        }
        arguments |= {
            name: ("binwright.consumer", "--slot", str(slot)) for slot, name in enumerate(CONSUMERS)
        }
        services: dict[str, Service] = {}
        for name in ORDER:
            with reserve_port() as port:
                place = directory / "logs"
                services[name] = Service(name, arguments[name], port, place, file)
        group = RollingGroup(settings, bus, services)
        load = asyncio.create_task(
            run_load(
                [
                    {
                        TopicPartition(group.topic, number): PerCent(1.0)
                        for number in range(PARTITIONS)
                    }
                ],
                settings.kafka,
                Pacing(
                    row_s=LOAD_S, bytes_per_per_cent=BYTES_PER_S, record_bytes=500, delivery_s=120.0
                ),
                stop=group.stop_load,
            )
        )
        try:
            yield group
        finally:
            group.stop_load.set()
            await group.stop()
            await load


def toml(values: dict[str, Any]) -> str:
    """Return settings as a file: names and tables of names."""
    entries = values.get("tables", [])
    tables = {name: v for name, v in values.items() if isinstance(v, dict)}
    plain = {name: v for name, v in values.items() if name not in tables and name != "tables"}
    lines = [f"{name} = {json.dumps(v)}" for name, v in plain.items()]
    lines += [f"[{name}]\n{toml(v)}" for name, v in tables.items()]
    lines += [f"[[tables]]\n{toml(entry)}" for entry in entries]
    return "\n".join([*lines, ""])
