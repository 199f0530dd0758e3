"""The step test: partitions that were silent get records, one after the other (Δt1)."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil

from binwright.kafka.control_records import METRICS_PARTITION, messages
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.lab.timings.steps import Pass, RateStep, steps
from binwright.protocol.errors import ExternalError
from binwright.protocol.metrics import decode_measurement
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Reader
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

TOPIC = "steps"
SPACING_S = 1.37
"""Between two steps: not a multiple of the monitor's interval, so that they begin at other times
between its passes."""
RATE, RECORD_BYTES = 20_000, 1_000
"""Bytes/s of a step, and of a record: twenty records a second."""
SETTLE_S, FIRST_S, READ_S = 5.0, 60.0, 10.0
"""Behind the window, until the last step is measured; until the monitor's first window is full;
until a partition's first record is read."""


@dataclass
class StepTest:
    """A step in each of `count` partitions of `TOPIC`, which the monitor of `settings` measures."""

    bus: KafkaControlTopics
    settings: Settings
    count: int
    progress: Callable[[int], None]
    _passes: list[Pass] = field(default_factory=list)
    _measured: asyncio.Event = field(default_factory=asyncio.Event)  # silence, for a whole window

    async def run(self) -> list[RateStep]:
        """Wait until the monitor knows the silence, make the steps, and return what was measured.

        Raises:
            ExternalError: The monitor does not measure the partitions in time.
            BrokerUnavailable: Kafka does not answer.
        """
        reader = await self.bus.reader(self.settings.monitor.topic, METRICS_PARTITION, 0)
        try:
            async with background_tasks(self._follow(reader)):
                await self._wait_for_silence()
                await self._load()
                begun_s = {number: await self._first_s(number) for number in range(self.count)}
        finally:
            await reader.close()
        self.progress(self.count)
        return steps(self._passes, begun_s)

    async def _follow(self, reader: Reader) -> None:
        window_s, interval_s = self.settings.monitor.window_s, self.settings.monitor.interval_s
        async for record, message in messages(reader, decode_measurement):
            if message.topic != TOPIC:
                continue
            self._passes.append(Pass(record.timestamp_ms / 1_000, message))
            whole = [one for one in message.partitions if one.window_s >= window_s - interval_s]
            if len(whole) == self.count:
                self._measured.set()

    async def _wait_for_silence(self) -> None:
        deadline_s = FIRST_S + self.settings.monitor.window_s
        try:
            async with asyncio.timeout(deadline_s):
                await self._measured.wait()
        except TimeoutError as exc:
            raise ExternalError(f"the monitor has no whole window after {deadline_s:g} s") from exc

    async def _load(self) -> None:
        partitions = [TopicPartition(TOPIC, number) for number in range(self.count)]
        wait_s = self.settings.monitor.window_s + SETTLE_S
        # A partition's load ends once its step is measured: the load does not grow with the steps.
        loaded = ceil(wait_s / SPACING_S)
        rows = [
            self._row(partitions[max(0, n - loaded) : n + 1]) for n in range(self.count + loaded)
        ]
        load = Pacing(row_s=SPACING_S, bytes_per_per_cent=RATE / 100, record_bytes=RECORD_BYTES)

        def on_row(number: int, _: Mapping[TopicPartition, PerCent]) -> None:
            self.progress(self.count * number // len(rows))

        await run_load(rows, self.settings.kafka, load, on_row=on_row)

    @staticmethod
    def _row(partitions: list[TopicPartition]) -> dict[TopicPartition, PerCent]:
        return {partition: PerCent(100.0) for partition in partitions}

    async def _first_s(self, number: int) -> float:
        """Return the timestamp of a partition's first record, s since 1970."""
        reader = await self.bus.reader(TOPIC, number, 0)
        try:
            async with asyncio.timeout(READ_S):
                while not (records := await reader.read(READ_S)):
                    pass
        except TimeoutError as exc:
            raise ExternalError(f"{TOPIC}-{number} has no record") from exc
        finally:
            await reader.close()
        return records[0].timestamp_ms / 1_000
