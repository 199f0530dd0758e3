"""A person has bad records decoded again: each record is in one of the two tables, once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from binwright.protocol.metadata import TableOperation
from binwright.tables.ports import Table
from binwright.tables.stamp import Stamp, read_stamp

from .scene import CLUSTER, COLUMNS, GROUP, P, Process, Q, Scene, once, process, seconds

pytestmark = pytest.mark.looptime

TABLE = Table("orders", GROUP, CLUSTER, COLUMNS)


@asynccontextmanager
async def with_bad_records(freshness_s: float = 1.0) -> AsyncIterator[tuple[Scene, Process]]:
    """Run a writer of a table all of whose records are bad: six of one partition, two of another.

    What is decoded from then on is good.
    """
    scene = await Scene(columns=COLUMNS).prepare()
    scene.staging.is_bad = lambda _: True
    async with process(scene, "orders", freshness_s=freshness_s) as writer:
        await scene.land({P: (0, 6), Q: (0, 2)})
        await seconds(10)
        assert scene.bad() == {P: [*range(6)], Q: [0, 1]}
        scene.staging.is_bad = lambda _: False
        yield scene, writer


def operation(writer: Process) -> TableOperation:
    found = writer.report().operation
    assert found is not None
    return found


def rows(scene: Scene) -> dict[object, list[int]]:
    """Return the offsets of rows, without bad records, in the order in which they landed."""
    return {p: [r.offset for r in rs] for p, rs in scene.storage.table("orders").rows.items() if rs}


def newest_stamp(scene: Scene) -> Stamp:
    stamp = read_stamp(scene.storage.table("orders").commits[-1].metadata, TABLE)
    assert stamp is not None
    return stamp


async def until_called(writer: Process, call: str) -> None:
    """Wait until a call begins; each takes a while."""
    assert writer.lake.latency_s
    async with asyncio.timeout(60):
        while (call, "orders") not in writer.lake.calls[-1:]:
            await seconds(0.1)


def all_moved(scene: Scene) -> None:
    assert scene.landed(P) == once(6)
    assert scene.landed(Q) == once(2)
    assert scene.bad() == {}


async def test_what_decodes_now_moves_to_the_table() -> None:
    async with with_bad_records() as (scene, writer):
        await scene.replay()
        await seconds(10)
        all_moved(scene)
        assert rows(scene) == {P: [*range(6)], Q: [0, 1]}
        done = operation(writer)
        assert (done.state, done.moved, done.left, done.by) == (
            "done",
            {"malformed": 8},
            {},
            "ann@host",
        )
        stamp = newest_stamp(scene)
        assert stamp.operation is not None
        assert (stamp.operation.id, stamp.operation.state) == (done.id, "done")
        assert not any(name.startswith("portion") for name in scene.files())


async def test_what_does_not_decode_stays_and_what_is_left_out_is_counted() -> None:
    async with with_bad_records() as (scene, writer):
        scene.staging.is_bad = lambda record: record.offset in {0, 4}
        scene.staging.is_skipped = lambda record: record.offset == 1
        await scene.replay()
        await seconds(10)
        assert rows(scene) == {P: [2, 3, 5]}
        assert scene.bad() == {P: [0, 4], Q: [0]}
        done = operation(writer)
        assert (done.moved, done.left, done.skipped) == ({"malformed": 3}, {"malformed": 3}, 2)
        reasons = {reason for _, reason in scene.storage.table("orders__bad").reasons.values()}
        assert reasons == {"mended in vain"}


@pytest.mark.parametrize("call", ["bad_portion", "append", "change_bad"])
async def test_it_goes_on_wherever_its_writer_dies(call: str) -> None:
    """Also between the append and what leaves the bad records: the stamp tells."""
    async with with_bad_records() as (scene, writer):
        writer.lake.latency_s = 2.0
        await scene.replay()
        await until_called(writer, call)
        writer.kill()
    async with process(scene, "orders", name="w2") as second:
        await seconds(30)
        all_moved(scene)
        assert operation(second).state == "done"
        assert operation(second).moved == {"malformed": 8}


async def test_a_writer_that_dies_before_bad_records_leave_doubles_no_row() -> None:
    async with with_bad_records() as (scene, writer):
        writer.lake.latency_s = 1.0
        await scene.replay()
        await until_called(writer, "change_bad")
        writer.kill()
        stamp = newest_stamp(scene)
        assert stamp.operation is not None
        assert stamp.operation.unsettled == {P: (0, 6), Q: (0, 2)}
        assert scene.landed(P)[0] == 2  # both tables have it
    async with process(scene, "orders", name="w2") as second:
        await seconds(30)
        all_moved(scene)
        assert ("landed_bad", "orders") in second.lake.calls
        assert operation(second).moved == {"malformed": 8}


async def test_rows_land_in_time_beside_it() -> None:
    async with with_bad_records(freshness_s=5.0) as (scene, writer):
        writer.lake.latency_s = 1.0
        await scene.replay()
        await scene.land({P: (6, 9)})
        await seconds(8)
        assert scene.landed(P)[8] == 1
        await seconds(30)
        assert scene.landed(P) == once(9)
        assert operation(writer).state == "done"


async def test_bad_records_that_may_land_again_are_left_alone() -> None:
    """A batch whose bad records have landed alone comes again: the table has not committed them."""
    scene = await Scene(columns=COLUMNS).prepare()
    async with process(scene, "orders") as writer:
        await seconds(10)
        scene.staging.is_bad = lambda record: record.offset == 0
        writer.lake.refusing.add("orders")
        await scene.land({P: (0, 3)})
        await seconds(20)
        assert scene.bad() == {P: [0]}
        scene.staging.files["orders"].clear()  # it is read again, decoded as it is now
        scene.staging.is_bad = lambda _: False
        writer.lake.refusing.clear()
        await scene.replay()
        await seconds(20)
        assert (operation(writer).state, operation(writer).moved) == ("done", {})
        await scene.stage({P: (0, 3)})
        await seconds(20)
        assert scene.landed(P) == once(3)
        assert scene.bad() == {P: [0]}
