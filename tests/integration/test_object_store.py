"""Staging and tables in an object store: S3 as moto's server has it, Spark by s3a://.

Messages and topics are fakes; staging, writers, Spark and Delta are the real ones.
"""

import asyncio
import io
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from uuid import NAMESPACE_OID, uuid5

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.session import SparkSession
from tests.consumer.land.scene import CLUSTER, GROUP, LANDING, ORDERS, Scene
from tests.integration.conftest import BackgroundLoop
from tests.integration.object_store import BUCKET, ObjectStore, missing_packages

from binwright.consumer.decide.land.states import WriterConfig
from binwright.consumer.events import Event, RowsMissing, TableLost
from binwright.consumer.land.announcements import LandingTopic
from binwright.consumer.land.backfill import EarlierStager
from binwright.consumer.land.context import SharedLake, WriterContext
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.land.maintenance import MaintenanceConfig, TableMaintenance
from binwright.consumer.land.orders import TableOrders
from binwright.consumer.land.replay import BadRecordDecoder
from binwright.consumer.land.writers import Writers
from binwright.consumer.read.ranges import RangeReader
from binwright.consumer.stage.file_staging import FileStaging
from binwright.consumer.stage.file_writer import RowWriter, one_raw_table
from binwright.inspect.doctor.lake_checks import ConnectServer, probe_file
from binwright.local.java import find_java
from binwright.local.server import no_progress
from binwright.local.spark import SparkServer, run_spark, s3_jars
from binwright.protocol.errors import StagedUnreadable
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import is_lease
from binwright.runtime.settings.consumer import LakeSettings
from binwright.tables.ports import Batch, FileSlice, Lake, Table
from binwright.tables.targets import Target
from binwright.testing.control_topics import loop_ms
from binwright.testing.data_topics import FakeDataReader

pytestmark = [
    pytest.mark.integration,
    pytest.mark.nightly,  # a Spark of its own
    pytest.mark.skipif(
        bool(missing_packages()),
        reason=f"not installed: {missing_packages()} (pip install -e '.[dev]')",
    ),
]

DEADLINE_S = 300.0
P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)


@asynccontextmanager
async def _spark(
    directory: "pytest.TempPathFactory", store: ObjectStore
) -> AsyncIterator[SparkServer]:
    jars = await s3_jars(await find_java(), no_progress)
    home = directory.mktemp("spark-s3")
    async with run_spark(home, settings=store.spark_settings(), jars=jars) as running:
        yield running


@pytest.fixture(scope="module")
def url(
    background_loop: BackgroundLoop, tmp_path_factory: pytest.TempPathFactory, store: ObjectStore
) -> Iterator[str]:
    """A Spark Connect server that reaches it."""
    with background_loop.entered(_spark(tmp_path_factory, store)) as running:
        yield running.url


@pytest.fixture(scope="module")
def spark(url: str) -> Iterator[SparkSession]:
    """Somebody else who looks at the tables."""
    session = SparkSession(DefaultChannelBuilder(url))
    yield session
    session.client.release_session()
    session.client.close()


