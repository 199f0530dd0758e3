"""A group with a least number of consumers has them, however little there is to do."""

import asyncio
from dataclasses import replace

import pytest

from binwright.core.messages import Planned
from binwright.core.model import Slot

from .world import RULES, P, until, world

pytestmark = pytest.mark.looptime(noop_cycles=1)


async def test_two_read_what_one_could_and_stay_as_they_are() -> None:
    async with world({"orders": 4}, rules=replace(RULES, min_slots=2)) as w:
        w.load(dict.fromkeys(P, 100.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        plans = len(w.sent(Planned))
        await asyncio.sleep(600)
        assert len(w.sent(Planned)) == plans
        assert {at.slot for at in w.group().partitions.values()} == {0, 1}
        w.fleet.kill(Slot(1))
        await until(lambda: w.fleet.born[Slot(1)] == 2 and w.steady())
        assert {at.slot for at in w.group().partitions.values()} == {0, 1}
        await w.settled()
