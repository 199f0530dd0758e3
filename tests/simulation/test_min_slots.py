"""A group runs at least `min_slots` consumers, however low its load is."""

import asyncio

import pytest
from tests.simulation.world import CONFIG, P, until, world

from binwright.protocol.metadata import Planned
from binwright.protocol.model import Slot

pytestmark = pytest.mark.looptime(noop_cycles=1)


async def test_min_slots_consumers_run_even_with_little_load() -> None:
    async with world({"orders": 4}, config=CONFIG.with_settings(min_slots=2)) as w:
        w.load(dict.fromkeys(P, 100.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        plans = len(w.sent(Planned))
        await asyncio.sleep(600)
        assert len(w.sent(Planned)) == plans
        assert {at.slot for at in w.group().members.partitions.values()} == {0, 1}
        w.fleet.kill(Slot(1))
        await until(lambda: w.fleet.starts[Slot(1)] == 2 and w.steady())
        assert {at.slot for at in w.group().members.partitions.values()} == {0, 1}
        await w.all_landed_once()
