"""The monitor measures what groups' controllers ask for, and forgets what nobody asks for."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from binwright.core import wire
from binwright.core.messages import Needs
from binwright.core.selection import Selection
from binwright.monitor.needs import GroupNeeds
from binwright.monitor.watch import GONE_PASSES, Watch
from binwright.shell.letters import post
from binwright.shell.run import endless, meanwhile
from binwright.shell.settings import MonitorSettings
from binwright.testing.bus import FakeBus
from binwright.testing.intake import FakeTopics
from binwright.testing.logs import FakeLogs

pytestmark = pytest.mark.looptime

METRICS, NEEDS = "metrics", "metrics.needs"
HOW = MonitorSettings(interval_s=1, window_s=30, topic=METRICS)
OWN = Selection(frozenset({"own"}))


class Following:
    """A monitor that follows groups, and its world."""

    def __init__(self) -> None:
        self.bus = FakeBus({METRICS: 1}, patience_s=5)
        self.topics = FakeTopics({"own": 1, "orders": 2, "clicks": 1})
        self.watch = Watch(FakeLogs(self.topics), self.bus, OWN, HOW)
        self.wanted: list[Selection] = []

    def want(self, wanted: Selection) -> None:
        self.wanted.append(wanted)
        self.watch.want(wanted)

    async def need(self, group: str, *topics: str, patterns: tuple[str, ...] = ()) -> None:
        at_ms = time.time_ns() // 1_000_000
        said = Needs(group=group, at_ms=at_ms, topics=topics, patterns=patterns)
        await post(self.bus, NEEDS, 0, said)

    async def measured(self) -> dict[str, int]:
        """Return how many partitions are told of each topic, in the next passes."""
        await asyncio.sleep(1)  # a pass may be under way
        begin = len(self.bus.records(METRICS))
        await asyncio.sleep(2)
        said = [wire.decode_measurement(r.value) for r in self.bus.records(METRICS)[begin:]]
        return {measurement.topic: measurement.count for measurement in said}


@asynccontextmanager
async def following() -> AsyncIterator[Following]:
    made = Following()
    groups = GroupNeeds(made.bus, NEEDS, OWN, made.want)
    async with meanwhile(endless(made.watch.run()), endless(groups.run())):
        await asyncio.sleep(1)
        yield made


async def test_what_groups_need_is_measured_and_what_they_need_no_more_is_not() -> None:
    async with following() as f:
        assert await f.measured() == {"own": 1}
        await f.need("a", "orders")
        await f.need("b", patterns=("cl.*",))
        assert await f.measured() == {"own": 1, "orders": 2, "clicks": 1}
        f.topics.create("clocks", 3)
        assert await f.measured() == {"own": 1, "orders": 2, "clicks": 1, "clocks": 3}
        await f.need("a", "own")
        await f.need("b", "clocks")
        # Not as if they were gone: another monitor may measure them for somebody.
        assert await f.measured() == {"own": 1, "clocks": 3}
        f.topics.delete("clocks")
        await asyncio.sleep(GONE_PASSES)
        assert await f.measured() == {"own": 1, "clocks": 0}
        await f.need("b")
        assert await f.measured() == {"own": 1}


async def test_needs_from_before_the_monitor_began_are_one_change() -> None:
    made = Following()
    await made.bus.ensure(NEEDS, 1, {})
    for number in range(1_000):
        await made.need(f"group-{number}", f"topic-{number}")
    groups = GroupNeeds(made.bus, NEEDS, OWN, made.want)
    async with meanwhile(endless(groups.run())):
        await asyncio.sleep(10)
        (wanted,) = made.wanted
        assert len(wanted.topics) == 1_001
        await made.need("group-7", "topic-7")  # repeated
        await asyncio.sleep(10)
        assert made.wanted == [wanted]


async def test_a_group_that_is_silent_for_long_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with following() as f:
        await f.need("a", "orders")
        assert await f.measured() == {"own": 1, "orders": 2}
        later = time.time_ns() + 3_601 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: later)
        await asyncio.sleep(10)
        assert await f.measured() == {"own": 1}


async def test_an_outage_and_a_topic_that_is_made_anew_are_got_over() -> None:
    async with following() as f:
        await f.need("a", "orders")
        await f.bus.go_down()
        await asyncio.sleep(60)
        await f.bus.come_up()
        await asyncio.sleep(60)
        assert await f.measured() == {"own": 1, "orders": 2}
        await f.need("b", patterns=("clicks", "("))  # one of them is none
        assert await f.measured() == {"own": 1, "orders": 2, "clicks": 1}
    assert f.wanted[-1].patterns == (re.compile("clicks"),)
