"""Records that cannot be decoded land in a table of their own: each offset in one of two tables."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from binwright.protocol.ports.kafka import Record
from binwright.tables.columns import parse_columns
from binwright.testing.lake import Failure

from .scene import COLUMNS, P, Process, Q, Scene, land_read_again, once, process, seconds

pytestmark = pytest.mark.looptime


def is_odd(record: Record) -> bool:
    return record.offset % 2 == 1


def is_even(record: Record) -> bool:
    return record.offset % 2 == 0


@asynccontextmanager
async def decoding() -> AsyncIterator[tuple[Scene, Process]]:
    """Run a writer of a table of columns; records of odd offsets are bad."""
    scene = await Scene(columns=COLUMNS).prepare()
    scene.staging.is_bad = is_odd
    async with process(scene, "orders") as writer:
        await seconds(5)
        yield scene, writer


async def test_bad_records_land_beside_the_rows_and_are_counted() -> None:
    async with decoding() as (scene, writer):
        await scene.land({P: (0, 6), Q: (0, 3)})
        await seconds(5)

        assert scene.landed(P) == once(6)
        assert scene.landed(Q) == once(3)
        assert scene.bad() == {P: [1, 3, 5], Q: [1]}
        assert (writer.report().rows, writer.report().bad) == (9, 4)


FAILURES = [
    Failure.CONFLICT,
    Failure.REFUSED,
    Failure.UNCLEAR,
    Failure.UNCLEAR_LANDED,
    Failure.UNREADABLE,
]


@pytest.mark.parametrize("staged_again", [False, True])
@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("call", ["append_bad", "append"])
async def test_each_record_lands_once_whichever_commit_fails(
    call: str, failure: Failure, *, staged_again: bool
) -> None:
    """Also if its file is lost then, and the record is decoded otherwise when it is read again."""
    async with decoding() as (scene, writer):
        real = getattr(writer.lake, call)

        async def fail_once(*arguments: object) -> None:
            setattr(writer.lake, call, real)
            writer.lake.fail_next(failure)
            if staged_again:
                asyncio.get_running_loop().call_later(0.001, lose)
            await real(*arguments)

        def lose() -> None:
            scene.staging.lose("orders")
            scene.staging.is_bad = is_even

        setattr(writer.lake, call, fail_once)
        await scene.land({P: (0, 10), Q: (0, 10)})
        await land_read_again(scene, writer)

        assert scene.landed(P) == scene.landed(Q) == once(10)
        assert writer.report().fault == ""


@pytest.mark.parametrize("lands_in_s", [2.0, 7.0, 30.0])
async def test_what_a_dead_writer_commits_lands_once_or_not(lands_in_s: float) -> None:
    """Its commit of bad records is in flight while the next writer claims."""
    scene = await Scene(columns=COLUMNS).prepare()
    scene.staging.is_bad = is_odd
    async with process(scene, "orders", name="dead") as dead:
        await seconds(5)
        dead.lake.latency_s = lands_in_s
        await scene.land({P: (0, 10), Q: (0, 10)})
        while not dead.appending("orders"):
            await seconds(0.01)
        dead.kill()
        await asyncio.sleep(0)
    scene.staging.is_bad = is_even
    async with process(scene, "orders") as writer:
        writer.lake.latency_s = 0.5
        await land_read_again(scene, writer)

    assert scene.landed(P) == scene.landed(Q) == once(10)


async def test_bad_records_of_an_earlier_topic_hide_none_of_the_next() -> None:
    async with decoding() as (scene, writer):
        await scene.land({P: (0, 10)})
        await seconds(5)
        scene.topics.delete("orders")
        scene.topics.create("orders", 2)
        scene.staging.is_bad = lambda _: False
        await scene.land({P: (0, 10)})
        await seconds(60)

        assert writer.report().committed == {P: 10, Q: 0}
        assert scene.landed() == once(10) + once(10)


async def test_what_does_not_fit_the_table_is_read_again_under_the_settings_of_then() -> None:
    async with decoding() as (scene, writer):
        writer.lake.unfit.add("orders")
        scene.columns = parse_columns("id STRING")
        await scene.land({P: (0, 4)})
        await seconds(5)
        assert scene.landed() == once(0)
        writer.lake.unfit.clear()
        scene.columns = COLUMNS
        await land_read_again(scene, writer)

        assert scene.landed() == once(4)


async def test_records_that_are_skipped_are_counted_and_committed() -> None:
    scene = await Scene(columns=COLUMNS).prepare()
    scene.staging.is_skipped = lambda record: record.offset >= 2
    async with process(scene, "orders", name="first") as writer:
        await seconds(5)
        await scene.land({P: (0, 4)})
        await seconds(5)
        await scene.land({P: (4, 6)})  # nothing but skipped ones: Delta makes no commit of no rows
        await seconds(5)

        report = writer.report()
        assert (report.rows, report.bad, report.skipped) == (2, 0, 4)
        assert [name for name, _ in writer.lake.calls if name in {"append", "stamp"}][-1] == "stamp"
    async with process(scene, "orders", name="next") as writer:
        await seconds(5)

        assert writer.report().committed == {P: 6, Q: 0}
    assert scene.landed() == once(2)


@pytest.mark.parametrize("claimed", [False, True])
async def test_a_table_of_bad_records_that_a_person_removed_is_made_again(*, claimed: bool) -> None:
    """Also before the writer looked for what has landed in it."""
    async with decoding() as (scene, writer):
        if not claimed:
            await scene.land({P: (0, 10)})
            await seconds(5)
        scene.storage.drop("orders__bad")
        first = 0 if claimed else 10
        await scene.land({P: (first, first + 10)})
        await seconds(40)
        assert writer.report().fault == ""
        assert writer.report().committed[P] == first + 10
        assert scene.bad() == {P: [o for o in range(first, first + 10) if o % 2]}


async def test_a_batch_of_which_no_row_is_left_is_stamped_all_the_same() -> None:
    """Its rows may all be bad, or landed before: Delta makes no commit of none."""
    scene = await Scene(columns=COLUMNS).prepare()
    scene.staging.is_bad = lambda record: record.offset >= 5
    async with process(scene, "orders", name="first"):
        await scene.land({P: (0, 5)})
        await seconds(5)
        await scene.land({P: (0, 10)})
        await seconds(5)
    async with process(scene, "orders", name="next") as writer:
        await seconds(5)
        assert writer.report().committed == {P: 10, Q: 0}
    assert scene.landed() == once(10)


async def test_a_column_that_a_person_renamed_is_named_and_the_table_gets_it_again() -> None:
    """The writer knows the columns of when it opened the table: so it opens it anew."""
    async with decoding() as (scene, writer):
        await scene.land({P: (0, 6)})
        await seconds(5)
        (column, *_) = COLUMNS
        scene.storage.tables["orders"].dropped = column.name
        await scene.land({P: (6, 9)})
        async with asyncio.timeout(60):
            while f"no longer has {column.name}" not in writer.report().fault:
                await seconds(1)
        async with asyncio.timeout(60):
            while scene.landed(P) != once(9):
                await seconds(1)
