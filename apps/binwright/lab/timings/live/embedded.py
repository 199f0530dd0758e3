"""The embedded run: broker, Spark, monitor, controller and consumers, and what loads them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from rich.progress import Progress, TaskID

from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lab.commands.timings import Parts
from binwright.lab.timings.capacity import ReadCapacity
from binwright.lab.timings.live import changes as group_changes
from binwright.lab.timings.live import steps as step_test
from binwright.lab.timings.live.backlog import BacklogTest
from binwright.lab.timings.live.changes import ChangeTest
from binwright.lab.timings.live.history import HistoryRange
from binwright.lab.timings.live.steps import StepTest
from binwright.lab.timings.outcome import TimedParts
from binwright.lab.timings.published import CONDITIONS
from binwright.lab.timings.steps import RateStep
from binwright.local.stack import Servers, servers, services
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

LIMIT = BytesPerSecond(2_400_000.0)
"""Of a consumer, as published to the group; the records that it really reads are few."""
TRICKLE_BYTES_PER_S = 5_000
"""Real records of each partition, so that there is something to stop and to start."""
DAY_S = 86_400.0
WHOLE_CONFIG = {**METADATA_CONFIG, "min.compaction.lag.ms": str(round(1_000 * DAY_S))}
"""Of the metadata topic: no event of a run of half an hour is compacted away before it is read."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The parts that are run, in a directory of the servers' data, tables and logs."""

    directory: Path
    progress: Progress  # shows how far each part is
    parts: Parts

    async def run(self) -> TimedParts:
        """Run all parts; every process is ended, also when cancelled.

        Raises:
            ExternalError: A process does not start, or a deadline passes.
        """
        async with servers(self.directory, self.progress.console.log) as stack:
            timings = (
                await self._reactions(stack)
                if self.parts.events or self.parts.steps
                else TimedParts()
            )
            capacities = await self._capacities(stack) if self.parts.scale else []
        return replace(timings, capacities=capacities)

    # --- Δt1 to Δt4 ------------------------------------------------------------------------------

    async def _reactions(self, stack_servers: Servers) -> TimedParts:
        """Run the step test beside a group that changes: they share the broker, not the topics."""
        group, monitor = self._group(stack_servers), self._monitor(stack_servers)
        async with KafkaControlTopics(group.kafka) as bus:
            await bus.ensure(group.metadata_topic, 1, WHOLE_CONFIG)
            for metrics in (group.monitor.topic, monitor.monitor.topic):
                await bus.ensure(metrics, 1, METRICS_CONFIG)
            for topic in group.topics:
                await bus.ensure(topic, group_changes.PARTITIONS, {})
            await bus.ensure(step_test.TOPIC, max(1, self.parts.steps), {})
            async with (
                services(group, self.directory, monitor=monitor) as stack,
                background_tasks(stack.wait_for_failure()),
                asyncio.TaskGroup() as tasks,
            ):
                steps = tasks.create_task(self._steps(bus, monitor))
                changes = tasks.create_task(self._changes(bus, group))
        wanted = {1: self.parts.steps, **dict.fromkeys((2, 3, 4), self.parts.events)}
        return replace(changes.result(), steps=steps.result(), wanted=wanted)

    async def _steps(self, bus: KafkaControlTopics, monitor: Settings) -> list[RateStep]:
        if not self.parts.steps:
            return []
        task = self.progress.add_task("steps of a load", total=self.parts.steps)
        return await StepTest(
            bus, monitor, self.parts.steps, lambda done: self.progress.update(task, completed=done)
        ).run()

    async def _changes(self, bus: KafkaControlTopics, group: Settings) -> TimedParts:
        if not self.parts.events:
            return TimedParts()
        task = self.progress.add_task("changes of a group", total=self.parts.events)
        changes = ChangeTest(
            bus,
            group,
            self.parts.consumers,
            self.parts.seed,
            lambda done: self.progress.update(task, completed=min(done, self.parts.events)),
        )
        async with _trickle(group):
            begun_s = await changes.run(self.parts.events, self.parts.deadline_s)
        ended_s = wall_ms() / 1_000
        return await HistoryRange(group, begun_s, ended_s).timings(bus)

    def _group(self, stack: Servers) -> Settings:
        return load_settings(
            group="timings",
            topics=group_changes.TOPICS,
            kafka={"bootstrap_servers": stack.bootstrap_servers},
            lake={
                "path": str(self.directory / "lake"),
                "spark": stack.spark,
                "token_file": stack.token_file,
            },
            monitor={"topic": "timings.metrics", "groups": False},
            controller={
                "limit_bytes_per_s": LIMIT,
                "packing": self.parts.packing,
                "process_logs": self.directory,
                "replan_interval_s": group_changes.REPLAN_INTERVAL_S,
            },
        )

    def _monitor(self, stack: Servers) -> Settings:
        return load_settings(
            group="steps",
            topics=(step_test.TOPIC,),
            kafka={"bootstrap_servers": stack.bootstrap_servers},
            monitor={"groups": False, "window_s": self.parts.window_s},
        )

    # --- Table VI, Figure 13 ---------------------------------------------------------------------

    async def _capacities(self, stack: Servers) -> list[ReadCapacity]:
        capacities = []
        for condition in CONDITIONS:
            task = self.progress.add_task(f"a consumer's capacity, {condition.name}", total=1.0)
            backlog = BacklogTest(
                condition,
                self.parts.scale,
                stack,
                self.directory / condition.name.replace(" ", "-"),
                partial(self._show_share, task),
            )
            if (capacity := await backlog.run()) is None:
                self.progress.console.log(f"{condition.name}: too short for a rate, scale it up")
            else:
                capacities.append(capacity)
        return capacities

    def _show_share(self, task: TaskID, share: float) -> None:
        self.progress.update(task, completed=share)


@asynccontextmanager
async def _trickle(group: Settings) -> AsyncIterator[None]:
    """Write a few records to every partition of a group, beside the body."""
    row = {
        TopicPartition(topic, number): PerCent(100.0)
        for topic in group.topics
        for number in range(group_changes.PARTITIONS)
    }
    load = Pacing(row_s=DAY_S, bytes_per_per_cent=TRICKLE_BYTES_PER_S / 100)
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_loaded(row, group, load, stop))
        try:
            yield
        finally:
            stop.set()


async def _loaded(
    row: Mapping[TopicPartition, PerCent], group: Settings, load: Pacing, stop: asyncio.Event
) -> None:
    await run_load([row], group.kafka, load, stop=stop)
