"""Hand-overs under slow writes, on virtual time: the heir reads on while the old owner lands."""

import asyncio

import pytest

from binwright.core import wire
from binwright.core.messages import Landed, Report, Stopped
from binwright.core.model import Slot
from binwright.lab.picture import Picture

from .world import METADATA, P, World, until, world

pytestmark = pytest.mark.looptime

WRITE_S = 8.0


def picture(w: World) -> Picture:
    made = Picture()
    for record in w.bus.records(METADATA, 0):
        made.heard(record.offset, record.timestamp_ms, wire.decode_inbound(record.value))
    return made


def unsettled(w: World) -> list[Stopped]:
    return [m for m in w.heard() if isinstance(m, Stopped) and m.unsettled]


def landed(w: World) -> list[Landed]:
    return [m for m in w.heard() if isinstance(m, Landed)]


async def grown(w: World) -> None:
    """Load four partitions lightly, then so that they need a second consumer."""
    w.write_s = WRITE_S
    w.load(dict.fromkeys(P, 20_000.0))
    await until(w.steady)
    w.load(dict.fromkeys(P, 40_000.0))


async def test_a_partition_is_read_on_while_the_write_in_flight_takes_seconds() -> None:
    async with world({"orders": 4}) as w:
        await grown(w)
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        moves = picture(w).moves
        assert moves
        assert len(unsettled(w)) == len(landed(w)) > 0
        assert max(move.pause_s for move in moves) < 0.1 < WRITE_S
        await w.settled()


async def test_whoever_dies_with_its_last_write_under_way_loses_and_doubles_nothing() -> None:
    async with world({"orders": 4}) as w:
        await grown(w)
        await until(lambda: bool(unsettled(w)))
        w.fleet.kill(unsettled(w)[0].slot)
        await until(w.steady)
        await w.settled()


async def test_an_heir_that_dies_while_it_reads_ahead_loses_and_doubles_nothing() -> None:
    async with world({"orders": 4}) as w:
        await grown(w)
        await until(lambda: bool(unsettled(w)))
        w.fleet.kill(Slot(1 - unsettled(w)[0].slot))
        await until(w.steady)
        await w.settled()


async def test_a_controller_that_dies_while_an_heir_reads_ahead_is_succeeded() -> None:
    async with world({"orders": 4}) as w:
        await grown(w)
        await until(lambda: bool(unsettled(w)))
        w.kill_controller()
        w.start_controller()
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.settled()


async def test_what_is_read_ahead_has_a_limit_and_is_read_on_behind_it() -> None:
    async with world({"orders": 4}) as w:
        w.cap_bytes = 200_000
        await grown(w)
        await until(lambda: len(w.fleet.running) == 2 and w.steady())
        await w.settled(300.0)


async def test_no_report_tells_of_a_landing_before_its_answer_does() -> None:
    """† Else a controller that hears all would think that it had missed the `Landed`.

    While Kafka is away reports and answers wait together; one report is enough.
    """
    async with world({"orders": 4}) as w:
        await grown(w)
        await until(lambda: bool(unsettled(w)))
        said = unsettled(w)[0]
        before = sum(w.storage.landed()[said.unsettled[0]].values())
        await w.bus.go_down()
        await until(lambda: sum(w.storage.landed()[said.unsettled[0]].values()) > before)
        await asyncio.sleep(5.0)
        await w.bus.come_up()
        await until(lambda: bool(landed(w)))
        heard = w.heard()
        answer = next(m for m in landed(w) if m.revision == said.revision)
        between = heard[heard.index(said) : heard.index(answer)]
        told = [m for m in between if isinstance(m, Report) and m.slot == said.slot]
        assert all(set(said.unsettled) <= set(m.closing) for m in told)
        await until(w.steady)
        await w.settled()
