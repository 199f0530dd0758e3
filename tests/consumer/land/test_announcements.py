"""One reader of a landing partition serves all tables of a process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from tests.builders import staged

from binwright.consumer.land import announcements
from binwright.consumer.land.announcements import (
    AHEAD_S,
    Announced,
    LandingTopic,
    Subscription,
)
from binwright.kafka.control_records import LANDING_PARTITIONS, landing_partition
from binwright.protocol import wire
from binwright.runtime.run import background_tasks
from binwright.testing.control_topics import FakeControlTopics, FakeReader, loop_ms

pytestmark = pytest.mark.looptime

LANDING = "g.landing"
TABLES = [t for t in (f"t{n}" for n in range(99)) if landing_partition(t) == 0][:3]
"""Tables of one landing partition."""


@dataclass
class Table:
    """A subscriber."""

    topic: str
    room: bool = True
    offsets: list[int] = field(default_factory=list)
    ages_s: list[float] = field(default_factory=list)
    read_up_to: int = 0
    lost: list[str] = field(default_factory=list)
    got: asyncio.Event = field(default_factory=asyncio.Event)

    async def apply(self, announced: Announced, read_up_to: int) -> None:
        self.offsets += [offset for offset, _ in announced]
        self.ages_s += [staged.age_s for _, staged in announced]
        self.read_up_to = max(read_up_to, self.read_up_to)
        if announced:
            self.got.set()

    def subscription(self, offset: int = 0) -> Subscription:
        return Subscription(
            self.topic,
            {self.topic}.__contains__,
            offset,
            self.apply,
            lambda: self.room,
            self.lost.append,
        )


class CountingTopics(FakeControlTopics):
    """Counts the readers that were opened."""

    opened = 0

    async def reader(self, topic: str, partition: int, offset: int) -> FakeReader:
        self.opened += 1
        return await super().reader(topic, partition, offset)


class World:
    """The landing topic and what is announced on it."""

    def __init__(self) -> None:
        self.bus = CountingTopics({LANDING: LANDING_PARTITIONS})
        self.landing = LandingTopic(self.bus, LANDING, loop_ms)
        self.announced: dict[str, list[int]] = {}

    async def announce(
        self, topic: str, times: int = 1, file: str = "0-1-1-0a1b2c3d.parquet"
    ) -> None:
        announced = staged(topic, file=file)
        for _ in range(times):
            key, value = wire.key(announced), wire.encode(announced)
            offset = await self.bus.publish(LANDING, landing_partition(topic), key, value)
            self.announced.setdefault(topic, []).append(offset)

    async def end(self) -> int:
        return await self.bus.end(LANDING, 0)


@asynccontextmanager
async def tables(*topics: str) -> AsyncIterator[tuple[World, list[Table]]]:
    world, subscribers = World(), [Table(topic) for topic in topics]
    yield world, subscribers
    for each in subscribers:
        await world.landing.unsubscribe(each.topic)


async def test_tables_of_one_partition_share_a_reader_and_each_gets_its_own() -> None:
    async with tables(*TABLES) as (world, all_of_them):
        for _ in range(4):
            for topic in TABLES:
                await world.announce(topic)
        for table in all_of_them:
            world.landing.subscribe(table.subscription())
        await asyncio.sleep(1)
        await world.announce(TABLES[0])
        await asyncio.sleep(1)

        assert [t.offsets for t in all_of_them] == [world.announced[t] for t in TABLES]
        assert world.bus.opened == 1


async def test_rows_age_while_their_announcement_waits() -> None:
    """As while the table is paused, or has no writer; clocks may differ by a little."""
    async with tables(TABLES[0]) as (world, (table,)):
        await world.announce(table.topic)
        await asyncio.sleep(20.0)
        await world.announce(table.topic)
        await asyncio.sleep(4.0)
        world.landing.subscribe(table.subscription())
        await asyncio.sleep(1.0)
        assert table.ages_s == pytest.approx([24.0, 0.0], abs=0.1)


async def test_an_announcement_of_a_file_that_is_no_consumers_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with tables(TABLES[0]) as (world, (table,)):
        world.landing.subscribe(table.subscription())
        await world.announce(table.topic, file="9-9-9-0a1b2c3d.parquet")
        await world.announce(table.topic)
        await asyncio.sleep(1)

        assert table.offsets == world.announced[table.topic][1:]
    assert "announcement.refused" in capsys.readouterr().out


async def test_a_table_advances_over_the_announcements_of_others() -> None:
    """Its next writer need not read them again."""
    async with tables(*TABLES[:2]) as (world, (idle, busy)):
        world.landing.subscribe(idle.subscription())
        world.landing.subscribe(busy.subscription())
        await world.announce(busy.topic, 50)
        await asyncio.sleep(6)

        assert idle.offsets == []
        assert idle.read_up_to == await world.end()


async def test_a_table_that_begins_later_gets_what_was_read_before() -> None:
    async with tables(*TABLES[:2]) as (world, (early, late)):
        await world.announce(early.topic, 3)
        await world.announce(late.topic, 3)
        world.landing.subscribe(early.subscription())
        await asyncio.sleep(1)
        world.landing.subscribe(late.subscription(world.announced[late.topic][1]))
        await world.announce(late.topic)
        await asyncio.sleep(6)

        assert early.offsets == world.announced[early.topic]
        assert late.offsets == world.announced[late.topic][1:]


async def test_a_new_table_does_not_wait_for_records_of_others() -> None:
    async with tables(*TABLES[:2]) as (world, (idle, new)):
        await world.announce(new.topic, 3)
        world.landing.subscribe(idle.subscription(await world.end()))
        await asyncio.sleep(1)
        world.landing.subscribe(new.subscription())
        await asyncio.sleep(0.1)

        assert new.offsets == world.announced[new.topic]


async def test_a_table_without_room_delays_no_other_and_gets_the_rest_later() -> None:
    async with tables(*TABLES[:2]) as (world, (full, other)):
        world.landing.subscribe(full.subscription())
        world.landing.subscribe(other.subscription())
        await world.announce(full.topic, 10)
        await asyncio.sleep(1)
        full.room = False
        await world.announce(full.topic, 700)
        await world.announce(other.topic, 10)
        await asyncio.sleep(12)
        assert full.offsets == world.announced[full.topic][:10]
        assert other.offsets == world.announced[other.topic]
        assert full.read_up_to <= world.announced[full.topic][10]

        full.room = True
        world.landing.resume(full.topic)
        await asyncio.sleep(12)
        assert full.offsets == world.announced[full.topic]


async def test_a_table_far_behind_leaves_the_others_their_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(announcements, "TURN_RECORDS", 500)
    async with tables(*TABLES[:2]) as (world, (behind, ahead)):
        await world.announce(behind.topic, 3_000)
        world.landing.subscribe(ahead.subscription(await world.end()))
        await asyncio.sleep(1)
        world.landing.subscribe(behind.subscription())
        await world.announce(ahead.topic)
        await asyncio.wait_for(ahead.got.wait(), 60)
        assert len(behind.offsets) <= 1_000
        await asyncio.sleep(12)

        assert behind.offsets == world.announced[behind.topic]
        assert ahead.offsets == world.announced[ahead.topic]


async def test_a_table_for_which_something_comes_all_the_time_leaves_others_their_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(announcements, "TURN_RECORDS", 500)
    async with tables(*TABLES[:2]) as (world, (busy, new)):
        await world.announce(new.topic, 3_000)
        world.landing.subscribe(busy.subscription(await world.end()))

        async def announce() -> None:
            while True:
                await world.announce(busy.topic)
                await asyncio.sleep(AHEAD_S / 3)

        async with background_tasks(announce()):
            await asyncio.sleep(5)
            world.landing.subscribe(new.subscription())
            await asyncio.sleep(20)
            assert new.offsets == world.announced[new.topic]
        await asyncio.sleep(6)
        assert busy.offsets == world.announced[busy.topic]


async def test_a_table_that_begins_while_the_last_other_ends_is_read_for() -> None:
    async with tables(*TABLES[:2]) as (world, (ending, new)):
        world.landing.subscribe(ending.subscription())
        await asyncio.sleep(1)
        end = asyncio.create_task(world.landing.unsubscribe(ending.topic))
        await asyncio.sleep(0)  # the reader is being closed
        world.landing.subscribe(new.subscription())
        await end
        await world.announce(new.topic)
        await asyncio.sleep(6)

        assert new.offsets == world.announced[new.topic]


async def test_a_recreated_topic_is_reported_to_each_table() -> None:
    async with tables(*TABLES[:2]) as (world, (one, other)):
        world.landing.subscribe(one.subscription(7))
        world.landing.subscribe(other.subscription(7))
        await asyncio.sleep(1)

        assert [len(one.lost), len(other.lost)] == [1, 1]
        assert "before offset 7" in one.lost[0]


async def test_reading_goes_on_after_an_outage() -> None:
    async with tables(TABLES[0]) as (world, (table,)):
        world.landing.subscribe(table.subscription())
        await asyncio.sleep(1)
        await world.bus.go_down()
        await asyncio.sleep(60)
        await world.bus.come_up()
        await world.announce(table.topic)
        await asyncio.sleep(8)

        assert table.offsets == world.announced[table.topic]
        assert not table.lost
