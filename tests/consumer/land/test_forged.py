"""Announcements that a writer of the landing topic could make up: no row is lost or doubled.

Of each file the true announcement comes, too, as consumers send it; and what the writer says is
missing is read and staged again.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields, replace

import pytest

from binwright.protocol.landing import OffsetRange, Staged
from binwright.protocol.model import Slot, TopicPartition
from binwright.tables.ports import Commit, Table
from binwright.tables.stamp import read_stamp

from .scene import CLUSTER, GROUP, P, Process, Q, Scene, once, process, seconds

pytestmark = pytest.mark.looptime

FORGED: Mapping[str, tuple[object, ...]] = {
    "topic": ("clicks",),
    "table": ("clicks", "another"),
    "topic_id": ("of-another", None),
    "file": ("0-1-3-0a1b2c3d.parquet", "0-1-99-0a1b2c3d.parquet", "x.parquet"),
    "rows": (0, 1, 1 << 62),
    "bytes": (0, 1 << 62),
    "ranges": (
        {},
        {P: OffsetRange(0, 5)},
        {P: OffsetRange(10, 10)},
        {P: OffsetRange(10, 15)},
        {P: OffsetRange(5, 20)},
        {P: OffsetRange(10, 1 << 62)},
        {P: OffsetRange(20, 30)},
        {P: OffsetRange(10, 20), Q: OffsetRange(0, 10)},
        {Q: OffsetRange(0, 10)},
        {TopicPartition("orders", 99): OffsetRange(0, 10)},
    ),
    "slot": (Slot(7),),
    "epoch": (9,),
    "age_s": (1e300,),
    "cut": ((P,), (Q,)),
    "kind": ("staged/9",),
}
CASES = [(name, value) for name, values in FORGED.items() for value in values]


async def read_again(scene: Scene, writer: Process) -> None:
    """Stage what is missing, as its reader does: from there to the end of the log."""
    while True:
        await seconds(1)
        gaps, writer.gaps[:] = list(writer.gaps), []
        for partition, offset in {p: o for gap in gaps for p, o in gap.items()}.items():
            end = scene.topics.bounds(partition)[1]
            await scene.stage({partition: (offset, end)})


@asynccontextmanager
async def with_reader(scene: Scene) -> AsyncIterator[Process]:
    async with process(scene, "orders") as writer:
        reading = asyncio.create_task(read_again(scene, writer))
        try:
            yield writer
        finally:
            reading.cancel()
            await asyncio.wait({reading})


def test_every_field_is_forged() -> None:
    assert FORGED.keys() == {field.name for field in fields(Staged)}


@pytest.mark.parametrize("order", ["first", "last", "alone first"])
@pytest.mark.parametrize(("name", "value"), CASES)
async def test_a_forged_field_loses_and_doubles_no_row(
    name: str, value: object, order: str
) -> None:
    scene = await Scene().prepare()
    async with with_reader(scene):
        await scene.land({P: (0, 10)})
        await seconds(5)
        scene.produce(P, 20)
        second, third = await scene.write({P: (10, 20)}), await scene.write({P: (20, 30)})
        forged = replace(second, **{name: value})  # type: ignore[arg-type]
        if order == "alone first":
            await scene.announce(forged)
            await seconds(40)
        sent = [second, forged, third] if order == "last" else [forged, second, third, forged]
        for each in sent:
            await scene.announce(each)
        await seconds(120)
        assert scene.landed(P) == once(30)
        assert scene.landed(Q) == once(0)


async def test_a_file_that_waits_is_not_deleted_by_an_announcement_of_rows_that_have_landed() -> (
    None
):
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 10)})
        await seconds(5)
        scene.produce(P, 20)
        waiting = await scene.write({P: (20, 30)})
        await scene.announce(replace(waiting, ranges={P: OffsetRange(0, 10)}))
        await seconds(5)
        assert waiting.file in scene.files()
        await scene.announce(waiting)
        await scene.stage({P: (10, 20)})
        await seconds(10)
        assert scene.landed(P) == once(30)


async def test_a_file_of_an_older_version_states_nothing_of_cuts_and_lands() -> None:
    scene = await Scene().prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 10)})
        await seconds(5)
        scene.topics.cut(P, 5)
        scene.produce(P, 5)
        staged = await scene.write({P: (5, 10)}, cut=True)
        file = scene.staging.files["orders"][staged.file]
        file.footer = replace(file.footer, cut=None)
        await scene.announce(staged)
        await seconds(10)
        assert scene.landed(P) == once(10) + once(10, 5)


@pytest.mark.parametrize(
    "false",
    [
        {"committed": {P: 1 << 62}},
        {"cuts": {P: 1 << 62}},
        {"committed": {P: 20}, "full": False},
        {"needed_from": 1 << 62},
    ],
)
async def test_a_false_stamp_stops_its_table_or_loses_nothing(false: dict[str, object]) -> None:
    """As whoever may write to the lake could commit it: alone, or after all that has landed."""
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 10)})
        await seconds(5)
    table = scene.storage.table("orders")
    newest = read_stamp(table.commits[-1].metadata, Table("orders", GROUP, CLUSTER))
    assert newest is not None
    stamp = replace(newest, full=True, committed={P: 10})
    forged = replace(stamp, **false)  # type: ignore[arg-type]
    if not forged.full:
        del table.commits[1:]
    version = len(table.commits)
    table.commits.append(Commit(version, forged.encode()))
    scene.produce(P, 20)
    staged = await scene.stage({P: (10, 30)})
    async with with_reader(scene) as writer:
        await seconds(60)
        if "needed_from" in false:
            assert scene.landed(P) == once(30)
            return
        assert writer.report().state == "refused"
        assert f"version {version} " in writer.report().fault
        assert staged in scene.files()
        assert scene.topics.offsets[GROUP][P].offset <= 10


async def test_a_log_that_was_cut_without_a_writer_goes_on_with_its_next_record() -> None:
    scene = await Scene({"orders": 1}).prepare()
    async with process(scene, "orders"):
        await scene.land({P: (0, 10)})
        await seconds(5)
    scene.topics.cut(P, 5)
    async with process(scene, "orders", name="w2") as writer:
        await seconds(30)
        assert writer.report().state == "refused"
        scene.produce(P, 1)
        await scene.stage({P: (5, 6)}, cut=True)
        await seconds(30)
        assert writer.report().state == "landing"
        assert scene.landed(P) == once(10) + Counter([5])
