"""`binwright demo`: the main job end to end on this machine, with an audit at its end."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console

from binwright.cli import screen
from binwright.cli.stack import Servers, Stack, servers, services
from binwright.cli.summary import Outcome
from binwright.core.errors import WorldError
from binwright.core.model import TopicPartition
from binwright.lab import streams
from binwright.lab.audit import audit
from binwright.lab.freshness import freshness
from binwright.lab.load import Played, play
from binwright.lab.pacing import Load
from binwright.lab.picture import Picture
from binwright.lab.spectator import spectate
from binwright.shell.bus import KafkaBus
from binwright.shell.letters import METADATA_CONFIG, METRICS_CONFIG
from binwright.shell.run import meanwhile
from binwright.shell.settings import Settings, load_settings

ROW_S = 30.0  # a measurement's length at speed 1, as the paper recorded
READY_S = 240.0
LAND_S = 240.0
SAMPLE_S = 0.5
CHAOS_CONSUMER, CHAOS_CONTROLLER = 0.4, 0.6  # of the load's length


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What a person asked for."""

    stream: Path | None = None  # None: our own
    minutes: float = 3.0
    speed: float = 2.5
    capacity: float = 500_000.0  # bytes/s of a consumer; a stream's 100 per cent
    chaos: bool = False
    record_bytes: int = 1_000