class Bucket:
    """One test's prefix: a scene whose staged files are objects, and its table."""

    def __init__(self, store: ObjectStore, url: str, name: str, staging: FileStaging) -> None:
        self.store, self.name, self.staging = store, name, staging
        self.scene = Scene()
        self.scene.staging = staging  # type: ignore[assignment]
        self.lake = LakeSettings(path=f"s3a://{BUCKET}/{name}", spark=url)
        self.lost: list[str] = []
        self.gaps: list[dict[TopicPartition, int]] = []

    def staged(self) -> set[str]:
        """Return the names of the staged files that are there."""
        return {name for name in self._names() if not is_lease(name)}

    def leases(self) -> set[str]:
        """Return the names of the leases that are there."""
        return {name for name in self._names() if is_lease(name)}

    def _names(self) -> set[str]:
        return {key.rpartition("/")[2] for key in self.store.keys(f"{self.name}/_staging/")}

    async def until_staged(self, wanted: set[str]) -> None:
        """Wait until these staged files are there, and no others."""
        async with asyncio.timeout(DEADLINE_S):
            while await asyncio.to_thread(self.staged) != wanted:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.2)

    def tables(self) -> SparkLake:
        """Return the lake on this prefix."""
        return SparkLake(self.lake, self.store.staging(f"{self.name}/_staging"), 60.0)

    @asynccontextmanager
    async def writer(self, name: str) -> AsyncIterator[Writers]:
        """Run a consumer that writes the table of `orders`."""
        tables = self.tables()

        async def open_lake() -> Lake:
            return tables

        def config(target: Target) -> WriterConfig:
            table = Table(target.topic, GROUP, CLUSTER)
            return WriterConfig(
                table=table,
                writer=uuid5(NAMESPACE_OID, name).hex,
                from_latest=False,
                freshness_s=1.0,
                in_place=True,
            )

        def record(event: Event) -> None:
            match event:
                case TableLost():
                    self.lost.append(name)
                case RowsMissing(committed=committed):
                    self.gaps.append(dict(committed))

        context = WriterContext(
            lake=SharedLake(open_lake),
            targets=one_raw_table,
            server=self.lake.server,
            append_limit_s=60.0,
            bus=self.scene.bus,
            landing_topic=LANDING,
            announcements=LandingTopic(self.scene.bus, LANDING, loop_ms),
            orders=TableOrders(self.scene.bus, ORDERS),
            reader=FakeDataReader(self.scene.topics, GROUP),
            staging=self.staging,
            bad_records=BadRecordDecoder(staging=self.staging),
            earlier=EarlierStager(
                reader=RangeReader(lambda: nullcontext(FakeDataReader(self.scene.topics, GROUP))),
                writer=RowWriter(staging=self.staging),
            ),
            config=config,
            maintenance=TableMaintenance(MaintenanceConfig(), lambda _: "sc://spark"),
        )
        writers = Writers(context, record)
        async with tables:
            running = asyncio.create_task(writers.run())
            writers.start(["orders"])
            try:
                yield writers
            finally:
                running.cancel()
                await asyncio.wait({running})

    def landed(self, spark: SparkSession) -> Counter[tuple[int, int]]:
        rows = spark.read.format("delta").load(f"{self.lake.path}/orders")
        return Counter(tuple(row) for row in rows.select("partition", "offset").collect())


@pytest.fixture
async def bucket(
    store: ObjectStore, url: str, request: pytest.FixtureRequest
) -> AsyncIterator[Bucket]:
    """This test's prefix in the store."""
    name = request.node.name.replace("_", "-")
    async with FileStaging(store.staging(f"{name}/_staging")) as staging:
        await staging.prepare()
        found = Bucket(store, url, name, staging)
        await found.scene.prepare()
        yield found


def once(**ends: int) -> Counter[tuple[int, int]]:
    """Every offset of p0, p1... up to the end, once."""
    return Counter((int(name[1:]), o) for name, end in ends.items() for o in range(end))


async def test_staged_objects_land_once_and_are_deleted(
    bucket: Bucket, spark: SparkSession
) -> None:
    await bucket.scene.land({P: (0, 5), Q: (0, 3)})
    await bucket.scene.land({P: (3, 8)})  # begins earlier than what is committed: it is cut
    async with bucket.writer("w1"):
        await bucket.until_staged(set())

    assert await asyncio.to_thread(bucket.landed, spark) == once(p0=8, p1=3)


async def test_a_later_writer_fences_the_earlier_one(bucket: Bucket, spark: SparkSession) -> None:
    """What the earlier one still had in flight finds its lease gone."""
    await bucket.scene.land({P: (0, 5)})
    async with bucket.writer("w1"):
        await bucket.until_staged(set())
        earlier = await asyncio.to_thread(bucket.leases)
    async with bucket.writer("w2"):
        await bucket.scene.land({P: (5, 9)})
        await bucket.until_staged(set())
    later = await asyncio.to_thread(bucket.leases)
    late = await bucket.scene.write({P: (5, 9)})
    part = FileSlice(late.file, {0: (5, 9)}, whole=True, bytes=late.bytes, topic=late.topic)
    assert len(earlier) == len(later) == 1
    async with bucket.tables() as tables:
        batch = Batch((part,), {TopicPartition(late.topic, 0): 9}, late.rows, late.bytes)
        with pytest.raises(StagedUnreadable):
            await tables.append("orders", batch, earlier.pop(), "stamp")
        assert await asyncio.to_thread(bucket.landed, spark) == once(p0=9)
        await tables.append("orders", batch, later.pop(), "stamp")

    twice = once(p0=9) + Counter((0, offset) for offset in range(5, 9))
    assert await asyncio.to_thread(bucket.landed, spark) == twice, "the later lease was there"


