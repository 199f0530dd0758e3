"""A person has a table filled from before its beginning: each offset lands once, whoever dies."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from binwright.consumer.read.undecodable import mark_names
from binwright.protocol.model import TopicPartition
from binwright.protocol.orders import OperationOrder
from binwright.protocol.ports.kafka import Records, UndecodableBatch
from binwright.tables.columns import Columns
from binwright.testing.lake import Failure

from .scene import COLUMNS, P, Process, Q, Scene, once, process, seconds
from .test_replay import newest_stamp, operation, rows, until_called

pytestmark = pytest.mark.looptime

OLD = {P: 4_000, Q: 30}


async def with_old(columns: Columns | None = COLUMNS) -> Scene:
    """Return a scene whose topic has records that no table of the group takes: it begins behind."""
    scene = await Scene(columns=columns).prepare()
    for partition, records in OLD.items():
        scene.produce(partition, records)
    return scene


@asynccontextmanager
async def begun(
    columns: Columns | None = COLUMNS, **options: Any
) -> AsyncIterator[tuple[Scene, Process]]:
    """Run a writer of a table that begins behind these records, and has two others."""
    scene = await with_old(columns)
    async with process(scene, "orders", from_latest=True, **options) as writer:
        await seconds(10)
        await scene.land({P: (4_000, 4_002)})
        await seconds(10)
        assert rows(scene) == {P: [4_000, 4_001]}
        yield scene, writer


def landed_all(scene: Scene, ends: Mapping[TopicPartition, int]) -> None:
    for partition, end in ends.items():
        assert scene.landed(partition) == once(end)


@pytest.mark.parametrize("columns", [COLUMNS, None])
async def test_what_kafka_has_of_before_lands_once(columns: Columns | None) -> None:
    async with begun(columns) as (scene, writer):
        await scene.backfill()
        await seconds(60)
        landed_all(scene, {P: 4_002, Q: 30})
        done = operation(writer)
        assert (done.state, done.rows, done.to_go, done.gone) == ("done", 4_030, 0, 0)
        assert writer.report().committed == {P: 4_002, Q: 30}, "what lands live is as it was"
        stamp = newest_stamp(scene) if columns else None
        assert stamp is None or (stamp.operation and stamp.operation.ranges == {})
        assert not any(name.startswith("portion") for name in scene.files())
        commits = len(scene.storage.table("orders").commits)
        await scene.backfill()
        await seconds(20)
        assert len(scene.storage.table("orders").commits) == commits, "an order counts once"
        await scene.backfill(2)
        await seconds(20)
        assert (operation(writer).id[-1], operation(writer).rows) == ("2", 0)
        landed_all(scene, {P: 4_002, Q: 30})


async def test_a_table_has_no_gap_at_any_time_and_rows_land_beside() -> None:
    async with begun() as (scene, writer):
        writer.lake.latency_s = 0.5
        await scene.backfill()
        before = 0
        while scene.landed(P) != once(4_002 + before):
            await scene.land({P: (4_002 + before, 4_003 + before)})
            before += 1
            await seconds(1)
            found = scene.landed(P)
            assert found == once(max(found) + 1, min(found))
        assert before > 2, "it takes a while"


async def test_only_what_is_named_lands() -> None:
    async with begun() as (scene, writer):
        await scene.backfill(offsets={P: 3_900})
        await seconds(30)
        assert scene.landed(P) == once(4_002, 3_900)
        assert scene.landed(Q) == once(0)
        await scene.backfill(2, since_ms=10**12)
        await seconds(30)
        assert (operation(writer).id[-1], operation(writer).rows) == ("2", 0)
        await scene.backfill(3, dry_run=True)
        await seconds(30)
        done = operation(writer)
        assert (done.state, done.to_go, done.rows) == ("done", 3_930, 0)
        assert scene.landed(Q) == once(0)


async def test_rows_of_a_time_land() -> None:
    scene = await Scene(columns=COLUMNS).prepare()
    scene.produce(P, 10)
    await seconds(100)
    scene.produce(P, 10)
    async with process(scene, "orders", from_latest=True) as writer:
        await scene.backfill(since_ms=50_000)
        await seconds(30)
        assert scene.landed(P) == once(20, 10)
        assert operation(writer).rows == 10


async def test_what_is_older_than_the_table_keeps_rows_does_not_land() -> None:
    scene = await with_old()
    scene.keep_s = 1.0  # a wall clock counts, and the records are of 1970
    async with process(scene, "orders", from_latest=True) as writer:
        await scene.backfill()
        await seconds(30)
        assert (operation(writer).state, operation(writer).rows) == ("done", 0)


async def test_bad_records_go_to_their_table_and_others_are_skipped() -> None:
    async with begun() as (scene, writer):
        scene.staging.is_bad = lambda record: record.offset % 1_000 == 7
        scene.staging.is_skipped = lambda record: record.offset < 1_000
        await scene.backfill()
        await seconds(60)
        assert {p: sorted(bad) for p, bad in scene.bad().items()} == {P: [1_007, 2_007, 3_007]}
        assert scene.landed(P) == once(4_002, 1_000)
        done = operation(writer)
        assert (done.rows, done.bad, done.skipped) == (2_997, 3, 1_030)
        assert (writer.report().bad, writer.report().rows) == (3, 3_002)


async def test_bad_records_of_one_order_do_not_land_again_by_the_next() -> None:
    async with begun() as (scene, writer):
        scene.staging.is_bad = lambda record: 3_000 <= record.offset < 3_010
        await scene.backfill(1, offsets={P: 3_000})
        await seconds(30)
        assert operation(writer).state == "done"
        await scene.backfill(2)
        await seconds(60)
        assert scene.bad() == {P: [*range(3_000, 3_010)]}


@asynccontextmanager
async def refused() -> AsyncIterator[tuple[Scene, Process]]:
    """Let the bad record of a portion land alone: the table does not take the rows beside it."""
    async with begun() as (scene, writer):
        scene.staging.is_bad = lambda record: record.offset == 3_500
        writer.lake.refusing.add("orders")
        await scene.backfill()
        await seconds(15)
        assert (scene.bad(), rows(scene)[P]) == ({P: [3_500]}, [4_000, 4_001])
        writer.lake.refusing.clear()
        yield scene, writer


async def test_what_landed_of_a_portion_is_no_beginning_for_a_replay() -> None:
    async with refused() as (scene, writer):
        scene.staging.is_bad = lambda _: False
        await scene.replay(2)
        await seconds(30)
        assert (operation(writer).state, rows(scene)[P]) == ("done", [4_000, 4_001])
        await scene.backfill(3)
        await seconds(60)
        landed_all(scene, {P: 4_002, Q: 30})
        await scene.replay(4)
        await seconds(30)
        assert scene.bad() == {}
        landed_all(scene, {P: 4_002, Q: 30})


async def test_nor_is_it_where_a_later_order_has_landed_less() -> None:
    async with refused() as (scene, writer):
        await scene.backfill(2, offsets={P: 3_600})
        await seconds(30)
        scene.staging.is_bad = lambda _: False
        await scene.replay(3)
        await seconds(30)
        assert sorted(rows(scene)[P]) == [*range(3_600, 4_002)]
        await scene.backfill(4)
        await seconds(60)
        await scene.replay(5)
        await seconds(30)
        assert (operation(writer).id[-1], operation(writer).state) == ("5", "done")
        landed_all(scene, {P: 4_002, Q: 30})


async def test_nor_is_it_once_it_is_erased() -> None:
    async with refused() as (scene, writer):
        order = OperationOrder(
            table="orders", id="2" * 32, work="erase", bad_where="kind = 'malformed'", by="ann"
        )
        await scene.give(order)
        await seconds(60)
        assert (operation(writer).work, scene.bad()) == ("erase", {})
        scene.staging.is_bad = lambda _: False
        await scene.backfill(3)
        await seconds(60)
        landed_all(scene, {P: 4_002, Q: 30})


async def test_too_many_bad_records_stop_it_and_another_order_replaces_it() -> None:
    async with begun(bad_share=0.1) as (scene, writer):
        scene.staging.is_bad = lambda record: 30 <= record.offset < 4_000
        await scene.backfill()
        await seconds(30)
        running = operation(writer)
        assert (running.state, "bad_share allows" in running.fault) == ("running", True)
        assert scene.bad() == {}
        await scene.land({P: (4_002, 4_004)})
        await seconds(10)
        assert scene.landed(P) == once(4_004, 4_000), "the table lands"
        scene.staging.is_bad = lambda _: False
        await scene.backfill(2)
        await seconds(60)
        assert (operation(writer).id[-1], operation(writer).state) == ("2", "done")
        landed_all(scene, {P: 4_004, Q: 30})


CALLS = ["lowest", "append", "append_bad", "stamp"]


@pytest.mark.parametrize("call", CALLS)
async def test_it_goes_on_wherever_its_writer_dies(call: str) -> None:
    async with begun() as (scene, writer):
        scene.staging.is_bad = lambda record: record.offset % 100 == 7
        writer.lake.latency_s = 1.0
        await scene.backfill()
        await until_called(writer, call)
        writer.kill()
    async with process(scene, "orders", name="w2") as second:
        await seconds(200)
        landed_all(scene, {P: 4_002, Q: 30})
        done = operation(second)
        assert (done.state, done.rows + done.bad) == ("done", 4_030)
        assert all(offset % 100 == 7 for offset in scene.bad()[P])


@pytest.mark.parametrize("failure", [Failure.CONFLICT, Failure.UNCLEAR, Failure.UNCLEAR_LANDED])
@pytest.mark.parametrize("call", ["append", "append_bad"])
async def test_a_commit_that_fails_is_tried_again(failure: Failure, call: str) -> None:
    async with begun() as (scene, writer):
        scene.staging.is_bad = lambda record: record.offset % 100 == 7
        writer.lake.latency_s = 0.5
        await scene.backfill()
        await until_called(writer, call)
        await seconds(0.5)
        writer.lake.fail_next(failure)
        await seconds(300)
        landed_all(scene, {P: 4_002, Q: 30})
        assert operation(writer).state == "done"


async def test_what_kafka_deletes_meanwhile_is_counted() -> None:
    async with begun() as (scene, writer):
        await until_some(scene, writer)
        scene.topics.delete_records(P, 1_000)
        await seconds(60)
        done = operation(writer)
        landed = scene.landed(P)
        assert landed == once(4_002, 4_002 - sum(landed.values()))
        assert (done.state, done.gone) == ("done", min(landed))
        assert done.gone > 0


async def until_running(writer: Process) -> None:
    """Wait until some of the offsets have landed; each call takes a while."""
    async with asyncio.timeout(60):
        while writer.report().operation is None or not operation(writer).rows:
            await seconds(0.1)


async def test_a_recreated_topic_is_not_mixed_with_the_earlier_one() -> None:
    async with begun() as (scene, writer):
        await until_some(scene, writer)
        scene.topics.delete("orders")
        scene.topics.create("orders", 2)
        scene.produce(P, 4_001)
        await seconds(120)
        assert operation(writer).state == "done"
        new = [r for r in scene.storage.table("orders").rows[P] if r.timestamp_ms > 19_000]
        assert len(new) == len({r.offset for r in new})


async def test_a_topic_is_recreated_while_the_table_has_no_writer() -> None:
    async with begun() as (scene, writer):
        await until_some(scene, writer)
        writer.kill()
        await seconds(5)
        before = {id(row) for row in scene.storage.table("orders").rows[P]}
        scene.topics.delete("orders")
        scene.topics.create("orders", 2)
        scene.produce(P, 5_000)
    async with process(scene, "orders", name="w2", from_latest=True) as second:
        await seconds(3)
        await scene.stage({P: (0, 5_000)})
        await seconds(100)
        assert landed_since(scene, before) == once(5_000)
        assert operation(second).state == "done"
        assert ("lowest", "orders") not in second.lake.calls


def landed_since(scene: Scene, before: Collection[int]) -> Counter[int]:
    """Return the offsets of rows that have landed beside those of these identities."""
    rows_now = scene.storage.table("orders").rows[P]
    return Counter(row.offset for row in rows_now if id(row) not in before)


async def until_some(scene: Scene, writer: Process) -> None:
    """Let it begin, and land a portion; each call takes a while."""
    writer.lake.latency_s = 0.5
    await scene.backfill()
    await until_running(writer)


async def test_a_log_is_cut_while_the_table_has_no_writer() -> None:
    """What lands by the announcements that the next writer has not read yet is not back-filled."""
    async with begun() as (scene, writer):
        await until_some(scene, writer)
        writer.kill()
        await seconds(5)
        before = {id(row) for row in scene.storage.table("orders").rows[P]}
        scene.topics.cut(P, 100)
        scene.produce(P, 4_900)
        await scene.stage({P: (100, 5_000)}, cut=True)
    async with process(scene, "orders", name="w2", from_latest=True) as second:
        await seconds(100)
        assert landed_since(scene, before) == once(5_000, 100)
        assert operation(second).state == "done"


async def test_a_log_that_is_cut_is_not_read_beyond() -> None:
    async with begun() as (scene, writer):
        await until_some(scene, writer)
        scene.topics.cut(P, 100)
        await seconds(120)
        done = operation(writer)
        assert (done.state, done.gone > 0) == ("done", True)
        assert max(scene.landed(P).values()) == 1


async def test_a_large_batch_is_decoded_behind_a_mark() -> None:
    async with begun() as (scene, writer):
        writer.earlier_reader.torn[P] = UndecodableBatch(3_990, 3_995, "large", b"", large=True)
        await scene.backfill()
        await seconds(60)
        landed_all(scene, {P: 4_002, Q: 30})
        assert operation(writer).state == "done"
        assert scene.staging.kept == {}, "nobody has ended by it"


async def test_a_large_batch_by_which_two_have_ended_is_a_fault() -> None:
    async with begun() as (scene, writer):
        batch = UndecodableBatch(3_990, 3_995, "large", b"", large=True)
        writer.earlier_reader.torn[P] = batch
        for name in mark_names(P, batch):
            await scene.staging.keep("orders", name, b"")
        await scene.backfill()
        await seconds(60)
        assert "up to 3995" in operation(writer).fault
        assert rows(scene)[P] == [4_000, 4_001]


async def test_a_batch_that_cannot_be_decoded_is_reported_and_others_go_on() -> None:
    async with begun() as (scene, writer):
        writer.earlier_reader.torn[P] = UndecodableBatch(3_990, 3_991, "torn", b"")
        await scene.backfill()
        await seconds(120)
        running = operation(writer)
        assert (running.state, "cannot be decoded" in running.fault) == ("running", True)
        assert scene.landed(Q) == once(30)
        assert "up to 3991" in running.fault
        await scene.backfill(2, offsets={P: 3_991})
        await seconds(30)
        assert scene.landed(P) == once(4_002, 3_991)


@pytest.mark.parametrize("at_s", [3, 8, 13, 23])
async def test_a_new_table_waits_for_a_partition_that_has_no_leader(at_s: float) -> None:
    """It begins at its end once that is known: what is before is back-filled then, too."""
    scene = await with_old()
    scene.from_earliest = True
    scene.topics.log(Q).leader = None
    async with process(scene, "orders", from_latest=True) as writer:
        await seconds(at_s)
        scene.topics.log(Q).leader = 1
        await seconds(100)
        landed_all(scene, {P: 4_000, Q: 30})
        assert operation(writer).state == "done"


async def test_a_partition_without_a_leader_holds_up_no_other_and_has_no_table_scanned() -> None:
    async with begun() as (scene, writer):
        await until_some(scene, writer)
        scene.topics.log(Q).leader = None
        await seconds(60)
        assert scene.landed(P) == once(4_002)
        assert (operation(writer).state, operation(writer).to_go > 0) == ("running", True)
        await scene.backfill(2)
        await seconds(100)
        assert writer.lake.calls.count(("lowest", "orders")) == 1
        scene.topics.log(Q).leader = 1
        await seconds(60)
        assert (operation(writer).id[-1], operation(writer).state) == ("2", "done")
        landed_all(scene, {P: 4_002, Q: 30})


async def test_a_topic_that_is_deleted_ends_it() -> None:
    async with begun() as (scene, writer):
        await until_some(scene, writer)
        scene.topics.delete("orders")
        await seconds(60)
        done = operation(writer)
        assert (done.state, done.gone > 0, done.to_go) == ("done", True, 0)


async def test_a_back_fill_that_does_not_get_on_holds_up_no_other_table() -> None:
    scene = await Scene({"orders": 1, "other": 1}, columns=COLUMNS).prepare()
    other = TopicPartition("other", 0)
    scene.produce(P, 4_000)
    scene.produce(other, 4_000)
    async with process(scene, "orders", "other", from_latest=True) as writer:
        await seconds(10)
        fetch = writer.earlier_reader.fetch

        async def stalling(max_bytes: int, timeout_s: float) -> Mapping[TopicPartition, Records]:
            if P not in writer.earlier_reader.positions:
                return await fetch(max_bytes, timeout_s)
            await seconds(timeout_s)
            return {}

        writer.earlier_reader.fetch = stalling  # type: ignore[method-assign]
        await scene.backfill()
        order = OperationOrder(table="other", id="2" * 32, work="backfill", by="ann")
        await scene.give(order)
        for offset in range(4_000, 4_060):
            began_at = asyncio.get_running_loop().time()
            await scene.land({other: (offset, offset + 1)})
            while not scene.landed(other)[offset]:
                await seconds(0.1)
            assert asyncio.get_running_loop().time() - began_at < 3.0
        assert scene.landed(other) == once(4_060)
        assert "does not get on" in operation(writer).fault


async def test_a_new_table_is_filled_by_itself() -> None:
    scene = await with_old()
    scene.from_earliest = True
    async with process(scene, "orders", from_latest=True) as writer:
        await seconds(60)
        landed_all(scene, {P: 4_000, Q: 30})
        assert (operation(writer).by, operation(writer).state) == ("its entry", "done")
    async with process(scene, "orders", name="w2") as second:
        await seconds(30)
        assert operation(second).id == operation(writer).id
        assert ("lowest", "orders") not in second.lake.calls


async def test_a_paused_table_is_filled_once_it_is_resumed() -> None:
    async with begun() as (scene, _):
        await scene.order(paused=True)
        await seconds(5)
        await scene.backfill()
        await seconds(30)
        assert scene.landed(Q) == once(0)
        await scene.order(paused=False)
        await seconds(60)
        landed_all(scene, {P: 4_002, Q: 30})