@dataclass(slots=True)
class Demo:
    """One demo at work."""

    wishes: Wishes
    console: Console
    directory: Path
    began: float = field(default_factory=time.monotonic)
    picture: Picture = field(default_factory=Picture)
    counts: list[int] = field(default_factory=list)  # ready consumers, sampled
    faults: list[str] = field(default_factory=list)
    phase: str = "setting up"
    ready_s: float = 0.0
    landing_s: float = 0.0
    commits: dict[str, float] = field(default_factory=dict)  # a minute, of each table

    async def run(self) -> Outcome:
        """Set up, play, land, audit; everything is taken down again, also when cancelled.

        Raises:
            UserError: The stream cannot be read.
            WorldError: A part could not be had, or did not keep up within the deadlines.
        """
        stream = streams.read(self.wishes.stream) if self.wishes.stream else streams.demo()
        partitions = sorted({partition for row in stream for partition in row})
        async with servers(self.directory, self._say) as found:
            settings = self._settings(found, partitions)
            async with KafkaBus(settings.kafka) as bus:
                await self._make_topics(bus, settings, partitions)
                async with services(settings, self.directory) as stack:
                    watching = spectate(
                        bus, settings.metadata_topic, settings.monitor.topic, self.picture
                    )
                    page = screen.show(
                        self.console,
                        self.picture,
                        settings.controller.limit_bytes_per_s,
                        lambda: f"binwright demo · {self.phase}",
                    )
                    async with meanwhile(watching, page, self._sample(), stack.trouble()):
                        played = await self._drive(stream, settings, stack, bus, partitions)
                    self._say("ending the services")
            self._say("auditing the tables")
            return Outcome(
                ready_s=self.ready_s,
                landing_s=self.landing_s,
                played=played,
                picture=self.picture,
                counts=tuple(self.counts),
                faults=tuple(self.faults),
                audit=await audit(settings.topics, settings.kafka, settings.lake),
                ages=await freshness(settings.topics, settings.lake),
                commits_per_min=self.commits,
            )

    def _say(self, words: str) -> None:
        self.phase = words
        self.console.log(words)

    def _settings(self, found: Servers, partitions: list[TopicPartition]) -> Settings:
        capacity = self.wishes.capacity
        return load_settings(
            group="demo",
            topics=tuple(sorted({p.topic for p in partitions})),
            kafka={"bootstrap_servers": found.bootstrap_servers},
            lake={"path": str(self.directory / "lake"), "spark": found.spark},
            # Rows are shorter than in production, so that something happens: the window too.
            monitor={"window_s": 8.0},
            controller={
                "capacity_bytes_per_s": capacity,
                "limit_bytes_per_s": capacity * 1.2,
                "process_logs": self.directory,
                "max_slots": 32,
                "look_again_s": 15.0,
            },
        )

    @staticmethod
    async def _make_topics(
        bus: KafkaBus, settings: Settings, partitions: list[TopicPartition]
    ) -> None:
        await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        for topic in settings.topics:
            wanted = 1 + max(p.partition for p in partitions if p.topic == topic)
            await bus.ensure(topic, wanted, {})

    # --- the course of things --------------------------------------------------------------------

    async def _drive(
        self,
        stream: streams.Stream,
        settings: Settings,
        stack: Stack,
        bus: KafkaBus,
        partitions: list[TopicPartition],
    ) -> Played:
        self._say("waiting for the first consumer to read every partition")
        ready = partial(self._ready, partitions)
        await self._until(ready, READY_S, "all partitions are read and all tables are claimed")
        self.ready_s = time.monotonic() - self.began
        self._say(f"ready after {self.ready_s:.1f} s; playing {self.wishes.minutes:g} minutes")
        load = Load(
            row_s=ROW_S / self.wishes.speed,
            bytes_per_per_cent=self.wishes.capacity / 100,
            record_bytes=self.wishes.record_bytes,
            duration_s=60 * self.wishes.minutes,
        )
        before, began = self._commits(), time.monotonic()
        async with meanwhile(*([self._disturb(stack)] if self.wishes.chaos else [])):
            played = await play(stream, settings.kafka, load)
        minutes = (time.monotonic() - began) / 60
        self.commits = {t: (n - before.get(t, 0)) / minutes for t, n in self._commits().items()}
        began = time.monotonic()
        ends = {p: await bus.end(p.topic, p.partition) for p in partitions}
        self._say("the load is over; waiting until everything has landed")
        await self._until(lambda: self._landed(ends), LAND_S, "everything has landed")
        self.landing_s = time.monotonic() - began
        return played

    def _ready(self, partitions: list[TopicPartition]) -> bool:
        reports = self.picture.reports.values()
        read = {p for r in reports for p, offset in r.reading.items() if offset is not None}
        claimed = {t for r in reports for t, table in r.writing.items() if table.state == "landing"}
        return read >= set(partitions) and claimed >= {p.topic for p in partitions}

    def _commits(self) -> dict[str, int]:
        return {topic: view.commits for topic, view in self.picture.tables.by_topic.items()}

    def _landed(self, ends: dict[TopicPartition, int]) -> bool:
        return all(self.picture.landed.get(p, 0) >= end for p, end in ends.items())

    async def _until(self, condition: Callable[[], bool], deadline_s: float, what: str) -> None:
        try:
            async with asyncio.timeout(deadline_s):
                while not condition():  # noqa: ASYNC110 - the picture changes by itself
                    await asyncio.sleep(0.1)
        except TimeoutError as exc:
            raise WorldError(
                f"after {deadline_s:g} s it is not so that {what}; "
                f"{screen.line(self.picture)}; logs: {self.directory}"
            ) from exc

    # --- beside it -------------------------------------------------------------------------------

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_S)
            if self.ready_s:
                self.counts.append(sum(r.ready for r in self.picture.reports.values()))

    async def _disturb(self, stack: Stack) -> None:
        length_s = 60 * self.wishes.minutes
        await asyncio.sleep(CHAOS_CONSUMER * length_s)
        self._kill(stack.consumer_pids()[0], "a consumer")
        await asyncio.sleep((CHAOS_CONTROLLER - CHAOS_CONSUMER) * length_s)
        if stack.controller.pid is not None:
            self._kill(stack.controller.pid, "the controller")
        await asyncio.Event().wait()

    def _kill(self, pid: int, what: str) -> None:
        os.kill(pid, signal.SIGKILL)
        self.faults.append(f"kill -9 of {what}")
        self.console.log(f"[red]kill -9 of {what} (pid {pid})")
