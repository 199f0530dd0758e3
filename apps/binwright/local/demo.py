"""`binwright demo`: the whole system end to end on this machine, with an audit at the end."""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from binwright.cli.options import Json
from binwright.cli.runner import (
    ProgressConsole,
    progress_console,
    run_for_result,
    working_directory,
)
from binwright.cli.terminal import print_json
from binwright.inspect.audit import audit
from binwright.inspect.row_ages import freshness
from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.attach import Panel
from binwright.local.stack import Servers, Stack, servers, services, warm_up
from binwright.local.summary import DemoResult, explain, next_steps, show
from binwright.look.commands import live_page
from binwright.look.group_view import GroupView
from binwright.look.status import status
from binwright.protocol.errors import ExternalError
from binwright.protocol.model import TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.run import EXIT_FAILED, EXIT_OK, background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.streams import streams
from binwright.streams.generated import demo_stream
from binwright.streams.load import LoadResult, run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.location import DEFAULT_ROW_S, RowSeconds, Stream, StreamLocation
from binwright.streams.stream_file import ROW_S
from binwright.streams.streams import CompactStream

READY_S = 240.0
LAND_S = 240.0
SAMPLE_S = 0.5
COLUMNS = "id BIGINT, ts BIGINT, customer STRING, amount DECIMAL(5,2), currency STRING"
"""Of one topic's records; those of the others land as bytes."""
ODD_VALUES = (b"no JSON", b'{"id": 1', b'{"id": "one"}', b'{"amount": 1.234}', b"[]")
"""Written to that topic on purpose: each is a bad record."""
CHAOS_CONSUMER, CHAOS_CONTROLLER = 0.4, 0.6  # of the load's duration


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """The options of a demo."""

    stream: str | None = None  # a file, - or delta://PATH; None: that of the package
    row_s: float = ROW_S  # a row's length at speed 1
    spark: str | None = None  # reads a stream's table; None: one is embedded for that
    minutes: float = 3.0
    speed: float = 2.5
    capacity: float = 500_000.0  # bytes/s of a consumer; a stream's 100 per cent
    chaos: bool = False
    record_bytes: int = 1_000


