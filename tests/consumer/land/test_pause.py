"""A person pauses a table: nothing lands until it is resumed, whoever writes it meanwhile."""

import pytest

from binwright.consumer.decide.land.compaction import CompactionConfig
from binwright.consumer.land import table_writer
from binwright.consumer.land.maintenance import MaintenanceConfig
from binwright.kafka.control_records import LANDING_PARTITIONS
from binwright.protocol.errors import BrokerUnavailable

from .scene import (
    LANDING,
    ORDERS,
    P,
    Process,
    Q,
    Scene,
    once,
    process,
    seconds,
    writing,
)

pytestmark = pytest.mark.looptime

BY = "paused by ann@host at 1970-01-01 00:00:00 UTC: a repair"


async def pause(scene: Scene) -> None:
    await scene.order(paused=True)
    await seconds(5)


async def resume(scene: Scene) -> None:
    await scene.order(paused=False)
    await seconds(10)


def appends(writer: Process) -> int:
    return sum(name == "append" for name, _ in writer.lake.calls)


async def test_a_paused_table_lands_nothing_and_all_that_waited_once_it_is_resumed() -> None:
    async with writing() as (scene, writer):
        await scene.land({P: (0, 3)})
        await seconds(5)
        await pause(scene)
        await scene.land({P: (3, 6), Q: (0, 2)})
        await seconds(60)
        assert scene.landed(P) == once(3)
        assert (writer.report().state, writer.report().fault) == ("paused", BY)

        await resume(scene)
        assert scene.landed(P) == once(6)
        assert scene.landed(Q) == once(2)
        assert (writer.report().state, writer.report().fault) == ("landing", "")


async def test_the_next_writer_keeps_to_a_pause() -> None:
    async with writing() as (scene, _):
        await pause(scene)
        await scene.land({P: (0, 3)})
    async with process(scene, "orders", name="w2") as writer:
        await seconds(60)
        assert writer.report().state == "paused"
        assert scene.landed(P) == once(0)
        await resume(scene)
        assert scene.landed(P) == once(3)


async def test_an_order_counts_that_no_stamp_holds_yet() -> None:
    """The writer that read it dies at once: the next one reads it again."""
    async with writing() as (scene, writer):
        await scene.order(paused=True)
        writer.kill()
    await scene.land({P: (0, 3)})
    async with process(scene, "orders", name="w2") as writer:
        await seconds(60)
        assert writer.report().state == "paused"
        assert appends(writer) == 0


async def test_a_long_pause_takes_no_memory() -> None:
    async with writing() as (scene, writer):
        await pause(scene)
        for n in range(50):
            await scene.land({P: (n, n + 1)})
        await seconds(60)
        assert writer.report().pending_bytes == 0
        await resume(scene)
        assert scene.landed(P) == once(50)


async def test_a_table_that_remembers_all_that_it_may_is_paused_and_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_writer, "MOST_PENDING", 2)
    async with writing() as (scene, writer):
        scene.produce(P, 9)
        for first in (3, 6):
            await scene.stage({P: (first, first + 3)})
        await seconds(1)
        await pause(scene)
        assert writer.report().state == "paused"
        assert writer.report().pending_bytes > 0
        await scene.stage({P: (0, 3)})
        await seconds(10)
        assert scene.landed(P) == once(0)
        await resume(scene)
        assert scene.landed(P) == once(9)


async def test_a_paused_table_is_neither_compacted_nor_vacuumed() -> None:
    scene = await Scene().prepare()
    maintenance = MaintenanceConfig(CompactionConfig(1), vacuum_interval_s=100.0)

    def jobs(writer: Process) -> int:
        return sum(name in {"compact", "vacuum"} for name, _ in writer.lake.calls)

    async with process(scene, "orders", maintenance=maintenance) as writer:
        await scene.land({P: (0, 3)})
        await seconds(300)
        before = jobs(writer)
        assert before >= 2
        await pause(scene)
        await seconds(300)
        assert jobs(writer) <= before + 1  # one that was due
        await resume(scene)
        await seconds(300)
        assert jobs(writer) > before + 2


async def test_a_pause_outlives_its_stamps_and_the_landing_topic() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders", idle_stamp_s=100.0) as writer:
        for n in range(3):
            await scene.land({P: (n, n + 1)})
        await seconds(5)
        await pause(scene)
        before = len(scene.storage.table("orders").commits)
        await seconds(350)
        assert len(scene.storage.table("orders").commits) == before + 3
        scene.bus.delete(LANDING)
        await scene.bus.ensure(LANDING, LANDING_PARTITIONS, {})
    async with process(scene, "orders", name="w2") as writer:
        await scene.land({P: (3, 6)})
        await seconds(30)
        assert writer.report().state == "paused"
        await resume(scene)
        assert scene.landed(P) == once(6)


async def test_without_the_orders_topic_tables_land_and_follow_orders_once_it_is_there() -> None:
    """A controller creates it: one of an older version leads until it is replaced, too."""
    async with writing() as (scene, writer):
        scene.bus.delete(ORDERS)
        await scene.land({P: (0, 3)})
        await seconds(40)
        assert scene.landed(P) == once(3)
        await scene.bus.ensure(ORDERS, 1, {})
        await scene.order(paused=True)
        await seconds(60)
        assert writer.report().state == "paused"


async def test_while_kafka_keeps_the_orders_from_it_a_writer_keeps_to_the_stamp(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with writing() as (scene, _):
        await pause(scene)
    end = scene.bus.end

    async def unreachable(topic: str, partition: int) -> int:
        if topic == ORDERS:
            raise BrokerUnavailable("no leader")
        return await end(topic, partition)

    monkeypatch.setattr(scene.bus, "end", unreachable)
    await scene.order(paused=False)
    await scene.land({P: (0, 3)})
    async with process(scene, "orders", name="w2") as writer:
        await seconds(120)
        assert writer.report().state == "paused"
        assert scene.landed(P) == once(0)
        monkeypatch.setattr(scene.bus, "end", end)
        await seconds(60)
        assert scene.landed(P) == once(3)
