"""Topics are added, deleted, recreated and truncated: each affects only its own partitions."""

import asyncio

import pytest
from tests.simulation.world import P, World, until, world

from binwright.protocol.metadata import Gap
from binwright.protocol.model import Slot, TopicPartition

pytestmark = pytest.mark.looptime(noop_cycles=1)

CLICKS = [TopicPartition("clicks", i) for i in range(2)]


async def land_two_topics(w: World) -> None:
    w.load(dict.fromkeys([*P, *CLICKS], 15_000.0))
    await until(w.steady)
    await until(lambda: w.landed() > 0)


async def test_a_deleted_topic_stops_no_other_when_consumers_restart() -> None:
    """B4: one missing topic stopped all of them."""
    async with world({"orders": 4, "clicks": 2}) as w:
        await land_two_topics(w)
        w.topics.delete("clicks")
        await asyncio.sleep(10)
        w.fleet.kill(Slot(0))
        await asyncio.sleep(20)
        before = len(w.values(P[0]))
        await asyncio.sleep(60)
        assert len(w.values(P[0])) > before + 50 * 15
        assert w.fleet.starts[Slot(0)] == 2
        await w.all_landed_once()


async def test_a_topic_without_metadata_stops_no_other() -> None:
    async with world({"orders": 4, "clicks": 2}) as w:
        await land_two_topics(w)
        w.topics.silent.add("clicks")
        w.fleet.kill(Slot(0))
        await asyncio.sleep(30)
        before = len(w.values(P[0]))
        await asyncio.sleep(60)
        assert len(w.values(P[0])) > before + 50 * 15
        assert w.fleet.starts[Slot(0)] == 2
        w.topics.silent.clear()
        await w.all_landed_once(300.0)


async def test_an_added_topic_needs_no_restart_of_any_consumer() -> None:
    """B7: only the controllers need to know of it."""
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 15_000.0))
        await until(w.steady)
        w.topics.create("clicks", 2)
        w.names = ("orders", "clicks")
        w.kill_controller()
        w.start_monitor()
        w.start_controller()
        w.load(dict.fromkeys(CLICKS, 10_000.0))
        await until(w.steady)
        assert w.fleet.starts == {Slot(0): 1}
        await w.all_landed_once()


async def test_a_later_topic_that_matches_a_pattern_lands_without_any_restart() -> None:
    async with world({"orders": 4}, patterns=["cl.*"]) as w:
        w.load(dict.fromkeys(P, 15_000.0))
        await until(w.steady)
        w.topics.create("clicks", 2)
        w.load(dict.fromkeys(CLICKS, 10_000.0))
        await until(lambda: bool(w.values(CLICKS[0])) and w.steady())
        assert w.fleet.starts == {Slot(0): 1}
        assert len(w.controllers) == 1
        w.topics.delete("clicks")
        await until(lambda: w.group().members.partitions.keys() == set(P) and w.steady())
        await w.all_landed_once()


async def test_a_deselected_topic_is_removed_and_others_continue() -> None:
    async with world({"orders": 4, "clicks": 2}) as w:
        await land_two_topics(w)
        w.names = ("orders",)
        w.kill_controller()
        w.start_controller()
        await until(lambda: w.group().members.partitions.keys() == set(P))
        await until(lambda: w.group().members.writers.keys() == {"orders"})
        assert set(w.report(0).reading) == set(P)
        before = len(w.values(P[0]))
        await asyncio.sleep(30)
        assert len(w.values(P[0])) > before + 20 * 15
        w.names = ("orders", "clicks")  # selected again: it continues where it had landed
        w.kill_controller()
        w.start_controller()
        await w.all_landed_once()


async def test_without_a_monitor_dead_consumers_are_replaced() -> None:
    """B1: a crashed monitor and one death must not stop the data for good."""
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        w.tasks[0].cancel()  # the monitor
        await asyncio.sleep(100)
        w.fleet.kill(Slot(0))
        await asyncio.sleep(30)
        before = w.landed()
        await asyncio.sleep(30)
        assert w.landed() > before + 20 * 80


async def test_a_truncated_log_continues_and_lands_nothing_again() -> None:
    """A5: after an unclean election; the topic's id shows that it is the same topic."""
    async with world({"orders": 2}) as w:
        w.load(dict.fromkeys(P[:2], 10_000.0))
        await until(w.steady)
        await asyncio.sleep(20)
        w.load(dict.fromkeys(P[:2], 0.0))
        await asyncio.sleep(10)
        end = w.topics.bounds(P[0])[1]
        w.topics.cut(P[0], end - 20)
        await asyncio.sleep(10)
        w.topics.produce(P[0], *[b"after"] * 50)
        await until(lambda: b"after" in w.values(P[0]))
        await asyncio.sleep(10)
        assert w.values(P[0]).count(b"after") == 50
        assert len(w.values(P[0])) == end + 50


async def test_a_topic_recreated_while_its_reader_is_dead_is_read_from_its_beginning() -> None:
    """The controller knows the offsets of the old topic."""
    async with world({"orders": 2}) as w:
        w.load(dict.fromkeys(P[:2], 10_000.0))
        await until(w.steady)
        await asyncio.sleep(20)
        w.fleet.restart_s = 20.0
        w.fleet.kill(Slot(0))
        w.topics.delete("orders")
        w.topics.create("orders", 2)
        w.topics.produce(P[0], *[b"anew"] * 7)
        w.topics.produce(P[1], *[b"anew"] * 5_000)
        await until(lambda: w.values(P[0]).count(b"anew") == 7)
        await until(lambda: w.values(P[1]).count(b"anew") == 5_000)
        await asyncio.sleep(30)
        assert (w.values(P[0]).count(b"anew"), w.values(P[1]).count(b"anew")) == (7, 5_000)


async def test_a_recreated_topic_on_a_table_whose_history_was_cleaned_up() -> None:
    """A1: the rows do not tell which topic their offsets belong to."""
    async with world({"orders": 1}) as w:
        w.load({P[0]: 10_000.0})
        await until(w.steady)
        await asyncio.sleep(20)
        w.load({P[0]: 0.0})
        await asyncio.sleep(10)
        w.topics.delete("orders")
        w.topics.create("orders", 1)
        w.topics.produce(P[0], *[b"anew"] * 300)
        await until(lambda: w.values(P[0]).count(b"anew") == 300)
        table = w.storage.tables["orders"]
        w.storage.forget("orders", len(table.commits) - 1)
        w.fleet.kill(Slot(0))
        await asyncio.sleep(30)
        w.topics.produce(P[0], *[b"later"] * 50)
        await until(lambda: w.values(P[0]).count(b"later") == 50)
        assert w.values(P[0]).count(b"anew") == 300


async def test_an_idle_topic_that_ends_in_a_marker_asks_for_nothing_again() -> None:
    async with world({"orders": 4}) as w:
        for partition in P:
            w.topics.produce(partition, b"row")
            w.topics.skip(partition, 1)
        await until(lambda: w.landed() == 4)
        await asyncio.sleep(600)
        assert not w.sent(Gap)
        for partition in P:
            w.topics.delete_records(partition, 2)
        w.fleet.kill(Slot(0))
        await asyncio.sleep(60)
        assert w.steady()
        assert w.report(0).lost_offsets == 0
