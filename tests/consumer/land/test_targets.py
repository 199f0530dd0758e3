"""Several tables of one topic: each lands every row once, and none holds another."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.consumer.land.scene import (
    CLUSTER,
    GROUP,
    P,
    Process,
    Scene,
    once,
    process,
    seconds,
)

from binwright.consumer.land.effects import OffsetCommitter
from binwright.kafka.control_records import landing_partition
from binwright.protocol.errors import TableRefused
from binwright.tables.ports import Table

pytestmark = pytest.mark.looptime(noop_cycles=1)

RAW, TYPED = "orders_raw", "orders_typed"
BOTH = (RAW, TYPED)


async def two_tables() -> Scene:
    scene = await Scene({"orders": 1}).prepare()
    scene.named = {"orders": BOTH}
    return scene


@asynccontextmanager
async def writing() -> AsyncIterator[tuple[Scene, Process]]:
    """Run the writers of both tables, whose claims are committed."""
    scene = await two_tables()
    async with process(scene, "orders") as writer:
        await seconds(5)
        yield scene, writer


async def land(scene: Scene, first: int, end: int, *tables: str) -> None:
    """Produce what is missing of these offsets, and stage them for these tables, else both."""
    if (missing := end - scene.topics.bounds(P)[1]) > 0:
        scene.produce(P, missing)
    for table in tables or BOTH:
        await scene.stage({P: (first, end)}, table=table)


def landed(scene: Scene, table: str) -> Counter[int]:
    return Counter(record.offset for record in scene.storage.table(table).rows.get(P, []))


def committed(scene: Scene) -> int | None:
    offset = scene.topics.offsets[GROUP].get(P)
    return None if offset is None else offset.offset


async def test_each_table_lands_every_row_once() -> None:
    async with writing() as (scene, writer):
        for n in range(5):
            await land(scene, 10 * n, 10 * n + 10)
            await seconds(2)
        await seconds(5)
        reports = {name: writer.report(name) for name in BOTH}
    assert [landed(scene, table) for table in BOTH] == [once(50)] * 2
    assert {report.topic for report in reports.values()} == {"orders"}
    assert [reports[table].committed for table in BOTH] == [{P: 50}] * 2
    assert not scene.files(RAW)
    assert not scene.files(TYPED)
    assert committed(scene) == 50


async def test_a_table_that_refuses_rows_holds_no_other_and_lands_them_later() -> None:
    async with writing() as (scene, writer):
        writer.lake.refusing.add(TYPED)
        for n in range(5):
            await land(scene, 10 * n, 10 * n + 10)
            await seconds(3)
        assert (writer.report(RAW).state, writer.report(TYPED).state) == ("landing", "refused")
        assert landed(scene, RAW) == once(50)
        assert not landed(scene, TYPED)
        assert len(scene.files(TYPED)) == 5, "what has not landed stays"
        assert committed(scene) == 0

        writer.lake.refusing.clear()
        await seconds(30)
        assert landed(scene, TYPED) == once(50)
        assert committed(scene) == 50


async def test_a_table_that_cannot_be_opened_holds_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = await two_tables()
    async with process(scene, "orders") as writer:
        opened = writer.lake.open

        async def one_alone(table: Table) -> None:
            if table.name == TYPED:
                raise TableRefused("injected failure")
            await opened(table)

        monkeypatch.setattr(writer.lake, "open", one_alone)
        await land(scene, 0, 10)
        await seconds(20)
        assert landed(scene, RAW) == once(10)
        assert writer.report(TYPED).state == "refused"
        assert committed(scene) is None, "what the other table has is not known"
        monkeypatch.setattr(writer.lake, "open", opened)
        await seconds(30)
    assert landed(scene, TYPED) == once(10)
    assert committed(scene) == 10


def forget_history(scene: Scene, table: str) -> None:
    """Leave a table its rows, and no stamp."""
    old = scene.storage.tables.pop(table)
    new = scene.storage.create(table, Table("orders", GROUP, CLUSTER, named=table))
    new.rows = {partition: list(rows) for partition, rows in old.rows.items()}


async def lag_and_lose_the_history() -> Counter[int]:
    """Let one table be ahead when another one, without rows and stamps, is claimed anew."""
    scene = await two_tables()
    async with process(scene, "orders") as writer:
        await seconds(5)
        writer.lake.refusing.add(TYPED)
        await land(scene, 0, 30)
        await seconds(20)
    forget_history(scene, TYPED)
    async with process(scene, "orders", name="w2"):
        await seconds(20)
    return landed(scene, TYPED)


async def test_a_table_without_a_history_goes_on_at_what_all_tables_have() -> None:
    assert await lag_and_lose_the_history() == once(30)


async def test_by_the_offset_of_another_table_its_rows_would_be_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    add = OffsetCommitter.add

    def newest(self: OffsetCommitter, table: str, offsets: object) -> None:
        self._landed = {table: {}}
        add(self, table, offsets)  # type: ignore[arg-type]

    monkeypatch.setattr(OffsetCommitter, "add", newest)
    assert await lag_and_lose_the_history() != once(30)


async def test_a_table_that_is_added_begins_where_the_group_stands() -> None:
    """The first run is of an older version: no announcement names its table."""
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 30)})
        await seconds(10)
    await scene.land({P: (30, 40)})
    scene.named = {"orders": ("orders", TYPED)}
    async with process(scene, "orders", name="w2") as writer:
        await scene.stage({P: (0, 40)}, table=TYPED)
        await seconds(10)
        assert writer.report("orders").committed == {P: 40}
    assert landed(scene, "orders") == once(40), "what was staged before the upgrade lands"
    assert landed(scene, TYPED) == once(40, 30)


async def test_rows_that_one_table_lacks_are_read_again_and_double_none_of_the_other() -> None:
    async with writing() as (scene, writer):
        await land(scene, 0, 10)
        await land(scene, 10, 20, RAW)
        await land(scene, 20, 30)
        await seconds(30)
        assert landed(scene, RAW) == once(30)
        assert landed(scene, TYPED) == once(10)
        assert {tuple(gap.items()) for gap in writer.gaps} == {((P, 10),)}
        await land(scene, 10, 30)
        await seconds(10)
        assert [landed(scene, table) for table in BOTH] == [once(30)] * 2
        assert not scene.files(RAW)


async def test_a_process_that_loses_one_table_gives_up_the_topic() -> None:
    scene = await two_tables()
    async with process(scene, "orders") as one, process(scene, name="w2") as other:
        await seconds(5)
        other.writers.start(["orders"])
        await seconds(5)
        await land(scene, 0, 10)
        await seconds(10)
        assert one.lost == ["orders"]
        assert not one.writers.reports()
        assert (other.lost, other.report(TYPED).committed) == ([], {P: 10})
    assert [landed(scene, table) for table in BOTH] == [once(10)] * 2


async def test_kills_in_between_double_and_lose_nothing() -> None:
    scene = await two_tables()
    for n in range(6):
        async with process(scene, "orders", name=f"w{n}") as writer:
            writer.lake.latency_s = 0.3 * n
            await land(scene, 10 * n, 10 * n + 10)
            await seconds(1.1 + 0.7 * n)
            writer.kill()
    async with process(scene, "orders", name="last"):
        await seconds(30)
    assert [landed(scene, table) for table in BOTH] == [once(60)] * 2


async def test_an_announcement_of_another_topic_is_refused() -> None:
    async with writing() as (scene, writer):
        staged = await scene.write({P: (0, 0)}, table=RAW)
        await scene.announce(replace(staged, topic="clicks", ranges={}))
        await land(scene, 0, 10)
        await seconds(10)
        assert writer.report(RAW).committed == {P: 10}


async def test_each_table_has_its_part_of_the_landing_topic() -> None:
    assert len({landing_partition(table) for table in (RAW, TYPED, "orders")}) > 1


async def test_a_topic_whose_table_has_no_valid_name_is_reported_and_stopped() -> None:
    scene = await two_tables()
    found = Process(scene, "w1")

    def refuse(topic: str) -> tuple[()]:
        raise TableRefused(f"topic {topic} has no table")

    object.__setattr__(found.context, "targets", refuse)
    running = asyncio.create_task(found.writers.run())
    found.writers.start(["orders"])
    await seconds(5)
    report = found.report()
    assert (report.state, report.fault) == ("refused", "topic orders has no table")
    found.writers.stop(["orders"])
    await seconds(5)
    assert [topic for topic, _ in found.written] == ["orders"]
    running.cancel()
