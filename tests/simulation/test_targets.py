"""Topics with two tables: through moves, deaths and refusals each table gets every row once."""

import asyncio

import pytest
from tests.simulation.world import GROUP, P, World, until, world

pytestmark = pytest.mark.looptime(noop_cycles=1)

BOTH = ("raw", "typed")


async def two_running(w: World) -> None:
    w.named["orders"] = BOTH
    w.load(dict.fromkeys(P, 40_000.0))
    await until(lambda: len(w.fleet.running) == 2 and w.steady())
    tables = w.storage.tables  # a writer that has its role opens them next
    await until(lambda: all(name in tables and tables[name].rows for name in BOTH))


async def test_a_refused_table_holds_no_other_and_misses_nothing() -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        w.refusing.add("typed")
        await asyncio.sleep(20)
        before = len(w.storage.tables["raw"].rows[P[0]])
        held = len(w.storage.tables["typed"].rows[P[0]])
        await asyncio.sleep(30)
        assert len(w.storage.tables["raw"].rows[P[0]]) > before
        assert len(w.storage.tables["typed"].rows[P[0]]) == held
        landed = w.topics.offsets[GROUP][P[0]].offset
        assert landed <= held, "offsets in Kafka are those of the table that has the least"
        w.refusing.clear()
        await w.all_landed_once()


@pytest.mark.parametrize("of_writer", [True, False])
async def test_killed_consumers_double_and_lose_nothing_in_either_table(of_writer: bool) -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        for pause_s in (0.7, 1.9, 3.1, 0.3):
            writer = w.writer("orders")
            others = [slot for slot in sorted(w.fleet.running) if slot != writer]
            w.fleet.kill(writer if of_writer or not others else others[0])
            await asyncio.sleep(20 + pause_s)
            await until(w.steady)
        await w.all_landed_once()


async def test_a_lost_file_of_one_table_is_read_again() -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        w.refusing.add("typed")
        await asyncio.sleep(10)
        assert w.staging.lose("typed")
        w.refusing.clear()
        await w.all_landed_once()


async def test_a_table_that_is_added_gets_what_comes_after_the_upgrade() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 40_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await until(lambda: w.landed() > 0)
        w.named["orders"] = ("orders", "typed")
        for slot in sorted(w.fleet.running):
            w.fleet.kill(slot)
            await asyncio.sleep(20)
            await until(w.steady)
        await asyncio.sleep(20)
        w.load(dict.fromkeys(P, 0.0))
        end = w.topics.bounds(P[0])[1]
        await until(lambda: w.topics.offsets[GROUP][P[0]].offset == end)
        counts = [w._landed_in(name, P[0]) for name in ("orders", "typed")]
        assert {*counts[0].values()} == {*counts[1].values()} == {1}
        assert sorted(counts[0]) == list(range(end))
        begins = min(counts[1])
        assert begins > 0
        assert sorted(counts[1]) == list(range(begins, end))
