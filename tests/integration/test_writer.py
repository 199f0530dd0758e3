"""Tables' writers, whole, against a real Spark and real files; only Kafka is a fake."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

import pytest
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession
from tests.consumer.land.scene import CLUSTER, GROUP, LANDING, ORDERS, P, Q, Scene, once

from binwright.consumer.__main__ import lake_opener
from binwright.consumer.decide.land.compaction import CompactionConfig
from binwright.consumer.decide.land.states import WriterConfig
from binwright.consumer.events import Event, RowsMissing
from binwright.consumer.land.announcements import LandingTopic
from binwright.consumer.land.backfill import EarlierStager
from binwright.consumer.land.context import SharedLake, WriterContext
from binwright.consumer.land.maintenance import MaintenanceConfig, TableMaintenance
from binwright.consumer.land.orders import TableOrders
from binwright.consumer.land.replay import BadRecordDecoder
from binwright.consumer.land.writers import Writers
from binwright.consumer.read.ranges import RangeReader
from binwright.consumer.stage.file_staging import FileStaging
from binwright.consumer.stage.file_writer import RowWriter, one_raw_table
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import BAD_SUFFIX
from binwright.runtime.settings.consumer import LakeSettings
from binwright.tables.columns import parse_columns
from binwright.tables.ports import Table
from binwright.tables.targets import Target
from binwright.testing.control_topics import loop_ms
from binwright.testing.data_topics import FakeDataReader

pytestmark = pytest.mark.integration

DEADLINE_S = 200.0
CLICKS = TopicPartition("clicks", 0)


@dataclass
class Ground:
    """A scene whose files and tables are real."""

    scene: Scene
    lake: Path
    spark_url: str
    spark: SparkSession
    writers: "count[int]" = field(default_factory=lambda: count(1))
    gaps: list[dict[TopicPartition, int]] = field(default_factory=list)

    def landed(self, partition: TopicPartition) -> Counter[int]:
        rows = self.spark.read.format("delta").load(f"{self.lake}/{partition.topic}")
        found = rows.where(f"partition = {partition.partition}").select("offset").collect()
        return Counter(row[0] for row in found)

    def columns(self, query: str) -> list[tuple[object, ...]]:
        """Return the rows of a query of `{rows}` and `{bad}`, the tables of orders."""
        tables = {
            "rows": f"delta.`{self.lake}/orders`",
            "bad": f"delta.`{self.lake}/orders{BAD_SUFFIX}`",
        }
        return [tuple(row) for row in self.spark.sql(query.format(**tables)).collect()]

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until it is true; raise `TimeoutError` when it does not come."""
        async with asyncio.timeout(DEADLINE_S):
            while not true():  # noqa: ASYNC110 - it is seen from outside only
                await asyncio.sleep(0.2)

    async def until_landed(self, expected: Mapping[TopicPartition, int], writers: Writers) -> None:
        """Wait until a writer says so."""

        def landed() -> bool:
            every = (r for tables in writers.reports().values() for r in tables.values())
            result = {p: o for report in every for p, o in report.committed.items()}
            return all(result.get(p, 0) >= end for p, end in expected.items())

        await self.until(landed)

    @asynccontextmanager
    async def writing(
        self, *topics: str, maintenance: MaintenanceConfig | None = None
    ) -> AsyncIterator[Writers]:
        """Run a process that writes these tables."""
        settings = LakeSettings(path=str(self.lake), spark=self.spark_url)
        async with AsyncExitStack() as stack:
            open_lake = lake_opener(stack, settings, str(self.lake / "_staging"), 60.0)
            context = WriterContext(
                lake=SharedLake(open_lake),
                targets=one_raw_table,
                server=settings.server,
                append_limit_s=60.0,
                bus=self.scene.bus,
                landing_topic=LANDING,
                announcements=LandingTopic(self.scene.bus, LANDING, loop_ms),
                orders=TableOrders(self.scene.bus, ORDERS),
                reader=FakeDataReader(self.scene.topics, GROUP),
                staging=self.scene.staging,
                bad_records=BadRecordDecoder(staging=self.scene.staging),
                earlier=EarlierStager(
                    reader=RangeReader(
                        lambda: nullcontext(FakeDataReader(self.scene.topics, GROUP))
                    ),
                    writer=RowWriter(staging=self.scene.staging),
                ),
                config=self._rules,
                maintenance=TableMaintenance(
                    maintenance or MaintenanceConfig(), lambda _: "sc://spark"
                ),
            )
            writers = Writers(context, self._record_event)
            running = asyncio.create_task(writers.run())
            writers.start(topics)
            try:
                yield writers
            finally:
                running.cancel()
                await asyncio.wait({running})

    def _record_event(self, event: Event) -> None:
        if isinstance(event, RowsMissing):
            self.gaps.append(dict(event.committed))

    def _rules(self, target: Target) -> WriterConfig:
        number = next(self.writers)
        return WriterConfig(
            table=Table(target.topic, GROUP, CLUSTER, self.scene.columns),
            writer=uuid5(NAMESPACE_OID, f"w{number}").hex,
            freshness_s=1.0,
            in_place=number % 3 > 0,  # each of them goes on from what the others have landed
        )


