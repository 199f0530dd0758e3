"""The main job, start to end, in no time."""

import asyncio

import pytest

from binwright.core.machine import Sentinel
from binwright.core.messages import Planned
from binwright.core.model import Slot, TopicPartition

from .world import METADATA, World, world

P = [TopicPartition("orders", i) for i in range(4)]


async def until(condition, patience_s: float = 60.0) -> None:
    deadline = asyncio.get_running_loop().time() + patience_s
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, "never came about"
        await asyncio.sleep(0.25)


def steady(w: World) -> bool:
    controller = w.controllers[-1]
    group = controller.state.group
    return isinstance(controller.state, Sentinel) and len(group.assignment()) == len(w.topics.logs)


@pytest.mark.looptime
async def test_load_doubles_then_a_consumer_appears_and_nothing_is_lost_or_doubled() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(lambda: steady(w))
        assert w.fleet.running == {0}
        w.load(dict.fromkeys(P, 40_000.0))
        await until(lambda: w.fleet.running == {0, 1} and steady(w))
        moved = [m for m in w.heard() if isinstance(m, Planned) and m.moves]
        assert moved
        await w.settled()
