"""Make a group change again and again: measurements of a stream are published as a monitor would.

So did the paper, to have the same load in each run. The next row follows once the group has
answered the one before, so that each change is one of its own.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, count

from binwright.kafka.control_records import CONTROLLER_PARTITION, METRICS_PARTITION, messages
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.kafka.publishing import publish_message
from binwright.lab.timings.events import GroupTimings
from binwright.protocol.errors import ExternalError
from binwright.protocol.metadata import decode_inbound
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond, TopicPartition
from binwright.protocol.ports.kafka import Reader
from binwright.runtime.backoff import until_set
from binwright.runtime.clock import loop_s, wall_ms
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings
from binwright.streams.generated import Walk, generate

TOPICS, PARTITIONS = ("one", "two"), 16
"""Of the paper's stream, each: 32 in all."""
DELTA = 25
"""Its largest step, per cent of a consumer's capacity: the paper's stream of high variability."""
MEAN = 0.5
"""Of a partition's rate, in consumers' capacities: the walk is uniform between 0 and 1."""
LOW, LOW_EVERY = 0.6, 6
"""Every sixth row has less load, so that consumers are ended, and started again behind it."""
REPLAN_INTERVAL_S, PLAN_S = 1.0, 5.0
"""The group's interval between looks for a smaller plan, and how long a plan is waited for."""
PASS_S = 1.0
"""Between measurements."""
FIRST_S, ROW_S = 240.0, 60.0
"""Until all partitions are read for the first time, and until a row's change is complete."""
WINDOW_S = 30.0
"""Over which the measurements are said to be."""
PHASE = 0.618
"""Rows begin at other times between the controller's ticks, spread evenly: multiples of the golden
ratio's fraction."""


@dataclass
class ChangeTest:
    """A group that changes as long as it is wanted.

    Attributes:
        consumers: How many the stream needs on average.
        timings: What the group did so far, as it is read.
    """

    bus: KafkaControlTopics
    settings: Settings
    consumers: int
    seed: int
    progress: Callable[[int], None]
    timings: GroupTimings = field(init=False)
    _number: int = 0  # of the last measurement
    _read: asyncio.Event = field(default_factory=asyncio.Event)  # a record of the group

    def __post_init__(self) -> None:
        """Begin without events."""
        self.timings = GroupTimings(self.settings.controller.limits)

    async def run(self, events: int, deadline_s: float) -> float:
        """Publish the stream until this many triggers, starts and changes were seen, of each.

        The plan that gives every partition its first reader does not count.

        Args:
            events: Wanted of each.
            deadline_s: From then on; the row of that time is the last, also with fewer events.

        Returns:
            When they began, seconds since 1970.

        Raises:
            ExternalError: The group is not there within `FIRST_S`, or does not complete a change
                within `ROW_S`.
        """
        rows = self._rows()
        reader = await self.bus.reader(self.settings.metadata_topic, CONTROLLER_PARTITION, 0)
        try:
            async with background_tasks(self._follow(reader)):
                await self._answered(next(rows), lambda _: bool(self.timings.changes), FIRST_S)
                self.timings.forget_events()
                begun_s = wall_ms() / 1_000
                last_s = loop_s() + deadline_s
                for number, row in enumerate(rows):
                    self.progress(self.events)
                    if self.events >= events or loop_s() > last_s:
                        break
                    if self.timings.overloads(row):
                        await asyncio.sleep(number * PHASE % 1.0 * PASS_S)
                    await self._answered(row, self._at_rest(row, number), ROW_S)
        finally:
            await reader.close()
        return begun_s

    @property
    def events(self) -> int:
        """How many events there are of the kind that has the fewest."""
        timed = self.timings
        return min(len(timed.triggers), len(timed.starts), len(timed.changes))

    def _at_rest(self, row: Mapping[TopicPartition, float], number: int) -> Callable[[float], bool]:
        """Return what says whether a row is answered, by the seconds since it was published."""
        plans = self.timings.plans
        expected = self.timings.overloads(row) or _is_low(number)
        patience_s = PLAN_S if expected else 0.0

        def answered(waited_s: float) -> bool:
            if self.timings.changing:
                return False
            return self.timings.plans > plans or waited_s >= patience_s

        return answered

    async def _answered(
        self, row: Mapping[TopicPartition, float], done: Callable[[float], bool], deadline_s: float
    ) -> None:
        """Publish a row, and again each second until it is answered."""
        begun = loop_s()
        await self._publish(row)
        due = begun + PASS_S
        while not done(loop_s() - begun):
            self._read.clear()  # nothing was read since `done` looked
            await until_set(self._read, max(0.01, due - loop_s()))
            if loop_s() >= due:
                await self._publish(row)
                due += PASS_S
            if loop_s() - begun > deadline_s:
                raise ExternalError(f"the group did not complete a change within {deadline_s:g} s")

    async def _publish(self, row: Mapping[TopicPartition, float]) -> None:
        self._number += 1
        for topic in TOPICS:
            rates = [
                PartitionRate(p.partition, BytesPerSecond(rate), WINDOW_S, 0, 0, None)
                for p, rate in row.items()
                if p.topic == topic
            ]
            message = Measurement(
                topic=topic,
                at_ms=wall_ms(),
                monitor="lab",
                number=self._number,
                interval_s=PASS_S,
                count=PARTITIONS,
                partitions=tuple(rates),
            )
            self.timings.apply_measurement(wall_ms() / 1_000, message)
            await publish_message(self.bus, self.settings.monitor.topic, METRICS_PARTITION, message)

    async def _follow(self, reader: Reader) -> None:
        async for record, message in messages(reader, decode_inbound):
            self.timings.apply(record.timestamp_ms / 1_000, record.offset, message)
            self._read.set()

    def _rows(self) -> Iterator[dict[TopicPartition, float]]:
        share = self.consumers / (len(TOPICS) * PARTITIONS * MEAN)
        per_cent = self.settings.controller.capacity / 100 * share
        walks = (
            Walk(topics=TOPICS, partitions=PARTITIONS, rows=500, delta=DELTA, seed=seed)
            for seed in count(self.seed)
        )
        for number, row in enumerate(chain.from_iterable(map(generate, walks))):
            unit = per_cent * (LOW if _is_low(number - 1) else 1.0)
            yield {partition: rate * unit for partition, rate in row.items()}


def _is_low(number: int) -> bool:
    """Whether the load of a row is low; rows count from 0, behind the first one."""
    return number % LOW_EVERY == LOW_EVERY - 1
