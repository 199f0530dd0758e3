"""Consumers that are asked to end one after another, on virtual time: nobody waits for a reader."""

import asyncio

import pytest

from binwright.core import wire
from binwright.core.messages import Goodbye
from binwright.core.model import Slot
from binwright.lab.picture import Picture

from .world import METADATA, P, World, until, world

pytestmark = pytest.mark.looptime(noop_cycles=1)

WRITE_S = 8.0


def picture(w: World) -> Picture:
    made = Picture()
    for record in w.bus.records(METADATA, 0):
        made.heard(record.offset, record.timestamp_ms, wire.decode_inbound(record.value))
    return made


async def two_at_work(w: World) -> None:
    w.write_s = WRITE_S
    w.load(dict.fromkeys(P, 40_000.0))
    await until(lambda: len(w.fleet.running) == 2 and w.steady())


def goodbyes(w: World) -> list[Goodbye]:
    return [message for message in w.heard() if isinstance(message, Goodbye)]


async def test_a_rolling_bounce_pauses_nothing_for_a_write() -> None:
    async with world({"orders": 4}) as w:
        await two_at_work(w)
        born = dict(w.fleet.born)
        for slot in sorted(born):
            said = len(goodbyes(w))
            w.fleet.worker(slot).drain()
            await until(lambda said=said: len(goodbyes(w)) > said)  # type: ignore[misc]
            await until(lambda slot=slot: w.fleet.born[slot] > born[slot] and w.steady())  # type: ignore[misc]
        assert all(not message.next for message in goodbyes(w)), "all was moved before"
        assert max(move.pause_s for move in picture(w).moves) < 0.1 < WRITE_S
        assert not picture(w).rescued
        await w.settled()


async def test_who_is_alone_quits_after_a_while_and_its_successor_goes_on() -> None:
    async with world({"orders": 2}) as w:
        w.load(dict.fromkeys(P[:2], 20_000.0))
        await until(w.steady)
        w.fleet.worker(Slot(0)).drain()
        await until(lambda: bool(goodbyes(w)))
        assert goodbyes(w)[0].next.keys() == set(P[:2])
        await until(lambda: w.fleet.born[Slot(0)] == 2 and w.steady())
        await w.settled()


async def test_without_a_controller_who_is_asked_to_end_still_ends() -> None:
    async with world({"orders": 4}) as w:
        await two_at_work(w)
        w.kill_controller()
        w.fleet.worker(Slot(0)).drain()
        await asyncio.sleep(WRITE_S + 4.0)
        assert len(goodbyes(w)) == 1
        w.start_controller()
        await until(w.steady)
        await w.settled()


async def test_the_controller_dies_while_somebody_leaves() -> None:
    """Its successor takes the wish to leave from the report that answers it."""
    async with world({"orders": 4}) as w:
        await two_at_work(w)
        w.fleet.worker(Slot(0)).drain()
        w.kill_controller()
        w.start_controller()
        await until(lambda: bool(goodbyes(w)) and w.steady())
        assert not goodbyes(w)[0].next
        await w.settled()
