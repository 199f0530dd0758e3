"""The demo's stream through the real thing, and what the control topics say of it afterwards."""

import asyncio
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import atan2, cos, fsum, pi, sin
from pathlib import Path

from binwright.cli.runner import progress_console
from binwright.kafka.control_records import CONTROLLER_PARTITION, METRICS_PARTITION, messages
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lab.simulation.scenario import TICK_S, StartUp
from binwright.local.demo import READY_S, Demo, DemoOptions
from binwright.local.stack import servers, services
from binwright.look.follower import watch_group
from binwright.look.group_view import GroupView
from binwright.protocol.metadata import (
    Dead,
    Goodbye,
    Hello,
    Inbound,
    Planned,
    Report,
    decode_inbound,
)
from binwright.protocol.metrics import Measurement, decode_measurement
from binwright.protocol.model import Slot
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import Stream


@dataclass
class LiveRun:
    """What was read of the control topics; times are of the broker's clock, s since 1970."""

    settings: Settings
    load: Pacing
    began: float = 0.0  # the load's first record
    messages: list[tuple[float, int, Inbound]] = field(default_factory=list)  # time, offset
    measured: list[Measurement] = field(default_factory=list)

    @property
    def seconds(self) -> int:
        """Return how long the load lasted."""
        return int(self.load.duration_s or 0)

    def ready(self, seconds: int) -> list[int]:
        """Return how many consumers were ready, at each whole second of the load."""
        slots, found, changes = set[Slot](), list[int](), self._readiness()
        at, slot, is_ready = next(changes)
        for second in range(seconds + 1):
            while at <= self.began + second:
                (slots.add if is_ready else slots.discard)(slot)
                at, slot, is_ready = next(changes)
            found.append(len(slots))
        return found

    def _readiness(self) -> Iterator[tuple[float, Slot, bool]]:
        for at, _, message in self.messages:
            match message:
                case Report(slot=slot, ready=True):
                    yield at, slot, True
                case Hello(slot=slot) | Goodbye(slot=slot) | Dead(slot=slot):
                    yield at, slot, False
                case _:
                    pass
        yield float("inf"), Slot(0), False

    def plans(self) -> list[tuple[float, int, str]]:
        """Return when each plan went ahead, its consumers and its reasons; before the load: < 0."""
        return [
            (round(at - self.began, 2), plan.consumers, "; ".join(plan.reasons))
            for at, _, plan in self.messages
            if isinstance(plan, Planned)
        ]

    def tick_phase(self, zero_s: float) -> float:
        """Return when the controller ticks, as a share of its second after `zero_s`.

        It publishes plans at its ticks: the circular mean of the times of the load's plans. Ticks
        drift, so that older ones say nothing.
        """
        turns = [2 * pi * ((at - zero_s) % TICK_S) / TICK_S for at in self._planned()]
        mean = atan2(fsum(map(sin, turns)), fsum(map(cos, turns)))
        return mean / (2 * pi) % 1.0

    def _planned(self) -> list[float]:
        plans = [at for at, _, message in self.messages if isinstance(message, Planned)]
        return [at for at in plans if at >= self.began]

    def start_ups(self) -> list[StartUp]:
        """Return how long each consumer took, from the plan that starts it until it is ready."""
        asked, running, found = dict[Slot, float](), set[Slot](), list[StartUp]()
        for at, _, message in self.messages:
            match message:
                case Planned(targets=targets):
                    asked |= dict.fromkeys(set(targets.values()) - running - asked.keys(), at)
                case Report(slot=slot, ready=True) if slot not in running:
                    running.add(slot)
                    if slot in asked:
                        begun = asked.pop(slot)
                        found.append(StartUp(slot, begun, at - begun))
                case Goodbye(slot=slot) | Dead(slot=slot):
                    running.discard(slot)
                case _:
                    pass
        return found

    def pauses(self) -> list[float]:
        """Return for how many seconds each moved partition was not read."""
        view = GroupView()
        for at, offset, message in self.messages:
            view.apply(offset, round(at * 1000), message)
        return [move.pause_s for move in view.moves]

    def ages(self) -> list[float]:
        """Return how old the newest measurement was at each plan of the load, seconds."""
        times = [measurement.at_ms / 1000 for measurement in self.measured]
        return [
            at - times[found - 1] for at in self._planned() if (found := bisect_right(times, at))
        ]

    def framing(self) -> float:
        """Return the stored bytes of a record over those of its key and value."""
        sizes = [
            rate.bytes_per_record
            for measurement in self.measured[-20:]
            for rate in measurement.partitions
            if rate.bytes_per_record
        ]
        return sum(sizes) / len(sizes) / self.load.record_bytes


async def run_live(stream: Stream, options: DemoOptions, directory: Path) -> LiveRun:
    """Run the demo's system under the stream; return what its control topics say."""
    console = progress_console(json_=True)
    demo = Demo(options, console, directory)
    partitions = sorted({partition for row in stream for partition in row})
    async with servers(directory, console.log) as found:
        settings = demo._settings(found, partitions)
        load = Pacing(
            row_s=30.0 / options.speed,
            bytes_per_per_cent=options.capacity / 100,
            record_bytes=options.record_bytes,
            duration_s=60 * options.minutes,
        )
        live = LiveRun(settings, load)
        async with KafkaControlTopics(settings.kafka) as bus:
            await demo._make_topics(bus, settings, partitions)
            async with services(settings, directory) as stack:
                watching = watch_group(
                    bus, settings.metadata_topic, settings.monitor.topic, demo.view
                )
                async with background_tasks(
                    watching,
                    _collect_messages(bus, live),
                    _collect_measurements(bus, live),
                    stack.wait_for_failure(),
                ):
                    ready = partial(demo._ready, partitions)
                    await demo._until(ready, READY_S, "all partitions are read")
                    # The group looks at its idle load before that of the stream begins.
                    await asyncio.sleep(settings.controller.replan_interval_s)
                    console.log("the load begins")

                    def begin(row: int, _: object) -> None:
                        live.began = live.began if row else time.time()

                    await run_load(stream, settings.kafka, load, on_row=begin)
                    await asyncio.sleep(5)
    return live


async def _collect_messages(bus: KafkaControlTopics, live: LiveRun) -> None:
    reader = await bus.reader(live.settings.metadata_topic, CONTROLLER_PARTITION, 0)
    async for record, message in messages(reader, decode_inbound):
        live.messages.append((record.timestamp_ms / 1000, record.offset, message))


async def _collect_measurements(bus: KafkaControlTopics, live: LiveRun) -> None:
    reader = await bus.reader(live.settings.monitor.topic, METRICS_PARTITION, 0)
    async for _, measurement in messages(reader, decode_measurement):
        live.measured.append(measurement)
