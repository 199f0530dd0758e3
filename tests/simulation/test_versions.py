"""Versions before `GROUP.commands` and `GROUP.group-orders`: both stood in the metadata topic.

A mixed group loses and doubles nothing, and goes on by itself once all of it is of one version.
"""

import asyncio

import orjson
import pytest
from structlog.testing import capture_logs
from tests.simulation.world import COMMANDS, METADATA, METRICS, P, World, until, world

from binwright.group.ownership import Owned
from binwright.protocol import wire
from binwright.protocol.commands import Command, Leave, StopReading
from binwright.protocol.metadata import Claim, Report
from binwright.protocol.model import BytesPerSecond, Slot
from binwright.protocol.orders import CordonOrder, FreezeOrder
from binwright.testing.control_topics import FakeControlTopics

pytestmark = pytest.mark.looptime(noop_cycles=1)

OLD = Slot(0)


async def old_hello(bus: FakeControlTopics, slot: Slot) -> int:
    """Append the Hello of a consumer of the older version; return its epoch."""
    fields = {"slot": slot, "process": "old/1/x", "version": "0.0.9", "kind": "hello/1"}
    return await bus.publish(METADATA, 0, f"hello/{slot}".encode(), orjson.dumps(fields))


async def old_report(bus: FakeControlTopics, slot: Slot, epoch: int) -> None:
    report = Report(
        slot=slot, epoch=epoch, term=1, ready=True, reading=dict.fromkeys(P, 0), writing={}
    )
    await bus.publish(METADATA, 0, wire.key(report), wire.encode(report))


async def old_command(bus: FakeControlTopics, slot: Slot, command: Command) -> None:
    """Send it as a controller of the older version does."""
    await bus.publish(METADATA, slot + 1, wire.key(command), wire.encode(command))


async def test_a_group_that_was_stopped_goes_on_behind_what_an_older_version_left() -> None:
    bus = FakeControlTopics({METRICS: 1, METADATA: 5}, latency_s=0.002)
    epoch = await old_hello(bus, OLD)
    await old_report(bus, OLD, epoch)
    await old_command(bus, OLD, Leave(term=1, epoch=epoch))
    async with world({"orders": 4}, bus=bus) as w:
        w.load(dict.fromkeys(P, 40_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.all_landed_once()
        assert await bus.partitions(METADATA) == 5
        assert await bus.partitions(COMMANDS) == 2


async def test_a_consumer_of_an_older_version_gets_no_partition_and_is_named() -> None:
    with capture_logs() as logs:
        async with world({"orders": 4}) as w:
            w.load(dict.fromkeys(P, 40_000.0))
            await until(lambda: len(w.fleet.running) == 2 and w.steady())
            epoch = await old_hello(w.bus, Slot(7))
            for _ in range(30):
                await old_report(w.bus, Slot(7), epoch)
                await asyncio.sleep(1.0)
            owned = [at for at in w.group().members.partitions.values() if isinstance(at, Owned)]
            assert {at.slot for at in owned} == {0, 1}
            await w.all_landed_once()
    (unknown,) = (log for log in logs if log["event"] == "message.unknown")
    assert unknown["reason"].startswith("hello/1 is of a consumer of an older version")
    assert unknown["log_level"] == "warning"


async def test_consumers_land_on_under_a_controller_of_an_older_version() -> None:
    """They take no command of it, and the next controller of this version leads them on."""
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        await w.bus.ensure(METADATA, 3, {})
        await lead_as_an_older_version(w)
        assert w.controller_dead(), "it read the later claim"
        before = w.landed()
        await asyncio.sleep(30)
        assert w.landed() > before
        w.start_controller()
        w.load(dict.fromkeys(P, 40_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.all_landed_once()


async def lead_as_an_older_version(w: World) -> None:
    """Claim, and stop everything that the consumer reads, as if to move it."""
    claim = Claim(controller="old", limit=BytesPerSecond(1.0))
    term = await w.bus.publish(METADATA, 0, wire.key(claim), wire.encode(claim))
    epoch = w.process(0).ingest.consumer.epoch  # type: ignore[union-attr]  # it runs
    stop = StopReading(term=term, revision=10**6, epoch=epoch, partitions=tuple(P))
    await old_command(w.bus, OLD, stop)
    await until(w.controller_dead)


async def test_orders_of_an_older_version_hold_on_under_a_controller_of_this_one() -> None:
    bus = FakeControlTopics({METRICS: 1, METADATA: 1}, latency_s=0.002)
    freeze = FreezeOrder(frozen=True, by="ann", reason="a release")
    drain = CordonOrder(slot=Slot(0), state="drained", by="bob")
    for order in (freeze, drain):
        await bus.publish(METADATA, 0, wire.key(order), wire.encode(order))
    async with world({"orders": 4}, bus=bus) as w:
        w.load(dict.fromkeys(P, 40_000.0))
        await until(w.steady)
        assert {*w.group().people.controls.orders} == {freeze, drain}
        assert 0 not in w.fleet.running
        await w.order(CordonOrder(slot=Slot(0), state="open", by="bob"))
        w.kill_controller()
        w.start_controller()
        await until(w.steady)
        assert {*w.group().people.controls.orders} == {freeze}
        await w.all_landed_once()
