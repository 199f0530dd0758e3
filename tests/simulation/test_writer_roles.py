"""Writers of a group that starts: roles stay where they are, and are spread once it has settled."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from tests.builders import configured
from tests.simulation.world import COMMANDS, World, until, world

from binwright.controller.decide.moves import SETTLED_S
from binwright.protocol.commands import StartWriting, decode_command
from binwright.protocol.model import Slot, TopicPartition

pytestmark = pytest.mark.looptime(noop_cycles=1)

TOPICS = {"clicks": 10, "orders": 10}
CONSUMERS, START_S = 20, 20.0
CONFIG = replace(configured(12_000, 10_000, plan_timeout_s=60.0), stale_s=30.0)


@contextlib.asynccontextmanager
async def starting() -> AsyncIterator[World]:
    """Run a group that needs 20 consumers, which begin one after the other within 20 s."""
    async with world(TOPICS, CONFIG) as w:
        w.fleet.reports_ends = True
        w.start_s = {Slot(n): n * START_S / CONSUMERS for n in range(CONSUMERS)}
        w.load({TopicPartition(t, n): 6_000.0 for t, count in TOPICS.items() for n in range(count)})
        yield w


def granted(w: World) -> set[tuple[int, str, int]]:
    """Return which topics' tables consumers were made the writers of: revision, topic, slot."""
    commands = (
        (decode_command(record.value), slot)
        for slot in range(CONSUMERS)
        for record in w.bus.records(COMMANDS, slot)
    )
    return {
        (command.revision, topic, slot)
        for command, slot in commands
        if isinstance(command, StartWriting)
        for topic in command.tables
    }


async def test_while_twenty_consumers_start_no_table_changes_its_writer() -> None:
    async with starting() as w:
        await until(lambda: len(w.group().members.usable()) == CONSUMERS, 60)
        await asyncio.sleep(SETTLED_S - 10)
        assert sorted((topic, slot) for _, topic, slot in granted(w)) == [
            ("clicks", 0),
            ("orders", 0),
        ]
        assert len({w.owner(p) for p in w.topics.logs}) == CONSUMERS

        await until(lambda: w.steady() and w.writer("clicks") != w.writer("orders"), 60)
        await asyncio.sleep(20)
        assert len(granted(w)) == len(TOPICS) + 1
        await w.all_landed_once()


async def test_a_writer_that_is_killed_while_others_start_is_followed_at_once() -> None:
    async with starting() as w:
        await until(lambda: len(w.group().members.usable()) == CONSUMERS // 2, 60)
        await until(lambda: {t: w.writer(t) for t in TOPICS} == dict.fromkeys(TOPICS, 0))
        w.fleet.kill(Slot(0))
        await until(lambda: 0 not in {w.group().members.writers[t].slot for t in TOPICS}, 2)
        assert len(w.group().members.usable()) < CONSUMERS
        followers = {t: w.writer(t) for t in TOPICS}
        await until(lambda: len(w.group().members.usable()) == CONSUMERS, 60)
        assert {t: w.writer(t) for t in TOPICS} == followers
        await w.all_landed_once()
