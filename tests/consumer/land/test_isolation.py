"""One table's trouble is its own: permits, memory, and tables with a past of their own."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from binwright.consumer.land.context import MOST_PENDING
from binwright.consumer.land.table_writer import TableWriter
from binwright.protocol.model import TopicPartition
from binwright.tables.ports import Batch, Table
from binwright.testing.lake_storage import FakeTable

from .scene import CLUSTER, GROUP, P, Process, Scene, once, process, seconds, writing

pytestmark = pytest.mark.looptime

HUNG = [f"hung{n}" for n in range(4)]


class HangingLake:
    """Lets appends of some tables hang, until they are given up."""

    def __init__(self, writer: Process, tables: list[str]) -> None:
        self._append, self._tables = writer.lake.append, tables
        writer.lake.append = self.append  # type: ignore[method-assign]

    async def append(self, table: str, batch: Batch, lease: str, stamp: str) -> None:
        if table in self._tables:
            await asyncio.sleep(1e6)
        await self._append(table, batch, lease, stamp)


async def land_hung_then_orders(scene: Scene, writer: Process) -> None:
    await seconds(5)
    HangingLake(writer, HUNG)
    for topic in HUNG:
        await scene.land({TopicPartition(topic, 0): (0, 10)})
    await seconds(5)
    await scene.land({P: (0, 10)})


async def test_a_server_that_hangs_keeps_no_permit_of_another() -> None:
    scene = await Scene({"orders": 1, **dict.fromkeys(HUNG, 1)}).prepare()
    frozen = dict.fromkeys(HUNG, "sc://frozen")
    async with process(scene, "orders", *HUNG, servers=frozen, append_limit_s=1e6) as writer:
        await land_hung_then_orders(scene, writer)
        await seconds(5)

        assert scene.landed() == once(10)
        assert writer.report().fault == ""


async def test_an_append_that_hangs_gives_its_permit_back_and_the_wait_is_reported() -> None:
    scene = await Scene({"orders": 1, **dict.fromkeys(HUNG, 1)}).prepare()
    async with process(scene, "orders", *HUNG, append_limit_s=60.0) as writer:
        await land_hung_then_orders(scene, writer)
        await seconds(20)
        assert writer.report().fault == "waits for other tables' appends on sc://spark"
        await seconds(120)

        assert scene.landed() == once(10)
        assert writer.report().fault == ""


async def test_of_a_backlog_only_what_some_commits_take_is_in_memory() -> None:
    backlog = 2 * MOST_PENDING + 10
    async with writing() as (scene, writer):
        writer.lake.refusing.add("orders")
        for n in range(backlog):
            await scene.land({P: (n, n + 1)})
        await seconds(30)
        table: TableWriter = writer.writers._tables["orders"].writer
        chain = table._writer.chain
        assert chain is not None
        assert MOST_PENDING <= len(chain.pending) <= 2 * MOST_PENDING

        writer.lake.refusing.clear()
        await seconds(120)
    assert scene.landed() == once(backlog)
    assert not scene.files()


def past(scene: Scene) -> FakeTable:
    """Replace the table by one with the same rows and none of its history, as a clone has."""
    old = scene.storage.tables.pop("orders")
    new = scene.storage.create("orders", Table("orders", GROUP, CLUSTER, named="orders"))
    new.rows = {partition: list(rows) for partition, rows in old.rows.items()}
    return new


async def test_rows_of_another_cluster_are_refused_and_nothing_is_deleted() -> None:
    """The cluster was built anew, and the table's property changed: new rows would be lost."""
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 30)})
        await seconds(10)
    past(scene)
    scene.topics.delete("orders")
    scene.topics.create("orders", 1)
    scene.topics.offsets[GROUP].clear()
    async with process(scene, "orders", name="w2") as writer:
        file = await scene.land({P: (0, 10)})
        await seconds(60)
        report = writer.report()
        assert report.state == "refused"
        assert "reach up to offset 30, but the topic ends at 10" in report.fault
        assert file in scene.files()

    assert scene.landed() == Counter(range(30))


async def test_a_group_offset_that_is_set_back_is_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 30)})
        await seconds(10)
        known = scene.topics.offsets[GROUP][P]
    scene.topics.offsets[GROUP][P] = replace(known, offset=35)
    async with process(scene, "orders", name="w2"):
        await seconds(10)

    assert "offset.set_back" in capsys.readouterr().out
    assert scene.topics.offsets[GROUP][P].offset == 30
