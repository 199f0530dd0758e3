"""What the owner of a split partition hands out and announces, and what a helper stages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from tests.consumer.harness import (
    CONFIG,
    LANDING,
    C,
    ConsumerHarness,
    P,
    harness,
    landing_partition,
    until,
)

from binwright.consumer.decide.split import MOST_AHEAD, PATIENCE_S
from binwright.protocol import wire
from binwright.protocol.commands import SplitReading, StartReading
from binwright.protocol.landing import (
    OffsetRange,
    RangeMessage,
    RangeStaged,
    Staged,
    StageRange,
    decode_range,
)
from binwright.protocol.metadata import Report
from binwright.protocol.model import Slot, TopicPartition
from binwright.testing.data_topics import FakePace

pytestmark = pytest.mark.looptime(noop_cycles=1)

RATE, PACE = 60_000.0, 25_000.0
HELPER = Slot(1)
AT = landing_partition("orders")


def messages(b: ConsumerHarness) -> list[RangeMessage]:
    """Return what consumers wrote to each other, in order."""
    records = [
        r for r in b.bus.records(LANDING, AT) if (r.key or b"").startswith((b"stage", b"ra"))
    ]
    return [decode_range(record.value) for record in records]


def requests(b: ConsumerHarness) -> list[StageRange]:
    return [m for m in messages(b) if isinstance(m, StageRange)]


async def split(b: ConsumerHarness, *slots: Slot) -> None:
    """Tell the consumer who stages the partition; the owner first."""
    partitions = {P: slots} if slots else {}
    await b.command(SplitReading(term=1, epoch=b.epoch, partitions=partitions))


async def reply(
    b: ConsumerHarness, request: StageRange, *, end: int | None = None, size: int = 1
) -> None:
    """Reply as the helper: it has staged the range, or what is before `end`, in so many bytes."""
    first, last = request.range
    piece = OffsetRange(first, last if end is None else end)
    file = Staged(
        topic="orders",
        table="orders",
        topic_id=request.topic_id,
        file=f"1-5-{request.number}-0123abcd.parquet",
        rows=piece.next - first,
        bytes=size,
        ranges={P: piece},
        slot=HELPER,
        epoch=5,
    )
    message = RangeStaged(
        helper=HELPER,
        slot=request.slot,
        epoch=request.epoch,
        number=request.number,
        partition=P,
        piece=piece,
        rows=file.rows,
        files=(file,) if file.rows else (),
    )
    await b.bus.publish(LANDING, AT, wire.key(message), wire.encode(message))


@asynccontextmanager
async def owner() -> AsyncIterator[ConsumerHarness]:
    """Run the owner of a partition that gets more than it can read, with one helper."""
    async with harness({"orders": 1}) as b:
        b.reader.pace = b.part_reader.pace = FakePace(PACE)
        b.topics.grow(P, RATE)
        await b.read({P: 0})
        await until(lambda: b.ranges(P))
        await split(b, Slot(0), HELPER)
        await until(lambda: requests(b))
        yield b


def joined(b: ConsumerHarness) -> bool:
    """Whether each announced range begins where the one before it ends."""
    ranges = b.ranges(P)
    return ranges[0][0] == 0 and all(a[1] == z[0] for a, z in pairwise(ranges))


async def test_the_owner_announces_what_helpers_staged_in_the_order_of_offsets() -> None:
    async with owner() as b:
        answered = 0
        for _ in range(200):
            for request in requests(b)[answered:]:
                await reply(b, request)
                answered += 1
            await asyncio.sleep(0.1)
        assert answered > 5
        assert {m.slot for m in b.staged()} == {0, HELPER}
        assert joined(b)
        shares = {share.slot: share.rows for share in b.report().splits[P]}
        assert shares.keys() == {0, HELPER}
        assert all(shares.values())
        stopped = await b.stop(P)
        assert stopped.next == {P: b.staged_end(P)}


async def test_files_of_helpers_count_as_the_owners_backlog_once_announced() -> None:
    async with owner() as b:
        await reply(b, requests(b)[0], size=10**8)
        assert b.ingest._backlog.bytes < 10**8, "it is not announced yet"
        await until(lambda: HELPER in {m.slot for m in b.staged()})
        await until(lambda: b.ingest._backlog.bytes >= 10**8, patience_s=1)


async def test_a_topic_that_does_not_land_is_handed_out_up_to_its_share_and_others_go_on() -> None:
    async with harness({"orders": 1, "clicks": 1}, replace(CONFIG, staged_bytes=1_000_000)) as b:
        b.reader.pace = b.part_reader.pace = FakePace(PACE)
        b.topics.grow(P, RATE)
        await b.read({P: 0, C: 0})
        await until(lambda: b.ranges(P))
        await split(b, Slot(0), HELPER)
        await until(lambda: "orders" in b.ingest._partitions.paused_topics, patience_s=120)
        await asyncio.sleep(20)  # what was handed out before is staged, by the owner
        asked, end = len(requests(b)), b.staged_end(P)
        b.topics.produce(C, b"a")
        await until(lambda: b.staged_end(C) == 1)
        await asyncio.sleep(20)
        assert (len(requests(b)), b.staged_end(P)) == (asked, end)


async def test_what_no_helper_stages_the_owner_does_and_a_late_reply_changes_nothing() -> None:
    async with owner() as b:
        first = requests(b)[0]
        await until(lambda: b.staged_end(P) > first.range.next)
        assert all(m.slot == 0 for m in b.staged())
        await reply(b, first)
        await asyncio.sleep(5)
        assert all(m.slot == 0 for m in b.staged())
        assert joined(b)


async def test_a_helper_that_refuses_is_given_nothing_for_a_while() -> None:
    async with owner() as b:
        first = requests(b)[0]
        await reply(b, first, end=first.range.first)
        await until(lambda: b.staged_end(P) >= first.range.next, patience_s=8)
        assert requests(b) == [first]
        assert joined(b)


async def test_a_stop_is_acknowledged_with_the_end_of_what_is_announced() -> None:
    async with owner() as b:
        first = requests(b)[0]
        await until(lambda: b.staged_end(P) == first.range.first)
        stopped = await b.stop(P)
        assert stopped.next == {P: first.range.first}
        await reply(b, first)
        await asyncio.sleep(5)
        assert b.staged_end(P) == first.range.first


async def test_a_partition_that_is_begun_elsewhere_takes_no_part_of_before() -> None:
    async with owner() as b:
        first = requests(b)[0]
        await b.command(StartReading(term=1, revision=99, epoch=b.epoch, offsets={P: 3}))
        await reply(b, first)
        await asyncio.sleep(2)
        assert HELPER not in {m.slot for m in b.staged()}
        await until(lambda: b.ranges(P)[-1][0] > 3)
        assert 3 in {begin for begin, _ in b.ranges(P)}


async def test_a_partition_is_not_handed_out_before_some_of_it_is_staged() -> None:
    """Its first range may have to announce that its log was cut."""
    async with harness({"orders": 1}) as b:
        await b.read({P: 0})
        await until(lambda: P in b.reader.positions)
        assert b.ingest._partitions.lend(P) is None
        b.topics.produce(P, b"a", b"b")
        await until(lambda: b.staged_end(P) == 2)
        assert b.ingest._partitions.lend(P) == (2, "orders-1")


async def test_without_helpers_the_owner_reads_on_by_itself() -> None:
    async with owner() as b:
        first = requests(b)[0]
        await split(b)
        await until(lambda: P in b.reader.positions)
        await until(lambda: b.staged_end(P) > first.range.next)
        assert joined(b)
        assert not b.report().splits


async def test_a_topic_that_was_recreated_is_read_from_its_first_record() -> None:
    async with owner() as b:
        before = requests(b)[0]
        await until(lambda: b.staged_end(P) == before.range.first)  # its piece would join on
        b.topics.delete("orders")
        b.topics.create("orders", 1)
        b.topics.produce(P, *[b"new"] * 20)
        await reply(b, before)
        await until(lambda: any(m.topic_id == "orders-2" for m in b.staged()))
        assert all(m.slot == 0 for m in b.staged()), "it may be of either topic"


async def test_what_retention_took_of_a_part_is_counted_by_the_owner_itself() -> None:
    async with owner() as b:
        first = requests(b)[0]
        b.topics.delete_records(P, first.range.next + 50)
        await reply(b, first, end=first.range.first)
        await until(lambda: b.staged_end(P) > first.range.next + 50)
        await until(lambda: b.report().lost_offsets)
        assert joined(b)


# --- a helper -------------------------------------------------------------------------------------


def request(first: int, end: int, number: int = 1) -> StageRange:
    return StageRange(
        helper=Slot(0),
        slot=Slot(3),
        epoch=77,
        number=number,
        partition=P,
        topic_id="orders-1",
        range=OffsetRange(first, end),
    )


def replies(b: ConsumerHarness) -> list[RangeStaged]:
    return [m for m in messages(b) if isinstance(m, RangeStaged)]


@asynccontextmanager
async def helper(max_bytes: int = CONFIG.staged_bytes) -> AsyncIterator[ConsumerHarness]:
    """Run a helper of a partition with 50 records, behind 20 offsets without one."""
    async with harness({"orders": 1}, replace(CONFIG, staged_bytes=max_bytes)) as b:
        b.topics.skip(P, 20)
        b.topics.produce(P, *[b"%d" % n for n in range(50)])
        await split(b, Slot(3), Slot(0))
        await until(lambda: b.sent(Report) and b.report().splits)
        yield b


async def ask(b: ConsumerHarness, message: StageRange) -> None:
    await b.bus.publish(LANDING, AT, wire.key(message), wire.encode(message))


@pytest.mark.parametrize(
    ("first", "end", "rows"), [(0, 70, 50), (5, 15, 0), (10, 30, 10), (40, 41, 1)]
)
async def test_a_helper_stages_all_that_is_in_a_range_and_announces_nothing(
    first: int, end: int, rows: int
) -> None:
    async with helper() as b:
        await ask(b, request(first, end))
        await until(lambda: replies(b))
        (found,) = replies(b)
        assert (found.number, found.piece, found.rows) == (1, (first, end), rows)
        (file,) = found.files
        assert (file.rows, file.ranges, file.slot) == (rows, {P: (first, end)}, 0)
        staged = (b.staging.rows("orders", file.file) or {}).get(P, ())
        assert [r.offset for r in staged] == [*range(max(first, 20), end)]
        assert not b.staged()
        await asyncio.sleep(2)
        assert b.report().staged_rows == rows
        assert b.report().splits[P] == ((3, 0), (0, rows))
        assert b.report().staged_bytes == 0, "it may never be announced"


async def test_a_large_range_comes_in_pieces() -> None:
    async with helper() as b:
        b.part_reader.pace = FakePace(50_000)
        b.topics.produce(P, *[bytes(30_000)] * 10)
        await ask(b, request(70, 80))
        await until(lambda: replies(b) and replies(b)[-1].piece.next == 80)
        pieces = [m.piece for m in replies(b)]
        assert len(pieces) > 1
        assert [p.first for p in pieces] == [70, *(p.next for p in pieces[:-1])]


async def test_a_request_that_is_read_again_is_staged_once() -> None:
    async with helper() as b:
        await ask(b, request(20, 30))
        await ask(b, request(20, 30))
        await ask(b, request(30, 40, number=2))
        await until(lambda: len(replies(b)) == 2)
        await asyncio.sleep(5)
        assert [m.number for m in replies(b)] == [1, 2]


@pytest.mark.parametrize(
    "forged",
    [
        {"slot": Slot(2)},  # not its owner
        {"partition": TopicPartition("orders", 1)},  # not split
        {"partition": TopicPartition("payroll", 0)},  # not the group's
    ],
)
async def test_a_helper_stages_for_the_owner_of_a_split_partition_alone(
    forged: dict[str, object],
) -> None:
    async with helper() as b:
        b.topics.create("payroll", 1)
        await ask(b, replace(request(20, 30), **forged))  # type: ignore[arg-type]
        await ask(b, request(30, 40, number=2))
        await until(lambda: replies(b))
        await asyncio.sleep(5)
        assert [(m.partition, m.number) for m in replies(b)] == [(P, 2)]


async def test_an_owner_stages_for_no_other() -> None:
    async with harness({"orders": 1}) as b:
        b.topics.produce(P, *[b"x"] * 50)
        await split(b, Slot(0), HELPER)
        await until(lambda: b.sent(Report) and b.report().splits)
        await ask(b, replace(request(0, 10), slot=Slot(0)))
        await asyncio.sleep(5)
        assert replies(b) == []


async def test_a_helper_takes_a_few_ranges_at_a_time() -> None:
    async with helper() as b:
        b.part_reader.pace = FakePace(0.001)  # none of them ends
        for number in range(3 * MOST_AHEAD):
            await ask(b, request(20, 30, number=number + 1))
        await asyncio.sleep(12 * PATIENCE_S)
        assert len(replies(b)) == MOST_AHEAD
        b.part_reader.pace = FakePace(inf)
        await ask(b, request(20, 30, number=99))
        await until(lambda: replies(b)[-1].number == 99)


async def test_what_is_staged_for_others_is_limited_though_it_is_not_announced() -> None:
    async with helper(max_bytes=2_000) as b:
        b.topics.produce(P, *[bytes(1_000)] * 30)
        for number in range(10):
            await ask(b, request(70, 80, number=number + 1))
            await asyncio.sleep(2)
        assert b.staging.bytes < 12_000  # one range
        assert [len(m.files) for m in replies(b)] == [1] + [0] * 9
        assert b.report().staged_bytes == 0


@pytest.mark.parametrize("fault", ["retention", "end", "broker", "storage"])
async def test_what_a_helper_cannot_stage_it_gives_back(fault: str) -> None:
    async with helper() as b:
        match fault:
            case "retention":
                b.topics.delete_records(P, 30)
            case "broker":
                b.part_reader.fail_next(1)
            case "storage":
                b.staging.write_error = "it is full"
            case _:
                pass
        await ask(b, request(100 if fault == "end" else 25, 120 if fault == "end" else 35))
        await until(lambda: replies(b))
        assert [(m.piece.first, m.piece.next, m.files) for m in replies(b)] == [
            (m.piece.first, m.piece.first, ()) for m in replies(b)
        ]
