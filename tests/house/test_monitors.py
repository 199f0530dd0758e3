"""Two monitors, and none: what the group does about it."""

import asyncio
import re

import pytest

from binwright.core.messages import Planned
from binwright.core.model import TopicPartition
from binwright.core.selection import Selection
from binwright.monitor.watch import Watch
from binwright.shell.settings import MonitorSettings

from .world import METRICS, RULES, P, World, until, world

pytestmark = pytest.mark.looptime(noop_cycles=1)

MONITOR = 0  # the first task of a world


def rates(w: World) -> list[float]:
    return [w.group().rates[p] for p in P]


def plans(w: World) -> int:
    return sum(isinstance(message, Planned) for message in w.heard())


async def test_a_second_monitor_adds_nothing_and_takes_over() -> None:
    async with world({"orders": 4}) as w:
        w.start_monitor()
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        await asyncio.sleep(10)
        assert rates(w) == pytest.approx([20_000.0] * 4, rel=0.01)
        before = plans(w)
        w.tasks[MONITOR].cancel()
        await asyncio.sleep(8)
        w.load(dict.fromkeys(P, 25_000.0))
        await asyncio.sleep(10)
        assert rates(w) == pytest.approx([25_000.0] * 4, rel=0.01)
        assert plans(w) == before
        assert w.steady()


async def test_without_any_monitor_the_last_assignment_is_held() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        await asyncio.sleep(10)
        before, held = plans(w), w.group().assignment()
        w.tasks[MONITOR].cancel()
        w.load(dict.fromkeys(P, 90_000.0))  # nobody tells
        await asyncio.sleep(3 * RULES.stale_s)
        assert (plans(w), w.group().assignment()) == (before, held)
        w.start_monitor()
        await until(lambda: plans(w) > before)


async def test_topics_of_other_groups_are_none_of_ours() -> None:
    async with world({"orders": 4}) as w:
        w.topics.create("others", 2)
        everything = Selection(patterns=(re.compile(".*"),), never=frozenset({METRICS}))
        how = MonitorSettings(interval_s=1, window_s=5, topic=METRICS)
        w.tasks.append(asyncio.create_task(Watch(w.topics, w.bus, everything, how).run()))
        w.load({**dict.fromkeys(P, 20_000.0), TopicPartition("others", 0): 50_000.0})
        await until(lambda: len(w.group().partitions) == 4)
        await asyncio.sleep(10)
        assert w.group().partitions.keys() == set(P)
        assert {m.topic for m in w.measured()} == {"orders", "others"}


async def test_a_topic_that_is_deleted_is_given_back() -> None:
    async with world({"orders": 2, "clicks": 1}) as w:
        w.load(dict.fromkeys(P[:2], 20_000.0))
        await until(w.steady)
        w.topics.delete("clicks")
        await until(lambda: {p.topic for p in w.group().partitions} == {"orders"})
        await until(w.steady)


def read(w: World, *partitions: TopicPartition) -> bool:
    """Whether the group reads these, and nothing else."""
    return w.group().assignment().keys() == set(partitions)


async def test_a_monitor_without_topics_of_its_own_measures_what_the_group_needs() -> None:
    clicks, other = TopicPartition("clicks", 0), TopicPartition("others", 0)
    async with world({"orders": 4}, patterns=["cl.*"]) as w:
        w.tasks[MONITOR].cancel()
        w.topics.create("others", 1)
        w.start_following_monitor()
        await until(lambda: read(w, *P))
        w.topics.create("clicks", 1)
        w.load({clicks: 10_000.0})
        await until(lambda: bool(w.values(clicks)))
        assert {m.topic for m in w.measured()} == {"orders", "clicks"}
        w.names = ("others",)  # somebody edits the group, and nothing else
        w.kill_controller()
        w.start_controller()
        await until(lambda: read(w, other, clicks))
