"""How long a group is made to change: until every kind of event was seen often enough."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import pytest

from binwright.kafka.control_records import CONTROLLER_PARTITION, METRICS_PARTITION, messages
from binwright.kafka.publishing import publish_message
from binwright.lab.timings.live.changes import PARTITIONS, ROW_S, TOPICS, ChangeTest
from binwright.protocol.metadata import Hello, Inbound, Planned, Report, Started
from binwright.protocol.metrics import decode_measurement
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.testing.control_topics import FakeControlTopics

ALL = [TopicPartition(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
CHANGE_S = 3.0


class FakeGroup:
    """Answers each row with a plan that moves all partitions: every `start_every`th to a new slot.

    The other plans move them between slots 0 and 1, which run.
    """

    def __init__(self, bus: FakeControlTopics, settings: Settings, start_every: int) -> None:
        self._bus, self._settings, self._start_every = bus, settings, start_every
        self._epochs: dict[Slot, int] = {}
        self._new = count(2)

    async def run(self) -> None:
        reader = await self._bus.reader(self._settings.monitor.topic, METRICS_PARTITION, 0)
        await self._start(Slot(0))
        await self._start(Slot(1))
        plans = 0
        async for _, message in messages(reader, decode_measurement):
            if message.topic == TOPICS[-1]:  # the row is complete
                await self._change(plans)
                plans += 1

    async def _change(self, number: int) -> None:
        starts = number % self._start_every == self._start_every - 1
        slot = Slot(next(self._new)) if starts else Slot(number % 2)
        targets = dict.fromkeys(ALL, slot)
        plan = Planned(
            term=1, reasons=(), consumers=1, moves={}, rscore=0.0, rates={}, targets=targets
        )
        await self._publish(plan)
        await asyncio.sleep(CHANGE_S)
        if slot not in self._epochs:
            await self._start(slot)
        offsets = dict.fromkeys(ALL, 0)
        started = Started(slot=slot, epoch=self._epochs[slot], revision=number, offsets=offsets)
        await self._publish(started)

    async def _start(self, slot: Slot) -> None:
        epoch = await self._publish(Hello(slot=slot, process=f"of {slot}", version="1"))
        self._epochs[slot] = epoch
        report = Report(slot=slot, epoch=epoch, term=1, ready=True, reading={}, writing={})
        await self._publish(report)

    async def _publish(self, message: Inbound) -> int:
        topic = self._settings.metadata_topic
        return await publish_message(self._bus, topic, CONTROLLER_PARTITION, message)


@asynccontextmanager
async def changing(start_every: int) -> AsyncIterator[ChangeTest]:
    settings = load_settings(group="timed", topics=TOPICS, kafka={"bootstrap_servers": "none"})
    bus = FakeControlTopics({settings.metadata_topic: 2, settings.monitor.topic: 1})
    group = FakeGroup(bus, settings, start_every)
    async with background_tasks(group.run()):
        yield ChangeTest(bus, settings, 8, 0, lambda _: None)  # type: ignore[arg-type]


@pytest.mark.looptime
async def test_a_group_changes_until_the_rarest_event_was_seen_often_enough() -> None:
    async with changing(start_every=3) as changes:
        await changes.run(5, deadline_s=10_000.0)
        assert changes.events == len(changes.timings.starts) == 5
        assert len(changes.timings.changes) >= 3 * 5 - 1


@pytest.mark.looptime
async def test_a_group_changes_no_longer_than_the_deadline() -> None:
    async with changing(start_every=1_000) as changes:
        begun = asyncio.get_running_loop().time()
        await changes.run(5, deadline_s=100.0)
        assert 100.0 < asyncio.get_running_loop().time() - begun < 100.0 + 2 * ROW_S
        assert changes.timings.starts == []
        assert len(changes.timings.changes) > 5
