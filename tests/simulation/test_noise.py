"""Malformed records stop no loop; repeated records change nothing."""

import asyncio

import pytest
from tests.simulation.world import COMMANDS, LANDING, METADATA, METRICS, P, until, world

from binwright.protocol import wire
from binwright.protocol.commands import StartReading, StartWriting, StopReading, decode_command
from binwright.protocol.metadata import Planned
from binwright.protocol.model import Slot

pytestmark = pytest.mark.looptime(noop_cycles=1)

NOISE = (
    b"",
    b"not json",
    b"[]",
    b'{"kind":"hello/9","slot":1}',
    b'{"kind":"report/1","slot":-1}',
    b'{"kind":"measurement/1","topic":"orders","at_ms":0,"partitions":[{"rate":"fast"}]}',
    b'{"kind":"start-reading/1","term":1,"revision":1,"epoch":1,"offsets":{"orders":1}}',
    b'{"kind":"staged/1","topic":"orders","file":"x","ranges":{"orders-0":[1]}}',
)


async def test_noise_on_every_topic_is_skipped() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        for noise in NOISE:
            for topic, partition in ((METADATA, 0), (COMMANDS, 0), (METRICS, 0)):
                await w.bus.publish(topic, partition, b"noise", noise)
            for partition in range(8):
                await w.bus.publish(LANDING, partition, b"orders", noise)
        w.load(dict.fromkeys(P, 40_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.all_landed_once()


async def test_lost_acknowledgements_duplicate_records_and_do_no_harm() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        w.load(dict.fromkeys(P, 40_000.0))
        for _ in range(40):
            w.bus.fail_next(landed=True)
            await asyncio.sleep(0.7)
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.all_landed_once()


async def test_repeated_commands_change_nothing() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        w.load(dict.fromkeys(P, 40_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        for slot in (0, 1):
            for record in w.bus.records(COMMANDS, slot):
                command = decode_command(record.value)
                if isinstance(command, StartReading | StartWriting):
                    await w.bus.publish(COMMANDS, slot, b"again", wire.encode(command))
        await asyncio.sleep(5)
        await w.all_landed_once()


async def test_a_stop_of_an_older_term_is_dropped() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        old = w.group()
        w.kill_controller()
        w.start_controller()
        await until(w.steady)
        epoch = w.group().members.get(Slot(0)).epoch
        assert old.term is not None
        assert epoch is not None
        stop = StopReading(term=old.term, revision=1, epoch=epoch, partitions=tuple(P))
        await w.bus.publish(COMMANDS, 0, b"late", wire.encode(stop))
        before = w.landed()
        await asyncio.sleep(30)
        assert w.landed() > before
        await w.all_landed_once()


async def test_a_plan_has_reasons() -> None:
    async with world({"orders": 4}) as w:
        w.load(dict.fromkeys(P, 20_000.0))
        await until(w.steady)
        w.load(dict.fromkeys(P, 45_000.0))
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        reasons = [
            reason for m in w.metadata_messages() if isinstance(m, Planned) for reason in m.reasons
        ]
        assert any("carries" in reason and "of its limit" in reason for reason in reasons)
