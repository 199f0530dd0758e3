"""A group with two monitors, and with none."""

import asyncio

import pytest
from tests.simulation.world import CONFIG, METRICS, NEEDS, P, World, until, world

from binwright.monitor.passes import Monitor
from binwright.protocol import wire
from binwright.protocol.metadata import Planned
from binwright.protocol.metrics import Needs
from binwright.protocol.model import TopicPartition
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection
from binwright.runtime.settings.monitor import MonitorSettings

pytestmark = pytest.mark.looptime(noop_cycles=1)

MONITOR = 0  # index of its task in a world


def rates(w: World) -> list[float]:
    return [w.group().load.rates[p] for p in P]


def plans(w: World) -> int:
    return sum(isinstance(message, Planned) for message in w.metadata_messages())


async def test_a_second_monitor_changes_nothing_and_takes_over() -> None:
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


async def test_without_any_monitor_the_assignment_stays() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        await asyncio.sleep(10)
        before, assignment = plans(w), w.group().members.assignment()
        w.tasks[MONITOR].cancel()
        w.load(dict.fromkeys(P, 90_000.0))  # not measured
        await asyncio.sleep(3 * CONFIG.stale_s)
        assert (plans(w), w.group().members.assignment()) == (before, assignment)
        w.start_monitor()
        await until(lambda: plans(w) > before)


async def test_topics_of_other_groups_are_not_assigned() -> None:
    async with world({"orders": 4}) as w:
        w.topics.create("others", 2)
        everything = Selection(patterns=(compile_pattern(".*"),), excluded=frozenset({METRICS}))
        settings = MonitorSettings(interval_s=1, window_s=5, topic=METRICS)
        w.tasks.append(asyncio.create_task(Monitor(w.topics, w.bus, everything, settings).run()))
        w.load({**dict.fromkeys(P, 20_000.0), TopicPartition("others", 0): 50_000.0})
        await until(lambda: len(w.group().members.partitions) == 4)
        await asyncio.sleep(10)
        assert w.group().members.partitions.keys() == set(P)
        assert {m.topic for m in w.measured()} == {"orders", "others"}


@pytest.mark.timeout(60)
async def test_no_pattern_of_another_group_holds_up_the_measurements() -> None:
    """Tried one way after the other it takes 2^100 of them; whoever leads a group can send it."""
    async with world({"orders": 4}) as w:
        w.tasks[MONITOR].cancel()
        w.topics.create("a" * 100 + "-", 1)
        w.start_following_monitor()
        w.load(dict.fromkeys(P, 20_000.0))
        await until(lambda: len(w.group().members.partitions) == 4)
        patterns = ("([a-z]+)+_", "(?!test-).*")
        evil = Needs(group="evil", at_ms=2**62, topics=(), patterns=patterns)
        await w.bus.publish(NEEDS, 0, wire.key(evil), wire.encode(evil))
        before = len(w.measured())
        await until(lambda: len(w.measured()) > before + 50)


async def test_a_deleted_topic_is_removed_from_the_group() -> None:
    async with world({"orders": 2, "clicks": 1}) as w:
        w.load(dict.fromkeys(P[:2], 20_000.0))
        await until(w.steady)
        w.topics.delete("clicks")
        await until(lambda: {p.topic for p in w.group().members.partitions} == {"orders"})
        await until(w.steady)


def reads_only(w: World, *partitions: TopicPartition) -> bool:
    """Whether the group reads exactly these."""
    return w.group().members.assignment().keys() == set(partitions)


async def test_a_monitor_without_configured_topics_measures_what_the_group_needs() -> None:
    clicks, other = TopicPartition("clicks", 0), TopicPartition("others", 0)
    async with world({"orders": 4}, patterns=["cl.*"]) as w:
        w.tasks[MONITOR].cancel()
        w.topics.create("others", 1)
        w.start_following_monitor()
        await until(lambda: reads_only(w, *P))
        w.topics.create("clicks", 1)
        w.load({clicks: 10_000.0})
        await until(lambda: bool(w.values(clicks)))
        assert {m.topic for m in w.measured()} == {"orders", "clicks"}
        w.names = ("others",)  # only the group's settings change
        w.kill_controller()
        w.start_controller()
        await until(lambda: reads_only(w, other, clicks))
