"""A partition that gets more than a consumer sustains, staged by several consumers."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from tests.simulation.world import CONFIG, World, until, world

from binwright.protocol.metadata import Report
from binwright.protocol.model import BytesPerSecond, PerSlot, Slot, TopicPartition

pytestmark = pytest.mark.looptime(noop_cycles=1)

HOT, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LIMIT = 100_000
SPLIT = replace(
    CONFIG.with_settings(split=True),
    limits=PerSlot(BytesPerSecond(LIMIT)),
    capacity=BytesPerSecond(83_000.0),
)


def owners_report(w: World) -> Report | None:
    """Return the last report of the hot partition's owner, if it has one that reports it."""
    at = w.group().members.partitions.get(HOT)
    if at is None or at.slot is None:
        return None
    reports = [r for r in w.sent(Report) if r.slot == at.slot]
    return reports[-1] if reports and HOT in reports[-1].reading else None


def lag_s(w: World, rate: float) -> float:
    """Return how many seconds of the hot partition are not staged, as its owner reports it."""
    report = owners_report(w)
    assert report is not None
    return (w.topics.bounds(HOT)[1] - (report.reading[HOT] or 0)) * 1_000 / rate


def stagers(w: World) -> set[Slot]:
    """Return the consumers that have staged some of the hot partition, as its owner reports it."""
    report = owners_report(w)
    shares = () if report is None else report.splits.get(HOT, ())
    return {share.slot for share in shares if share.rows}


async def test_a_partition_at_three_times_the_limit_keeps_up_when_it_is_split() -> None:
    async with world({"orders": 2}, SPLIT) as w:
        w.process_bytes_per_s = 1.1 * LIMIT
        w.load({HOT: 3.0 * LIMIT, OTHER: 10_000.0})
        await until(lambda: len(stagers(w)) >= 4)
        await asyncio.sleep(60)
        assert lag_s(w, 3.0 * LIMIT) < 20
        await w.all_landed_once()


async def test_without_the_setting_it_falls_behind() -> None:
    async with world({"orders": 2}, SPLIT.with_settings(split=False)) as w:
        w.process_bytes_per_s = 1.1 * LIMIT
        w.load({HOT: 3.0 * LIMIT, OTHER: 10_000.0})
        await asyncio.sleep(120)
        assert lag_s(w, 3.0 * LIMIT) > 60
        assert not any(report.splits for report in map(w.report, w.fleet.running))


async def test_helpers_and_owners_that_are_killed_lose_and_double_nothing() -> None:
    async with world({"orders": 2}, SPLIT) as w:
        w.process_bytes_per_s = 1.1 * LIMIT
        w.load({HOT: 3.0 * LIMIT, OTHER: 10_000.0})
        await until(lambda: len(stagers(w)) >= 3)
        helper = next(slot for slot in sorted(stagers(w)) if slot != w.owner(HOT))
        w.fleet.kill(helper)
        await asyncio.sleep(15)
        w.fleet.kill(w.owner(HOT))
        await until(lambda: len(stagers(w)) >= 3)
        await w.all_landed_once()


async def test_a_topic_that_is_recreated_while_it_is_split_lands_once() -> None:
    async with world({"orders": 2}, SPLIT) as w:
        w.process_bytes_per_s = 1.1 * LIMIT
        w.load({HOT: 3.0 * LIMIT})
        await until(lambda: len(stagers(w)) >= 2)
        w.topics.delete("orders")
        w.topics.create("orders", 2)
        first = w.topics.produce(HOT, *[b"new"] * 50)
        assert first == 0
        w.load({HOT: 3.0 * LIMIT})
        await asyncio.sleep(60)
        await until(lambda: w.values(HOT).count(b"new") == 50)
        w.load({HOT: 0.0})


async def test_offsets_without_records_stop_no_split() -> None:
    async with world({"orders": 1}, SPLIT) as w:
        w.process_bytes_per_s = 1.1 * LIMIT
        w.load({HOT: 3.0 * LIMIT})
        await until(lambda: len(stagers(w)) >= 2)
        w.topics.skip(HOT, 3_000)
        await asyncio.sleep(20)
        w.load({HOT: 0.0})
        end = w.topics.bounds(HOT)[1]
        await until(lambda: w.report(w.owner(HOT)).reading.get(HOT) == end)
        landed = Counter(row.offset for row in w.storage.tables["orders"].rows[HOT])
        assert max(landed.values()) == 1


async def test_when_the_load_falls_the_helpers_end() -> None:
    async with world({"orders": 2}, SPLIT) as w:
        w.process_bytes_per_s = 1.1 * LIMIT
        w.load({HOT: 3.0 * LIMIT, OTHER: 10_000.0})
        await until(lambda: len(stagers(w)) >= 3)
        w.load({HOT: 0.5 * LIMIT})
        await until(lambda: len(w.fleet.running) == 1 and w.steady(), timeout_s=400)
        assert not w.report(w.owner(HOT)).splits
        await w.all_landed_once()


async def test_a_new_leader_keeps_the_helpers() -> None:
    async with world({"orders": 2}, SPLIT) as w:
        w.process_bytes_per_s = 1.1 * LIMIT
        w.load({HOT: 3.0 * LIMIT})
        await until(lambda: len(stagers(w)) >= 4)
        before = dict(w.group().members.splits)
        w.kill_controller()
        w.start_controller()
        await until(w.steady)
        await until(lambda: bool(w.group().members.splits))
        assert dict(w.group().members.splits) == before
        await w.all_landed_once()
