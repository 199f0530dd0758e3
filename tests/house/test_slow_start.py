"""A slow machine: newcomers claim for minutes, and nobody else has to wait for that."""

import asyncio

import pytest

from binwright.core.group import Held
from binwright.core.messages import Dead, Hello
from binwright.core.model import Slot, TopicPartition

from .world import P, World, until, world

WINDOW_S = 6.0
pytestmark = pytest.mark.looptime

CLAIM_S = 100.0  # and as long to make the table: beyond the plan timeout, not the start timeout


async def restarted(w: World) -> tuple[Slot, list[TopicPartition]]:
    """Let two consumers work, and start one of them anew on a machine that became slow.

    The other has room for one of its two partitions. Return the slot, and what it had.
    """
    w.load(dict.fromkeys(P, 40_000.0))
    await until(lambda: len(w.fleet.running) == 2 and w.steady())
    victim = max(w.fleet.running)
    had = sorted(p for p, place in w.group().places.items() if place.slot == victim)
    w.load({**dict.fromkeys(P, 20_000.0), had[0]: 80_000.0, had[1]: 30_000.0})
    await asyncio.sleep(WINDOW_S)  # until it is measured, and no better plan is looked for yet
    w.write_s = CLAIM_S
    w.fleet.kill(victim)
    await until(lambda: hellos(w, victim) == 2, 60)
    return victim, had


def hellos(w: World, slot: Slot) -> int:
    return sum(isinstance(m, Hello) and m.slot == slot for m in w.heard())


def dead(w: World) -> list[Slot]:
    return [m.slot for m in w.heard() if isinstance(m, Dead)]


async def test_what_it_held_is_read_by_others_before_it_is_ready() -> None:
    async with world({"orders": 4}) as w:
        victim, had = await restarted(w)
        await until(lambda: any(isinstance(w.group().places[p].at, Held) for p in had), 5)
        assert hellos(w, victim) == 2
        assert not w.group().member(victim).ready
        w.write_s = 0.5
        await until(w.steady, 300)
        await w.settled(300)


async def test_it_is_waited_for_and_not_started_again_and_again() -> None:
    async with world({"orders": 4}) as w:
        victim, _ = await restarted(w)
        await asyncio.sleep(1.8 * CLAIM_S)
        assert (hellos(w, victim), dead(w)) == (2, [])
        w.write_s = 0.5
        await until(w.steady, 600)
        await w.settled(600)
