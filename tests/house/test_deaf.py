"""A controller that cannot hear judges nobody: it is perhaps the only one that is cut off."""

import asyncio
from typing import Any

import pytest

from binwright.controller.measurements import measuring
from binwright.controller.steer import Controller, Deposed, Realm
from binwright.core.messages import Dead
from binwright.core.model import Slot
from binwright.core.packing.catalogue import algorithm

from .world import LANDING, METADATA, METRICS, NEEDS, RULES, P, World, until, world

pytestmark = pytest.mark.looptime(noop_cycles=1)


def dead(w: World) -> list[Slot]:
    return [message.slot for message in w.heard() if isinstance(message, Dead)]


class Line:
    """One controller's own way to Kafka, which can be cut: what is asked then waits."""

    def __init__(self, bus: Any) -> None:
        self.bus, self.whole = bus, asyncio.Event()
        self.whole.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bus, name)

    async def publish(self, *args: Any) -> int:
        # As a producer does: what was handed over goes out, whether anybody waits or not.
        return await asyncio.shield(asyncio.ensure_future(self._sent(*args)))

    async def _sent(self, *args: Any) -> int:
        await self.whole.wait()
        return int(await self.bus.publish(*args))

    async def end(self, *args: Any) -> int:
        await self.whole.wait()
        return int(await self.bus.end(*args))

    async def reader(self, *args: Any) -> "Cut":
        return Cut(self, await self.bus.reader(*args))


class Cut:
    def __init__(self, line: Line, reader: Any) -> None:
        self.line, self.reader = line, reader

    @property
    def position(self) -> int:
        return int(self.reader.position)

    async def read(self, timeout_s: float) -> Any:
        await self.line.whole.wait()
        return await self.reader.read(timeout_s)

    async def close(self) -> None:
        await self.reader.close()


@pytest.mark.parametrize("outage_s", [4, 8, 12, 25])
async def test_an_outage_of_kafka_kills_nobody(outage_s: float) -> None:
    """Consumers whose reports could not come are not dead."""
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        await w.bus.go_down()
        await asyncio.sleep(outage_s)
        await w.bus.come_up()
        await asyncio.sleep(30)
        assert not dead(w)
        await w.settled()


async def test_a_leader_cut_off_and_back_takes_no_consumer_with_it() -> None:
    """`Dead` counts whoever says it: one word said from ignorance would void the living."""
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        line = Line(w.bus)
        realm = Realm(METADATA, LANDING, NEEDS, RULES, algorithm("sticky"))
        async with measuring(line, METRICS) as measurements:
            first = asyncio.create_task(Controller(line, w.fleet, realm, measurements).reign())
            await asyncio.sleep(5)
            line.whole.clear()
            w.start_controller()
            await asyncio.sleep(25)
            line.whole.set()
            with pytest.raises(Deposed):
                await asyncio.wait_for(first, 60)
        await until(w.steady)
        assert not dead(w)
        await w.settled()