async def test_a_new_writer_continues_where_the_table_ends(
    bucket: Bucket, spark: SparkSession
) -> None:
    """What was announced before is announced still: only the stamp in the table tells."""
    await bucket.scene.land({P: (0, 5)})
    async with bucket.writer("w1"):
        await bucket.until_staged(set())
    await bucket.scene.land({P: (0, 7)})  # read again, as after a death
    async with bucket.writer("w2"):
        await bucket.until_staged(set())

    assert await asyncio.to_thread(bucket.landed, spark) == once(p0=7)


async def test_a_lost_object_is_a_gap(bucket: Bucket) -> None:
    await bucket.staging.delete("orders", [await bucket.scene.land({P: (0, 5)})])
    async with bucket.writer("w1"), asyncio.timeout(DEADLINE_S):
        while not bucket.gaps:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.2)

    assert bucket.gaps[0] == {P: 0}


async def test_a_probe_in_the_store_is_read_by_spark_and_deleted(
    store: ObjectStore, url: str
) -> None:
    lake = LakeSettings(path=f"s3a://{BUCKET}/probed", spark=url)
    async with ConnectServer(url, lake) as server:
        async with probe_file(store.staging("probed/_staging")) as probe:
            assert (probe.staging.error, probe.staging.free_bytes) == ("", None)
            assert len(await asyncio.to_thread(store.keys, "probed/")) == 1
            assert (await server.look()).delta == "ready"
            assert (await server.read(probe)).status == "ok"
        assert await asyncio.to_thread(store.keys, "probed/") == set()
        missing = await server.read(probe)
    assert missing.status == "fault"
    assert "PATH_NOT_FOUND" in missing.what


def test_staged_objects_are_copied_into_the_table_and_land_as_they_are(
    store: ObjectStore, spark: SparkSession
) -> None:
    place = f"s3a://{BUCKET}/as-they-are"
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(1_000)}), sink)
    for name in ("1.parquet", "2.parquet", "lease.parquet"):
        store.put(f"as-they-are/_staging/t/{name}", sink.getvalue())
    spark.sql(f"CREATE TABLE delta.`{place}/t` (id BIGINT) USING delta").collect()

    def verdict(*names: str, lease: str = "lease.parquet") -> str:
        files = ", ".join(f"'{place}/_staging/t/{name}'" for name in names)
        statement = (
            f"CALL binwright.add_files(table => '{place}/t', stamp => 'a stamp', "
            f"lease => '{place}/_staging/t/{lease}', files => array({files}))"
        )
        (row,) = spark.sql(statement).collect()
        return str(row.verdict)

    assert verdict("1.parquet", lease="gone.parquet") == "no_lease"
    assert verdict("1.parquet", "3.parquet") == "missing"
    for _ in range(2):  # what an earlier try has put is used
        assert verdict("1.parquet", "2.parquet") == "landed"
    assert spark.read.format("delta").load(f"{place}/t").count() == 2_000
    data = {key for key in store.keys("as-they-are/t/") if "_delta_log" not in key}
    assert data == {"as-they-are/t/1.parquet", "as-they-are/t/2.parquet"}

    (merged,) = spark.sql(
        f"CALL binwright.merge_files(table => '{place}/t', below => 32000000L, "
        "target => 128000000L, row_groups => 512L)"
    ).collect()
    assert (merged.removed, merged.added, merged.what) == (2, 1, None)
    assert spark.read.format("delta").load(f"{place}/t").count() == 2_000
