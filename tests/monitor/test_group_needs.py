"""The monitor measures the topics that groups need, as long as they need them."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from binwright.kafka.publishing import publish_message
from binwright.monitor.group_needs import GroupNeeds
from binwright.monitor.passes import GONE_PASSES, Monitor
from binwright.protocol.metrics import Needs, decode_measurement
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.runtime.clock import wall_ms
from binwright.runtime.run import background_tasks, must_not_end
from binwright.runtime.settings.monitor import MonitorSettings
from binwright.testing.control_topics import FakeControlTopics
from binwright.testing.data_topics import FakeTopics
from binwright.testing.log_sampler import FakeLogSampler

pytestmark = pytest.mark.looptime

METRICS, NEEDS = "metrics", "metrics.needs"
CONFIG = MonitorSettings(interval_s=1, window_s=30, topic=METRICS)
OWN = Selection(frozenset({"own"}))


class FollowingMonitor:
    """A monitor that follows groups, on fakes."""

    def __init__(self) -> None:
        self.bus = FakeControlTopics({METRICS: 1}, patience_s=5)
        self.topics = FakeTopics({"own": 1, "orders": 2, "clicks": 1})
        self.monitor = Monitor(FakeLogSampler(self.topics), self.bus, OWN, CONFIG)
        self.wanted: list[Selection] = []

    def set_selection(self, wanted: Selection) -> None:
        self.wanted.append(wanted)
        self.monitor.measurer.set_selection(wanted)

    async def need(self, group: str, *topics: str, patterns: tuple[str, ...] = ()) -> None:
        at_ms = wall_ms()
        messages = Needs(group=group, at_ms=at_ms, topics=topics, patterns=patterns)
        await publish_message(self.bus, NEEDS, 0, messages)

    async def measured(self) -> dict[str, int]:
        """Return topic -> number of partitions measured in the next passes."""
        await asyncio.sleep(1)  # a pass may be under way
        begin = len(self.bus.records(METRICS))
        await asyncio.sleep(2)
        messages = [decode_measurement(r.value) for r in self.bus.records(METRICS)[begin:]]
        return {measurement.topic: measurement.count for measurement in messages}


@asynccontextmanager
async def following() -> AsyncIterator[FollowingMonitor]:
    monitor = FollowingMonitor()
    groups = GroupNeeds(monitor.bus, NEEDS, OWN, monitor.set_selection)
    async with background_tasks(must_not_end(monitor.monitor.run()), must_not_end(groups.run())):
        await asyncio.sleep(1)
        yield monitor


async def test_topics_are_measured_while_a_group_needs_them() -> None:
    async with following() as f:
        assert await f.measured() == {"own": 1}
        await f.need("a", "orders")
        await f.need("b", patterns=("cl.*",))
        assert await f.measured() == {"own": 1, "orders": 2, "clicks": 1}
        f.topics.create("clocks", 3)
        assert await f.measured() == {"own": 1, "orders": 2, "clicks": 1, "clocks": 3}
        await f.need("a", "own")
        await f.need("b", "clocks")
        # They are not reported as gone: another monitor may measure them.
        assert await f.measured() == {"own": 1, "clocks": 3}
        f.topics.delete("clocks")
        await asyncio.sleep(GONE_PASSES)
        assert await f.measured() == {"own": 1, "clocks": 0}
        await f.need("b")
        assert await f.measured() == {"own": 1}


async def test_needs_from_before_the_start_are_one_change() -> None:
    monitor = FollowingMonitor()
    await monitor.bus.ensure(NEEDS, 1, {})
    for number in range(1_000):
        await monitor.need(f"group-{number}", f"topic-{number}")
    groups = GroupNeeds(monitor.bus, NEEDS, OWN, monitor.set_selection)
    async with background_tasks(must_not_end(groups.run())):
        await asyncio.sleep(10)
        (wanted,) = monitor.wanted
        assert len(wanted.topics) == 1_001
        await monitor.need("group-7", "topic-7")  # repeated
        await asyncio.sleep(10)
        assert monitor.wanted == [wanted]


async def test_a_group_that_stopped_publishing_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with following() as f:
        await f.need("a", "orders")
        assert await f.measured() == {"own": 1, "orders": 2}
        later = time.time_ns() + 3_601 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: later)
        await asyncio.sleep(10)
        assert await f.measured() == {"own": 1}


async def test_needs_survive_an_outage_of_kafka() -> None:
    async with following() as f:
        await f.need("a", "orders")
        await f.bus.go_down()
        await asyncio.sleep(60)
        await f.bus.come_up()
        await asyncio.sleep(60)
        assert await f.measured() == {"own": 1, "orders": 2}
        await f.need("b", patterns=("clicks", "("))  # one of them is invalid
        assert await f.measured() == {"own": 1, "orders": 2, "clicks": 1}
    assert f.wanted[-1].patterns == (compile_pattern("clicks"),)
