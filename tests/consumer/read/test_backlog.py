"""What a consumer knows of its own staged files that have not landed."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import pytest

from binwright.consumer.read.backlog import Backlog
from binwright.protocol.errors import StagingUnavailable
from binwright.protocol.model import TopicPartition
from binwright.protocol.ports.kafka import Record
from binwright.runtime.run import background_tasks, must_not_end
from binwright.tables.ports import Footer
from binwright.tables.targets import Target
from binwright.testing.records import in_columns
from binwright.testing.staging import ROW_OVERHEAD, FakeStaging

pytestmark = pytest.mark.looptime

FRESHNESS_S, INTERVAL_S = 5.0, 1.0  # a topic is checked 13 s after its oldest file


class Place:
    """A staging place, and a consumer that has files there."""

    def __init__(self) -> None:
        self.staging = FakeStaging()
        self.tables = {"orders": ("orders", "all"), "clicks": ("clicks", "all")}
        self.backlog = Backlog(self.staging, 1_000, FRESHNESS_S, INTERVAL_S, self.targets)

    def targets(self, topic: str) -> list[Target]:
        return [Target(topic, table) for table in self.tables[topic]]

    def is_full(self) -> bool:
        return self.backlog.full

    async def leave(self, table: str, name: str, size: int) -> None:
        """Leave a file of this size, as a consumer that has ended."""
        rows = {TopicPartition(table, 0): [Record(0, 0, None, bytes(size - ROW_OVERHEAD))]}
        await self.staging.write(table, name, in_columns(rows), Footer(None, 1, {}))

    async def add(self, topic: str, name: str, size: int = 10, *, table: str | None = None) -> None:
        target = Target(topic, table or topic)
        await self.staging.write(target.name, name, {}, Footer(None, 0, {}))
        self.backlog.add(target, name, size)


@asynccontextmanager
async def place() -> AsyncIterator[Place]:
    found = Place()
    async with background_tasks(must_not_end(found.backlog.run())):
        yield found


async def test_a_topic_that_lands_in_time_is_not_late() -> None:
    async with place() as found:
        for second in range(60):
            await found.add("orders", f"{second}.parquet")
            if second >= 4:
                await found.staging.delete("orders", [f"{second - 4}.parquet"])
            await asyncio.sleep(1)
            assert not found.backlog.late_s
            assert found.backlog.bytes <= 200


async def test_a_topic_is_as_late_as_its_oldest_file() -> None:
    async with place() as found:
        for second in range(100):
            await found.add("orders", f"{second}.parquet", 1)
            await asyncio.sleep(1)
        await found.add("clicks", "1.parquet", 1)
        assert found.backlog.late_s.keys() == {"orders"}
        assert 100 - FRESHNESS_S - 15 - 3 < found.backlog.late_s["orders"] <= 100 - FRESHNESS_S

        await found.staging.delete("orders", [f"{n}.parquet" for n in range(95)])
        await asyncio.sleep(19)
        assert not found.backlog.late_s.get("orders", 0) > 20
        await found.staging.delete("orders", [f"{n}.parquet" for n in range(95, 100)])
        await asyncio.sleep(19)
        assert "orders" not in found.backlog.late_s


async def test_a_topic_is_as_late_as_the_table_that_is_the_least_late() -> None:
    async with place() as found:
        for second in range(40):
            for table in ("raw", "typed"):
                await found.add("orders", f"{second}.parquet", 1, table=table)
            if second >= 4:
                await found.staging.delete("raw", [f"{second - 4}.parquet"])
            await asyncio.sleep(1)
            assert not found.backlog.late_s, "one that is refused has the other staged as before"
        assert found.backlog.over_share(["orders", "clicks"]) == frozenset()
        await asyncio.sleep(60)
        assert 40 < found.backlog.late_s["orders"] < 100


async def test_files_of_all_tables_count_for_their_topic() -> None:
    async with place() as found:
        await found.add("orders", "1.parquet", 300, table="raw")
        assert found.backlog.over_share(["orders", "clicks"]) == frozenset()
        await found.add("orders", "1.parquet", 300, table="typed")
        assert found.backlog.over_share(["orders", "clicks"]) == {"orders"}


async def test_what_has_landed_no_longer_counts() -> None:
    async with place() as found:
        await found.add("orders", "1.parquet", 100)
        await found.add("orders", "2.parquet", 20)
        await found.staging.delete("orders", ["1.parquet"])
        await asyncio.sleep(17)
        assert found.backlog.bytes == 20
        await found.staging.delete("orders", ["2.parquet"])
        await asyncio.sleep(40)
        assert found.backlog.bytes == 0


async def test_all_files_are_looked_at_also_behind_many_that_never_land() -> None:
    async with place() as found:
        for number in range(1_200):
            await found.add("orders", f"{number}.parquet", 1)
        await found.staging.delete("orders", [f"{n}.parquet" for n in range(1_100, 1_200)])
        await asyncio.sleep(30)
        assert found.backlog.bytes == 1_100


async def test_above_a_quarter_of_the_limit_it_is_looked_at_every_three_seconds() -> None:
    async with place() as found:
        await found.add("orders", "1.parquet", 250)
        await found.staging.delete("orders", ["1.parquet"])
        await asyncio.sleep(4)
        assert found.backlog.bytes == 0


async def test_a_storage_that_is_away_changes_nothing() -> None:
    async with place() as found:
        await found.add("orders", "1.parquet", 100)
        await found.staging.delete("orders", ["1.parquet"])
        real = found.staging.existing

        async def away(directory: str, names: Collection[str]) -> Collection[str]:
            raise StagingUnavailable(f"{directory} with {names} is away")

        found.staging.existing = away  # type: ignore[method-assign]
        await asyncio.sleep(60)
        assert (found.backlog.bytes, found.backlog.late_s) == (100, {})
        found.staging.existing = real  # type: ignore[method-assign]
        await asyncio.sleep(4)
        assert found.backlog.bytes == 0


async def test_what_was_left_when_a_topic_is_first_read_counts_until_it_has_landed() -> None:
    """Each restart of a consumer of a refused table would stage as much again."""
    async with place() as found:
        for number in range(3):
            await found.leave("orders", f"{number}.parquet", 300)
        await asyncio.sleep(61)
        await found.leave("orders", "new.parquet", 300)  # on its way
        assert found.backlog.over_share(["orders", "clicks"]) == frozenset()
        await asyncio.sleep(4)
        assert found.backlog.over_share(["orders", "clicks"]) == {"orders"}
        assert not found.is_full()
        assert found.backlog.bytes == 0, "what is reported is this consumer's"
        await found.add("clicks", "1.parquet", 100)
        assert found.is_full()
        await found.staging.delete("orders", ["0.parquet", "1.parquet"])
        await asyncio.sleep(20)
        assert not found.is_full()
        assert found.backlog.over_share(["orders", "clicks"]) == frozenset()


async def test_files_of_a_table_of_several_topics_count_once() -> None:
    async with place() as found:
        for number in range(2):
            await found.leave("all", f"{number}.parquet", 400)
        await asyncio.sleep(61)
        found.backlog.over_share(["orders", "clicks"])
        await asyncio.sleep(4)
        assert not found.is_full()
        await found.add("orders", "1.parquet", 200)
        assert found.is_full()


async def test_a_topic_that_is_not_read_any_more_counts_no_more() -> None:
    async with place() as found:
        await found.leave("orders", "0.parquet", 1_000)
        await asyncio.sleep(61)
        found.backlog.over_share(["orders"])
        await asyncio.sleep(4)
        assert found.is_full()
        found.backlog.over_share(["clicks"])
        await asyncio.sleep(4)
        assert not found.is_full()
        found.backlog.over_share(["orders"])
        await asyncio.sleep(4)
        assert found.is_full()