@dataclass(slots=True)
class Demo:
    """A demo that runs."""

    options: DemoOptions
    console: ProgressConsole
    directory: Path
    began: float = field(default_factory=time.monotonic)
    view: GroupView = field(default_factory=GroupView)
    counts: list[int] = field(default_factory=list)  # ready consumers, sampled
    faults: list[str] = field(default_factory=list)
    warm: asyncio.Event = field(default_factory=asyncio.Event)
    phase: str = "setting up"
    ready_s: float = 0.0
    landing_s: float = 0.0
    commits: dict[str, float] = field(default_factory=dict)  # a minute, of each table

    async def run(self) -> DemoResult:
        """Set up, run the load, land it, audit; all processes are ended, also when cancelled.

        Raises:
            UserError: The stream cannot be read.
            ExternalError: A process does not start, or a deadline passes.
        """
        stream = await self._stream()
        partitions = stream.partitions
        async with servers(self.directory, self._log_phase) as running:
            settings = self._settings(running, partitions)
            async with KafkaControlTopics(settings.kafka) as bus:
                await self._make_topics(bus, settings, partitions)
                async with services(settings, self.directory) as stack:
                    panel = Panel(
                        self.console,
                        settings,
                        self.directory,
                        self.view,
                        lambda: f"binwright demo · {self.phase}",
                    )
                    async with background_tasks(
                        panel.run(bus),
                        self._sample(),
                        self._warm_up(settings),
                        stack.wait_for_failure(),
                    ):
                        await self._get_ready(partitions)
                        result = await self._run_load(stream, settings, stack, bus, partitions)
                    self._log_phase("ending the services")
            self._log_phase("auditing the tables")
            return DemoResult(
                ready_s=self.ready_s,
                landing_s=self.landing_s,
                load_result=result,
                view=self.view,
                counts=tuple(self.counts),
                faults=tuple(self.faults),
                audit=await audit(settings.topics, settings.kafka, settings.lake),
                ages=await freshness(settings.topics, settings.lake),
                commits_per_min=self.commits,
                odd=len(ODD_VALUES),
            )

    async def _stream(self) -> CompactStream:
        if self.options.stream is None:
            return CompactStream(demo_stream())
        with tempfile.TemporaryDirectory(dir=self.directory) as copies:
            location = StreamLocation(
                self.console, Path(copies), self.options.stream, self.options.spark
            )
            return (await location.read(self.options.row_s)).rows

    def _log_phase(self, phase: str) -> None:
        self.phase = phase
        self.console.log(phase)

    def _settings(self, running: Servers, partitions: list[TopicPartition]) -> Settings:
        capacity = self.options.capacity
        topics = tuple(sorted({p.topic for p in partitions}))
        return load_settings(
            group="demo",
            topics=topics,
            tables=[{"topics": topics[-1:], "format": "json", "columns": COLUMNS}],
            kafka={"bootstrap_servers": running.bootstrap_servers},
            lake={
                "path": str(self.directory / "lake"),
                "spark": running.spark,
                "token_file": running.token_file,
            },
            # A row of the stream lasts seconds, not half a minute: the window is shorter, too.
            monitor={"window_s": 8.0},
            controller={
                "capacity_bytes_per_s": capacity,
                "limit_bytes_per_s": capacity * 1.2,
                "process_logs": self.directory,
                "max_slots": 32,
                "replan_interval_s": 15.0,
            },
        )

    @staticmethod
    async def _make_topics(
        bus: KafkaControlTopics, settings: Settings, partitions: list[TopicPartition]
    ) -> None:
        await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        for topic in settings.topics:
            wanted = 1 + max(p.partition for p in partitions if p.topic == topic)
            await bus.ensure(topic, wanted, {})

    # --- the load --------------------------------------------------------------------------------

    async def _run_load(
        self,
        stream: streams.Stream,
        settings: Settings,
        stack: Stack,
        bus: KafkaControlTopics,
        partitions: list[TopicPartition],
    ) -> LoadResult:
        minutes = self.options.minutes
        self._log_phase(f"ready after {self.ready_s:.1f} s; the load lasts {minutes:g} minutes")
        load = Pacing(
            row_s=self.options.row_s / self.options.speed,
            bytes_per_per_cent=self.options.capacity / 100,
            record_bytes=self.options.record_bytes,
            duration_s=60 * self.options.minutes,
        )
        before, began = self._commits(), time.monotonic()
        async with background_tasks(*([self._inject_faults(stack)] if self.options.chaos else [])):
            for value in ODD_VALUES:
                await bus.publish(settings.tables[0].topics[0], 0, b"odd", value)
            result = await run_load(stream, settings.kafka, load)
        minutes = (time.monotonic() - began) / 60
        self.commits = {t: (n - before.get(t, 0)) / minutes for t, n in self._commits().items()}
        began = time.monotonic()
        ends = {p: await bus.end(p.topic, p.partition) for p in partitions}
        self._log_phase("the load is over; waiting until everything has landed")
        await self._until(lambda: self._landed(ends), LAND_S, "everything has landed")
        self.landing_s = time.monotonic() - began
        return result

    async def _warm_up(self, settings: Settings) -> None:
        await warm_up(settings, self.directory)
        self.warm.set()

    async def _get_ready(self, partitions: list[TopicPartition]) -> None:
        """Wait until all is read and claimed, and Spark has learnt to commit."""
        self._log_phase("waiting for the first consumer to read every partition")
        ready = partial(self._ready, partitions)
        await self._until(ready, READY_S, "all partitions are read and all tables are claimed")
        if not self.warm.is_set():
            self._log_phase("waiting until Spark has warmed up on a throw-away table")
        await self.warm.wait()  # it has a deadline of its own
        self.ready_s = time.monotonic() - self.began

    def _ready(self, partitions: list[TopicPartition]) -> bool:
        reports = self.view.reports.values()
        read = {p for r in reports for p, offset in r.reading.items() if offset is not None}
        claimed = {t for r in reports for t, table in r.writing.items() if table.state == "landing"}
        return read >= set(partitions) and claimed >= {p.topic for p in partitions}

    def _commits(self) -> dict[str, int]:
        return {topic: view.report.commits for topic, view in self.view.tables.by_name.items()}

    def _landed(self, ends: dict[TopicPartition, int]) -> bool:
        return all(self.view.landed.get(p, 0) >= end for p, end in ends.items())

    async def _until(self, condition: Callable[[], bool], deadline_s: float, what: str) -> None:
        try:
            async with asyncio.timeout(deadline_s):
                while not condition():  # noqa: ASYNC110 - another task updates the view
                    await asyncio.sleep(0.1)
        except TimeoutError as exc:
            raise ExternalError(
                f"not within {deadline_s:g} s: {what}; "
                f"{live_page.line(status('demo', self.view, wall_ms()))}; logs: {self.directory}"
            ) from exc

    # --- in the background -----------------------------------------------------------------------

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_S)
            if self.ready_s:
                self.counts.append(sum(r.ready for r in self.view.reports.values()))

    async def _inject_faults(self, stack: Stack) -> None:
        duration_s = 60 * self.options.minutes
        await asyncio.sleep(CHAOS_CONSUMER * duration_s)
        self._kill(stack.consumer_pids()[0], "a consumer")
        await asyncio.sleep((CHAOS_CONTROLLER - CHAOS_CONSUMER) * duration_s)
        if stack.controller.pid is not None:
            self._kill(stack.controller.pid, "the controller")
        await asyncio.Event().wait()

    def _kill(self, pid: int, what: str) -> None:
        os.kill(pid, signal.SIGKILL)
        self.faults.append(f"kill -9 of {what}")
        self.console.log(f"[red]kill -9 of {what} (pid {pid})")


def command(
    *,
    minutes: Annotated[float, typer.Option(min=0.1, help="Length of the load, minutes.")] = 3.0,
    speed: Annotated[
        float, typer.Option(min=0.1, help="A row of the stream lasts 1/SPEED of its time.")
    ] = 2.5,
    stream: Stream = None,
    row_s: RowSeconds = DEFAULT_ROW_S,
    spark: Annotated[
        str | None,
        typer.Option(
            help="Spark Connect, sc://HOST:PORT, for --stream delta://PATH; else one is embedded."
        ),
    ] = None,
    capacity: Annotated[
        float,
        typer.Option(min=1.0, help="Bytes/s of one consumer; the load is in per cent of it."),
    ] = 500_000.0,
    chaos: Annotated[
        bool, typer.Option(help="kill -9 a consumer, and later the controller.")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="Keep tables and logs in this directory.")
    ] = None,
    json_: Json = False,
) -> None:
    """Run a recorded load through the whole system on this machine, and audit the tables."""
    console = progress_console(json_=json_)
    options = DemoOptions(
        stream=stream,
        row_s=row_s,
        spark=spark,
        minutes=minutes,
        speed=speed,
        capacity=capacity,
        chaos=chaos,
    )
    with working_directory(keep) as directory:
        result = run_for_result(Demo(options, console, directory).run)
    if json_:
        print_json(result.to_json())
    else:
        console.print(show(result), "", explain(result), "", sep="\n")
        console.copyable(next_steps(keep, result))
    raise typer.Exit(EXIT_OK if result.clean else EXIT_FAILED)
