"""A consumer whose staging location is unreachable at its start: no other waits for it."""

import asyncio

import pytest
from tests.simulation.world import P, World, until, world

from binwright.group.ownership import Owned
from binwright.protocol.metadata import Dead, Hello
from binwright.protocol.model import Slot, TopicPartition

pytestmark = pytest.mark.looptime(noop_cycles=1)

WINDOW_S = 6.0


async def restart_without_staging(w: World) -> tuple[Slot, list[TopicPartition]]:
    """Run two consumers and restart one while the staging location cannot be written.

    The other has capacity for one of its two partitions. Return the slot and its partitions.
    """
    w.load(dict.fromkeys(P, 40_000.0))
    await until(lambda: len(w.fleet.running) == 2 and w.steady())
    victim = max(w.fleet.running)
    owned_before = sorted(p for p, at in w.group().members.partitions.items() if at.slot == victim)
    w.load({**dict.fromkeys(P, 20_000.0), owned_before[0]: 80_000.0, owned_before[1]: 30_000.0})
    await asyncio.sleep(WINDOW_S)  # until it is measured, but before a better plan is looked for
    w.staging.write_error = "out of reach"
    w.fleet.kill(victim)
    await until(lambda: hellos(w, victim) == 2, 60)
    return victim, owned_before


def hellos(w: World, slot: Slot) -> int:
    return sum(message.slot == slot for message in w.sent(Hello))


async def test_a_restarting_consumers_partitions_are_read_by_others_before_it_is_ready() -> None:
    async with world({"orders": 4}) as w:
        victim, owned_before = await restart_without_staging(w)
        await until(
            lambda: any(isinstance(w.group().members.partitions[p], Owned) for p in owned_before), 5
        )
        assert not w.group().members.get(victim).ready
        w.staging.write_error = ""
        await until(w.steady, 300)
        await w.all_landed_once(300)


async def test_a_slow_start_is_not_repeated() -> None:
    async with world({"orders": 4}) as w:
        victim, _ = await restart_without_staging(w)
        await asyncio.sleep(180)
        assert hellos(w, victim) == 2
        assert not w.sent(Dead)
        w.staging.write_error = ""
        await until(w.steady, 600)
        await w.all_landed_once(600)
