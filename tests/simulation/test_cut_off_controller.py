"""A controller that has lost its connection to Kafka declares no consumer dead."""

import asyncio
from typing import Any

import pytest
from tests.simulation.world import (
    COMMANDS,
    CONFIG,
    LANDING,
    METADATA,
    METRICS,
    NEEDS,
    ORDERS,
    P,
    World,
    until,
    world,
)

from binwright.controller.group_context import GroupContext
from binwright.controller.leadership import Leadership
from binwright.kafka.election import LeadershipLost
from binwright.kafka.metrics_topic import run_measurements
from binwright.packing.catalogue import algorithm
from binwright.protocol.metadata import Dead
from binwright.protocol.model import Slot

pytestmark = pytest.mark.looptime(noop_cycles=1)


def declared_dead(w: World) -> list[Slot]:
    return [message.slot for message in w.metadata_messages() if isinstance(message, Dead)]


class Connection:
    """One controller's connection to Kafka; while it is down, all calls wait."""

    def __init__(self, bus: Any) -> None:
        self.bus, self.up = bus, asyncio.Event()
        self.up.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.bus, name)

    async def publish(self, *args: Any) -> int:
        # As with a producer, a record that was handed over is sent even if the caller gives up.
        return await asyncio.shield(asyncio.ensure_future(self._publish(*args)))

    async def _publish(self, *args: Any) -> int:
        await self.up.wait()
        return int(await self.bus.publish(*args))

    async def end(self, *args: Any) -> int:
        await self.up.wait()
        return int(await self.bus.end(*args))

    async def reader(self, *args: Any) -> "DisconnectableReader":
        return DisconnectableReader(self, await self.bus.reader(*args))


class DisconnectableReader:
    def __init__(self, connection: Connection, reader: Any) -> None:
        self.connection, self.reader = connection, reader

    @property
    def position(self) -> int:
        return int(self.reader.position)

    def seek(self, offset: int) -> None:
        self.reader.seek(offset)

    async def read(self, timeout_s: float) -> Any:
        await self.connection.up.wait()
        return await self.reader.read(timeout_s)

    async def close(self) -> None:
        await self.reader.close()


@pytest.mark.parametrize("outage_s", [4, 8, 12, 25])
async def test_an_outage_of_kafka_declares_no_consumer_dead(outage_s: float) -> None:
    """Consumers whose reports could not be published are not dead."""
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        await w.bus.go_down()
        await asyncio.sleep(outage_s)
        await w.bus.come_up()
        await asyncio.sleep(30)
        assert not declared_dead(w)
        await w.all_landed_once()


async def test_a_leader_that_loses_its_connection_declares_no_consumer_dead() -> None:
    """A `Dead` of any controller is effective, so a wrong one would end a living process."""
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        connection = Connection(w.bus)
        group_context = GroupContext(
            METADATA, COMMANDS, LANDING, ORDERS, NEEDS, CONFIG, algorithm("sticky")
        )
        async with run_measurements(connection, METRICS) as measurements:
            first = asyncio.create_task(
                Leadership(connection, w.fleet, group_context, measurements).lead()
            )
            await asyncio.sleep(5)
            connection.up.clear()
            w.start_controller()
            await asyncio.sleep(25)
            connection.up.set()
            with pytest.raises(LeadershipLost):
                await asyncio.wait_for(first, 60)
        await until(w.steady)
        assert not declared_dead(w)
        await w.all_landed_once()