@pytest.fixture
async def ground(lake: Path, spark_url: str) -> AsyncIterator[Ground]:
    scene = await Scene({"orders": 2, "clicks": 1}).prepare()
    spark = SparkSession(DefaultChannelBuilder(spark_url))
    async with FileStaging(str(lake / "_staging"), in_place=True) as staging:
        scene.staging = staging  # type: ignore[assignment]
        yield Ground(scene, lake, spark_url, spark)
    spark.client.release_session()
    spark.client.close()


async def test_rows_of_two_tables_land_once_through_writers_that_die_at_any_moment(
    ground: Ground,
) -> None:
    scene = ground.scene
    for turn in range(4):
        first, end = turn * 200, turn * 200 + 200
        await scene.land({P: (first, end), Q: (first, end)})
        await scene.land({CLICKS: (first, end)})
        async with ground.writing("orders", "clicks") as writers:
            await scene.stage({P: (max(first - 50, 0), end)})  # a second reader's
            await asyncio.sleep(0.5 + 1.5 * turn)
            if turn == 3:
                await ground.until_landed({P: 800, Q: 800, CLICKS: 800}, writers)

    assert ground.landed(P) == ground.landed(Q) == ground.landed(CLICKS) == once(800)


async def test_json_lands_as_columns_beside_bad_records_through_writers_that_die(
    ground: Ground,
) -> None:
    """Each offset is in one of the two tables, once; a column that is added is NULL before."""
    scene = ground.scene
    scene.columns = parse_columns("id BIGINT, item STRUCT<name: STRING>")
    for turn in range(4):
        first, end = turn * 100, turn * 100 + 100
        if turn == 2:
            scene.columns = parse_columns("id BIGINT, item STRUCT<name: STRING, size: INT>, n INT")
        for partition in (P, Q):
            values = (order(n, is_bad=n % 10 == turn) for n in range(first, end))
            scene.topics.produce(partition, *values)
        await scene.stage({P: (first, end), Q: (first, end)})
        async with ground.writing("orders") as writers:
            await scene.stage({P: (max(first - 50, 0), end)})  # a second reader's
            await asyncio.sleep(0.5 + 1.5 * turn)
            if turn == 3:
                await ground.until_landed({P: 400, Q: 400}, writers)

    place = "SELECT _kafka.partition, _kafka.offset FROM"
    both = ground.columns(f"{place} {{rows}} UNION ALL {place} {{bad}}")
    assert sorted(both) == [(p, n) for p in (0, 1) for n in range(400)]
    assert ground.columns("SELECT kind, count(*) FROM {bad} GROUP BY ALL") == [("malformed", 80)]
    late = "SELECT id, item.name, item.size, n FROM {rows} WHERE _kafka.offset = {n} LIMIT 1"
    assert ground.columns(late.replace("{n}", "5")) == [(5, "a", None, None)]
    assert ground.columns(late.replace("{n}", "305")) == [(305, "a", 7, 305)]


def order(n: int, *, is_bad: bool) -> bytes:
    """Return a record's value."""
    value = b'{"id": %d, "n": %d, "item": {"name": "a", "size": 7}}' % (n, n)
    return value[:-1] if is_bad else value


async def test_a_file_that_lost_its_content_is_read_again(ground: Ground) -> None:
    """Spark passes over an empty file without a word."""
    scene = ground.scene
    async with ground.writing("orders") as writers:
        await scene.land({P: (0, 10)})
        await ground.until_landed({P: 10}, writers)
        scene.produce(P, 20)
        staged = await scene.write({P: (10, 20)})
        (ground.lake / "_staging" / "orders" / staged.file).write_bytes(b"")
        await scene.announce(staged)
        await scene.stage({P: (20, 30)})
        await ground.until(lambda: bool(ground.gaps))
        assert ground.gaps[0] == {P: 10}
        await scene.stage({P: (10, 20)})
        await ground.until_landed({P: 30}, writers)

    assert ground.landed(P) == once(30)


async def test_a_refusing_table_and_a_compacted_one_both_land_every_row(
    ground: Ground,
) -> None:
    scene = ground.scene
    async with ground.writing(
        "orders", "clicks", maintenance=MaintenanceConfig(CompactionConfig(3))
    ) as writers:
        await scene.land({P: (0, 10)})
        await scene.land({CLICKS: (0, 10)})
        await ground.until_landed({P: 10, CLICKS: 10}, writers)
        table = f"delta.`{ground.lake}/orders`"
        ground.spark.sql(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK (offset < 10)").collect()
        await scene.land({P: (10, 20)})
        for n in range(1, 6):
            await scene.land({CLICKS: (n * 10, n * 10 + 10)})
            await ground.until_landed({CLICKS: n * 10 + 10}, writers)
        await ground.until(lambda: writers.reports()["orders"]["orders"].state == "refused")
        assert "CHECK constraint small" in writers.reports()["orders"]["orders"].fault
        ground.spark.sql(f"ALTER TABLE {table} DROP CONSTRAINT small").collect()
        await ground.until_landed({P: 20}, writers)

    assert ground.landed(P) == once(20)
    assert ground.landed(CLICKS) == once(60)
    history = ground.spark.sql(f"DESCRIBE HISTORY delta.`{ground.lake}/clicks`")
    assert history.where("operation = 'OPTIMIZE'").count() >= 1
