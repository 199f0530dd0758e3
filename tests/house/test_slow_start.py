"""A staging place that hangs at a start: nobody else has to wait for it."""

import asyncio

import pytest

from binwright.core.messages import Dead, Hello
from binwright.core.model import Slot, TopicPartition
from binwright.core.ownership import Owned

from .world import P, World, until, world

pytestmark = pytest.mark.looptime(noop_cycles=1)

WINDOW_S = 6.0


async def restarted(w: World) -> tuple[Slot, list[TopicPartition]]:
    """Let two consumers work, and start one anew while nobody can write the staging place.

    The other has room for one of its two partitions. Return the slot, and what it had.
    """
    w.load(dict.fromkeys(P, 40_000.0))
    await until(lambda: len(w.fleet.running) == 2 and w.steady())
    victim = max(w.fleet.running)
    had = sorted(p for p, at in w.group().partitions.items() if at.slot == victim)
    w.load({**dict.fromkeys(P, 20_000.0), had[0]: 80_000.0, had[1]: 30_000.0})
    await asyncio.sleep(WINDOW_S)  # until it is measured, and no better plan is looked for yet
    w.staging.refuses = "out of reach"
    w.fleet.kill(victim)
    await until(lambda: hellos(w, victim) == 2, 60)
    return victim, had


def hellos(w: World, slot: Slot) -> int:
    return sum(message.slot == slot for message in w.sent(Hello))


async def test_what_it_had_is_read_by_others_before_it_is_ready() -> None:
    async with world({"orders": 4}) as w:
        victim, had = await restarted(w)
        await until(lambda: any(isinstance(w.group().partitions[p], Owned) for p in had), 5)
        assert not w.group().member(victim).ready
        w.staging.refuses = ""
        await until(w.steady, 300)
        await w.settled(300)


async def test_it_is_waited_for_and_not_started_again_and_again() -> None:
    async with world({"orders": 4}) as w:
        victim, _ = await restarted(w)
        await asyncio.sleep(180)
        assert hellos(w, victim) == 2
        assert not w.sent(Dead)
        w.staging.refuses = ""
        await until(w.steady, 600)
        await w.settled(600)
