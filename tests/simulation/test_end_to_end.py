"""The main path on fakes and virtual time: minutes of it in less than a second."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from tests.simulation.world import CONFIG, P, until, world

from binwright.protocol.metadata import Goodbye, Planned
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition

pytestmark = pytest.mark.looptime(noop_cycles=1)


async def test_when_the_load_doubles_a_consumer_is_added_and_nothing_is_lost_or_doubled() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        assert w.fleet.running == {0}

        w.load(dict.fromkeys(P, 40_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        assert any(isinstance(m, Planned) and m.moves for m in w.metadata_messages())
        await w.all_landed_once()


async def test_a_consumer_with_twice_the_limit_is_given_more() -> None:
    large = replace(
        CONFIG, limits=PerSlot(CONFIG.limits.default, {Slot(0): BytesPerSecond(240_000)})
    )
    async with world({"orders": 4}, large) as w:
        w.load(dict.fromkeys(P, 45_000.0))
        await until(w.steady)
        assert w.fleet.running == {0}

        w.load(dict.fromkeys(P, 62_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        assert Counter(w.group().members.assignment().values()) == {0: 3, 1: 1}
        await w.all_landed_once()


async def test_when_the_load_falls_a_consumer_is_retired() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 45_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())

        w.load(dict.fromkeys(P, 10_000.0))
        await until(lambda: len(w.fleet.running) == 1 and w.steady())
        assert any(isinstance(m, Goodbye) for m in w.metadata_messages())
        await w.all_landed_once()


async def test_a_partition_that_appears_is_read_from_its_beginning() -> None:
    async with world({"orders": 2}) as w:
        w.load(dict.fromkeys(P[:2], 20_000.0))
        await until(w.steady)
        w.topics.create("orders", 4)
        w.topics.produce(P[3], *[b"early"] * 10)
        w.load({P[3]: 5_000.0})
        await until(w.steady)
        await w.all_landed_once()


async def test_a_killed_consumer_loses_and_doubles_nothing() -> None:
    """Its last commit lands after the kill: the next writer must find it when it resolves."""
    async with world({"orders": 4}) as w:
        w.write_s = 3.0
        w.load(dict.fromkeys(P, 35_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        for _ in range(5):
            await asyncio.sleep(2.7)
            w.fleet.kill(min(w.fleet.running))
        await until(w.steady)
        await w.all_landed_once()


async def test_a_consumer_that_never_comes_back_is_declared_dead_and_replaced() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        w.fleet.restart_s = 1e6
        w.fleet.kill(Slot(0))
        w.fleet.restart_s = 1.0
        await until(lambda: w.fleet.starts[Slot(0)] > 1 or len(w.fleet.starts) > 1)
        await until(w.steady)
        await w.all_landed_once()


async def test_the_death_of_the_controller_stops_no_data() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        w.kill_controller()
        before = w.landed()
        await asyncio.sleep(60)
        assert w.landed() > before + 50 * 4 * 20  # 20 records/s of each partition
        w.start_controller()
        await until(w.steady)
        await w.all_landed_once()


async def test_the_later_claim_leads() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        second = w.start_controller()
        await until(lambda: w.tasks[1].done() and w.steady())
        assert not second.done()
        w.load(dict.fromkeys(P, 45_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.all_landed_once()


@pytest.mark.parametrize("dies_after", range(1, 26))
async def test_the_controller_dies_after_any_of_its_records(dies_after: int) -> None:
    """Kill it after its nth record; its successor rebuilds everything from partition 0."""
    async with world({"orders": 4, "clicks": 2}) as w:
        clicks = [TopicPartition("clicks", i) for i in range(2)]
        w.load(dict.fromkeys([*P, *clicks], 15_000.0))
        await until(w.steady)
        w.kill_controller()
        w.start_controller(dies_after=dies_after)
        w.load(dict.fromkeys([*P, *clicks], 45_000.0))
        await until(lambda: w.controller_dead() or (len(w.fleet.running) > 2 and w.steady()))
        w.kill_controller()
        await asyncio.sleep(dies_after % 4)
        w.start_controller()
        await until(lambda: len(w.fleet.running) > 2 and w.steady())
        await w.all_landed_once()


async def test_with_a_slow_spark_batches_grow_and_then_fetching_stops() -> None:
    async with world({"orders": 4}) as w:
        w.write_s = 20.0
        w.load(dict.fromkeys(P, 25_000.0))
        await until(w.steady)
        await asyncio.sleep(120)
        await w.all_landed_once(300.0)


async def test_a_broker_outage_loses_and_doubles_nothing() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        await w.bus.go_down()
        await asyncio.sleep(20)
        await w.bus.come_up()
        await until(w.steady)
        await w.all_landed_once()


async def test_a_recreated_topic_longer_than_the_old_one_is_read_from_its_beginning() -> None:
    """Its end offset does not reveal that it is new; only its id does."""
    async with world({"orders": 2}) as w:
        w.load(dict.fromkeys(P[:2], 20_000.0))
        await until(w.steady)
        await asyncio.sleep(20)
        was = w.topics.bounds(P[0])[1]
        w.topics.delete("orders")
        w.topics.create("orders", 2)
        w.topics.produce(P[0], *[b"anew"] * (2 * was))
        await until(lambda: b"anew" in w.values(P[0]))
        await until(w.steady)
        await asyncio.sleep(30)
        assert w.values(P[0]).count(b"anew") == 2 * was


async def test_a_recreated_topic_is_read_from_its_beginning() -> None:
    async with world({"orders": 2}) as w:
        w.load(dict.fromkeys(P[:2], 20_000.0))
        await until(w.steady)
        await asyncio.sleep(20)
        w.topics.delete("orders")
        w.topics.create("orders", 2)
        w.topics.produce(P[0], *[b"anew"] * 5)
        await until(lambda: b"anew" in w.values(P[0]))
        assert w.values(P[0]).count(b"anew") == 5
