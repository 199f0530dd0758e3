"""`binwright record` and `binwright replay`: the metrics topic kept, and said again."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

from rich.console import Console

from binwright.cli.stack import servers
from binwright.core.errors import SettingsError, StreamError
from binwright.core.messages import Measurement
from binwright.core.model import BytesPerSecond
from binwright.lab import recording
from binwright.lab.recorder import FileKeeper, Keeper, TableKeeper, read_table, record
from binwright.lab.replay import replay
from binwright.lab.spark import LakeReader, lake_reader
from binwright.shell.bus import KafkaBus
from binwright.shell.letters import METRICS_PARTITION
from binwright.shell.settings import Settings

TABLE = "delta://"
FILE_PORTION_S = 1.0
TABLE_PORTION_S = 30.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where recordings are: a file, or `delta://PATH` through a Spark server (embedded if None)."""

    console: Console
    directory: Path
    name: str
    spark: str | None

    @property
    def table(self) -> str | None:
        """Return the table's path, as the Spark server sees it; None for a file."""
        if not self.name.startswith(TABLE):
            return None
        path = self.name.removeprefix(TABLE)
        if not path:
            raise SettingsError(f"{self.name}: name a directory or prefix after {TABLE}")
        return path if urlparse(path).scheme else str(Path(path).absolute())

    @asynccontextmanager
    async def lake(self) -> AsyncIterator[LakeReader]:
        """Connect to Spark; raise `LakeUnavailable` or `EmbeddedError`."""
        async with (
            servers(
                self.directory, self.console.log, bootstrap_servers="not needed", spark=self.spark
            ) as found,
            lake_reader(found.spark) as lake,
        ):
            yield lake

    async def read(self) -> recording.Recording:
        """Read the recording that is there; raise `StreamError` or `LakeUnavailable`."""
        if self.table is None:
            return recording.read(Path(self.name))
        async with self.lake() as lake:
            return await read_table(lake, self.table)


@dataclass(frozen=True, slots=True)
class Recorder:
    """What is recorded: the metrics topic of the settings, until cancelled or for `seconds`."""

    place: Place
    settings: Settings
    from_beginning: bool
    seconds: float | None

    async def run(self) -> None:
        """Record; raise `StreamError`, `LakeUnavailable`, `BrokerUnavailable`, `TopicMissing`."""
        topic = self.settings.monitor.topic
        capacity = BytesPerSecond(self.settings.controller.capacity)
        async with AsyncExitStack() as stack:
            bus = await stack.enter_async_context(KafkaBus(self.settings.kafka))
            first = 0 if self.from_beginning else await bus.end(topic, METRICS_PARTITION)
            keeper: Keeper
            if (table := self.place.table) is None:
                keeper, portion_s = FileKeeper(Path(self.place.name), capacity), FILE_PORTION_S
            else:
                lake = await stack.enter_async_context(self.place.lake())
                keeper, portion_s = TableKeeper(lake, table, capacity), TABLE_PORTION_S
            reader = await bus.reader(topic, METRICS_PARTITION, first)
            stack.push_async_callback(reader.close)
            self.place.console.log(f"recording {topic} to {self.place.name}")
            stop = asyncio.Event()
            task = asyncio.create_task(record(reader, keeper, portion_s, stop))
            try:
                await asyncio.wait([task], timeout=self.seconds)
            finally:
                stop.set()
                await asyncio.wait([task])  # the last portion is kept, also after Ctrl-C
                self.place.console.log(f"recorded {task.result()} measurements")


@dataclass(frozen=True, slots=True)
class Replayer:
    """What is said again, where, and how fast (infinite: without waiting)."""

    place: Place
    settings: Settings
    speed: float

    async def run(self) -> None:
        """Replay; raise `StreamError`, `LakeUnavailable` or `BrokerUnavailable`."""
        found = await self.place.read()
        if not found.measurements:
            raise StreamError(f"{self.place.name}: the recording holds no measurement")
        console, total = self.place.console, len(found.measurements)
        pace = "as fast as it goes" if math.isinf(self.speed) else f"{self.speed:g} times as fast"
        console.log(f"{total} measurements from {self.place.name}, {pace}")
        with console.status("replaying") as status:

            def told(said: Measurement) -> None:
                status.update(f"replaying: {said.number + 1} of {total}, {said.topic}")

            async with KafkaBus(self.settings.kafka) as bus:
                topic = self.settings.monitor.topic
                count = await replay(bus, topic, found.measurements, self.speed, told)
        console.log(f"said {count} measurements on {topic}")
