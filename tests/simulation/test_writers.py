"""Tables change writers and staged files get lost: each row still lands once."""

import asyncio
from dataclasses import replace

import pytest
from tests.simulation.world import INGEST, LANDING, P, World, until, world

from binwright.protocol.metadata import Gap
from binwright.protocol.model import Slot, TopicPartition
from binwright.protocol.names import lease_name

pytestmark = pytest.mark.looptime(noop_cycles=1)

WRITE_S = 4.0


async def two_running(w: World) -> None:
    w.load(dict.fromkeys(P, 40_000.0))
    await until(lambda: len(w.fleet.running) == 2 and w.steady())
    await until(lambda: w.landed() > 0)


@pytest.mark.parametrize("after_s", [0.5, 1.5, 2.5, 3.5])
async def test_a_dead_writers_last_commit_lands_late_and_does_no_harm(after_s: float) -> None:
    """No new process of its slot claims the table: the claim of the next writer must fence it."""
    async with world({"orders": 4}) as w:
        w.write_s = WRITE_S
        await two_running(w)
        writer = w.writer("orders")
        w.process(writer).lake.latency_s = 60.0  # a commit under way lands long after
        await asyncio.sleep(5 + after_s)
        w.fleet.restart_s = 1e6
        w.fleet.kill(writer)
        w.fleet.restart_s = 1.0
        await until(lambda: w.steady() and w.writer("orders") != writer)
        await asyncio.sleep(120)
        await w.all_landed_once()


@pytest.mark.parametrize("for_s", [15.0, 40.0])
async def test_a_suspended_writer_resumes_after_another_claimed(for_s: float) -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        writer = w.writer("orders")
        suspended = w.process(writer)
        suspended.gate.suspend()
        await until(lambda: w.steady() and w.writer("orders") != writer)
        before = w.landed()
        await asyncio.sleep(for_s)
        assert w.landed() > before
        suspended.gate.resume()
        await asyncio.sleep(30)
        await until(w.steady)
        await w.all_landed_once()


async def test_a_suspended_reader_resumes_after_its_partitions_moved() -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        reader = next(s for s in sorted(w.fleet.running) if s != w.writer("orders"))
        suspended = w.process(reader)
        suspended.gate.suspend()
        await asyncio.sleep(40)
        suspended.gate.resume()
        await until(w.steady)
        await w.all_landed_once()


async def test_a_writer_that_lost_its_lease_gets_the_table_again() -> None:
    """Another process claimed: nothing of the old claim lands, and nothing is lost."""
    async with world({"orders": 4}) as w:
        await two_running(w)
        old = w.staging.leases["orders"]
        other = lease_name("0" * 32, 1)
        await w.staging.write_lease("orders", other)
        await w.staging.delete_other_leases("orders", other)
        w.storage.tables["orders"].change_metadata("a claim", "another writer")
        await asyncio.sleep(30)
        assert w.staging.leases["orders"] not in ({other}, old)
        await w.all_landed_once()


@pytest.mark.parametrize("damage", ["lose", "tear"])
async def test_staged_files_that_are_lost_are_read_again(damage: str) -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        for _ in range(3):
            await until(lambda: len(w.staging.files.get("orders", {})) > 1)
            assert getattr(w.staging, damage)("orders")
            await asyncio.sleep(7)
        await until(lambda: bool(w.sent(Gap)))
        await w.all_landed_once()


async def test_a_recreated_landing_topic_loses_and_doubles_nothing() -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        for _ in range(2):
            w.bus.delete(LANDING)
            await asyncio.sleep(30)
        await until(w.steady)
        await w.all_landed_once()


async def test_lost_announcements_are_repeated() -> None:
    """An unclean election of the landing topic while the writer is suspended."""
    async with world({"orders": 4}) as w:
        await two_running(w)
        writer = w.process(w.writer("orders"))
        writer.gate.suspend()
        await asyncio.sleep(5)
        for partition in range(8):
            end = await w.bus.end(LANDING, partition)
            w.bus.cut(LANDING, partition, max(end - 6, 0))
        writer.gate.resume()
        await asyncio.sleep(30)
        await until(w.steady)
        await w.all_landed_once()


async def test_one_table_that_refuses_every_row_stops_no_other() -> None:
    """B3: a constraint, a revoked grant, a dropped column; it is reported and retried."""
    clicks = [TopicPartition("clicks", i) for i in range(2)]
    async with world({"orders": 4, "clicks": 2}) as w:
        w.load(dict.fromkeys([*P, *clicks], 15_000.0))
        await until(w.steady)
        w.refusing.add("orders")
        await asyncio.sleep(10)
        before = len(w.values(P[0])), len(w.values(clicks[0]))
        await asyncio.sleep(120)
        assert len(w.values(P[0])) == before[0]
        assert len(w.values(clicks[0])) > before[1] + 110 * 15
        assert w.report(w.writer("orders")).writing["orders"].state == "refused"
        assert w.fleet.starts == {Slot(0): 1}
        w.refusing.clear()
        await w.all_landed_once(300.0)


async def test_a_refused_table_stops_no_other_for_as_long_as_it_is_refused() -> None:
    """Its files fill its share of the staging, and are the oldest there; then it lands as well."""
    clicks, pages = TopicPartition("clicks", 0), TopicPartition("pages", 0)
    async with world({"orders": 1, "clicks": 1, "pages": 1}) as w:
        w.ingest_config = replace(INGEST, staged_bytes=3_000_000)
        w.refusing.add("orders")
        w.load({P[0]: 3_000.0, clicks: 3_000.0, pages: 300.0})
        await until(w.steady)
        await asyncio.sleep(31 * 60)

        assert w.staging.bytes < 2_000_000, "half of the limit, and what lands"
        assert len(w.values(P[0])) == 0
        for healthy in (clicks, pages):
            assert w.topics.bounds(healthy)[1] - len(w.values(healthy)) < 30
        w.refusing.clear()
        await w.all_landed_once(300.0)


async def test_a_table_is_written_on_when_its_writer_drains() -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        for slot in sorted(w.fleet.running):
            starts = w.fleet.starts[slot]
            w.fleet.worker(slot).drain()
            await until(
                lambda slot=slot, starts=starts: w.fleet.starts[slot] > starts and w.steady()  # type: ignore[misc]
            )
        await w.all_landed_once()
