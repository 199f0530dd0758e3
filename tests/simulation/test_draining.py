"""Consumers that drain one after another, on virtual time: no partition waits for a reader."""

import asyncio

import pytest
from tests.simulation.world import METADATA, P, World, until, world

from binwright.look.group_view import GroupView
from binwright.protocol.metadata import Goodbye, decode_inbound
from binwright.protocol.model import Slot

pytestmark = pytest.mark.looptime(noop_cycles=1)

WRITE_S = 8.0


def view(w: World) -> GroupView:
    made = GroupView()
    for record in w.bus.records(METADATA, 0):
        made.apply(record.offset, record.timestamp_ms, decode_inbound(record.value))
    return made


async def two_running(w: World) -> None:
    w.write_s = WRITE_S
    w.load(dict.fromkeys(P, 40_000.0))
    await until(lambda: len(w.fleet.running) == 2 and w.steady())


def goodbyes(w: World) -> list[Goodbye]:
    return [message for message in w.metadata_messages() if isinstance(message, Goodbye)]


async def test_a_rolling_restart_pauses_no_partition_for_a_write() -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        starts = dict(w.fleet.starts)
        for slot in sorted(starts):
            count = len(goodbyes(w))
            w.fleet.worker(slot).drain()
            await until(lambda count=count: len(goodbyes(w)) > count)  # type: ignore[misc]
            await until(lambda slot=slot: w.fleet.starts[slot] > starts[slot] and w.steady())  # type: ignore[misc]
        assert all(not message.next for message in goodbyes(w)), "all partitions had moved before"
        assert max(move.pause_s for move in view(w).moves) < 0.1 < WRITE_S
        assert not view(w).rescued
        await w.all_landed_once()


async def test_a_draining_consumer_alone_ends_after_a_while_and_its_successor_continues() -> None:
    async with world({"orders": 2}) as w:
        w.load(dict.fromkeys(P[:2], 20_000.0))
        await until(w.steady)
        w.fleet.worker(Slot(0)).drain()
        await until(lambda: bool(goodbyes(w)))
        assert goodbyes(w)[0].next.keys() == set(P[:2])
        await until(lambda: w.fleet.starts[Slot(0)] == 2 and w.steady())
        await w.all_landed_once()


async def test_without_a_controller_a_draining_consumer_still_ends() -> None:
    async with world({"orders": 4}) as w:
        await two_running(w)
        w.kill_controller()
        w.fleet.worker(Slot(0)).drain()
        await asyncio.sleep(WRITE_S + 4.0)
        assert len(goodbyes(w)) == 1
        w.start_controller()
        await until(w.steady)
        await w.all_landed_once()


async def test_the_controller_dies_while_a_consumer_drains() -> None:
    """Its successor learns of the drain from the report that replies to its query."""
    async with world({"orders": 4}) as w:
        await two_running(w)
        w.fleet.worker(Slot(0)).drain()
        w.kill_controller()
        w.start_controller()
        await until(lambda: bool(goodbyes(w)) and w.steady())
        assert not goodbyes(w)[0].next
        await w.all_landed_once()
