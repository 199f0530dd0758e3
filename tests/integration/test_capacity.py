"""Consumers measure what they sustain, and plans follow: a real load, more than one is given."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from binwright.kafka.control_records import METADATA_CONFIG, METRICS_CONFIG
from binwright.kafka.control_topics import KafkaControlTopics
from binwright.local.stack import services
from binwright.look.follower import GroupFollower
from binwright.look.group_view import GroupView
from binwright.look.status import Status, status
from binwright.protocol.model import Slot, TopicPartition
from binwright.runtime.clock import wall_ms
from binwright.runtime.run import background_tasks
from binwright.runtime.settings.group import Settings, load_settings
from binwright.streams.load import run_load
from binwright.streams.load_pacing import Pacing
from binwright.streams.streams import PerCent

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

GROUP = "capacity"
START = 2_400_000.0
LOAD = 4_000_000.0  # bytes/s: twice what a consumer is given at first
PARTITIONS = 4
DEADLINE_S = 120.0


@contextlib.asynccontextmanager
async def written(settings: Settings) -> AsyncIterator[None]:
    """Write to the topic beside the block."""
    stop = asyncio.Event()
    row = {TopicPartition(GROUP, n): PerCent(100.0) for n in range(PARTITIONS)}
    load = Pacing(row_s=600.0, bytes_per_per_cent=LOAD / PARTITIONS / 100, record_bytes=1_000)
    playing = asyncio.create_task(run_load([row], settings.kafka, load, stop=stop))
    try:
        yield
    finally:
        stop.set()
        await playing


class Watch:
    """A group as `binwright status` has it."""

    def __init__(self, view: GroupView, follower: GroupFollower) -> None:
        self.view, self._follower = view, follower

    @property
    def status(self) -> Status:
        return status(GROUP, self.view, wall_ms())

    async def until(self, holds: Callable[[Status], bool]) -> Status:
        async with asyncio.timeout(DEADLINE_S):
            while not holds(self.status):
                await self._follower.read(0.5)
        return self.status


def readers(found: Status) -> set[Slot]:
    return {each.slot for each in found.consumers if each.partitions}


@pytest.mark.nightly
async def test_a_group_needs_fewer_consumers_once_they_have_measured_what_they_sustain(
    broker: str, spark_url: str, lake: Path
) -> None:
    settings = load_settings(
        group=GROUP,
        topics=(GROUP,),
        kafka={"bootstrap_servers": broker},
        lake={"path": str(lake), "spark": spark_url},
        monitor={"topic": f"{GROUP}.metrics", "window_s": 6.0, "groups": False},
        controller={"replan_interval_s": 5.0, "process_logs": lake.parent / "logs"},
    )
    (lake.parent / "logs").mkdir()
    async with KafkaControlTopics(settings.kafka) as bus:
        await bus.ensure(settings.metadata_topic, 1, METADATA_CONFIG)
        await bus.ensure(settings.monitor.topic, 1, METRICS_CONFIG)
        await bus.ensure(GROUP, PARTITIONS, {})
        view = GroupView()
        followed = GroupFollower(bus, {settings.metadata_topic: view}, settings.monitor.topic)
        async with followed as follower, written(settings):
            watch = Watch(view, follower)
            async with (
                services(settings, lake.parent / "logs") as stack,
                background_tasks(stack.wait_for_failure()),
            ):
                at_first = await watch.until(lambda found: len(readers(found)) > 1)
                assert at_first.limits is not None
                assert at_first.limits.default == START
                measured = await watch.until(lambda found: _limit(found) > START)
                assert measured.limits_measured
                capacities = [c.capacity for c in measured.consumers if c.capacity is not None]
                assert capacities
                assert max(c.bytes_per_s for c in capacities) * 0.75 >= _limit(measured)
                await watch.until(lambda found: len(readers(found)) == 1)
            claims = view.terms
            async with services(settings, lake.parent / "logs"):
                again = await watch.until(lambda _: view.terms > claims)
                assert _limit(again) > START, "the next controller begins with what was measured"


def _limit(found: Status) -> float:
    assert found.limits is not None
    return found.limits.default
