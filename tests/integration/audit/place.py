"""A topic, and a lake to land it in."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from aiokafka import AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from tests.integration.topics import create_topic

from binwright.inspect.audit import AuditResult, audit
from binwright.kafka.client import ClusterClient
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import BAD_SUFFIX
from binwright.runtime.settings.consumer import LakeSettings
from binwright.runtime.settings.kafka import KafkaSettings
from binwright.tables.columns import KAFKA
from binwright.tables.stamp import Stamp

RECORDS = 50
# The table lacks nothing of the first; what is wrong with the others, their names say.
WHOLE, MISSING, TAIL, DOUBLES, RETENTION, TRANSACTIONS, BEYOND, EMPTY, STRANGE = range(9)
EARLIER = datetime(2024, 5, 1, tzinfo=UTC)
HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
FIELDS: "list[pa.Field[Any]]" = [
    pa.field("topic", pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
    pa.field("timestamp", pa.timestamp("us", "UTC")),
    pa.field("timestamp_type", pa.int32()),
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("headers", pa.list_(HEADER)),
]
COLUMNS = pa.schema(FIELDS)
KAFKA_STRUCT = (
    f"struct({', '.join(field.name for field in FIELDS if field.name != 'value')}) AS {KAFKA}"
)


class Place:
    """A topic, and a lake to land it in."""

    def __init__(self, broker: str, spark: Any, url: str, lake: Path, topic: str) -> None:
        self.kafka = KafkaSettings(bootstrap_servers=broker)
        self.lake = LakeSettings(path=str(lake), spark=url)
        self.topic, self.spark = topic, spark

    @property
    def table(self) -> str:
        return f"{self.lake.path}/{self.topic}"

    def land(
        self, offsets: Mapping[int, Sequence[int]], at: datetime = EARLIER, stamp: str = ""
    ) -> None:
        self._append(self._frame(offsets, at), self.table, stamp)

    def land_columns(
        self, offsets: Mapping[int, Sequence[int]], at: datetime = EARLIER, stamp: str = ""
    ) -> None:
        """Land rows whose values have columns with names like Kafka's."""
        columns = (KAFKA_STRUCT, "'x' AS timestamp", "1 AS partition", "struct(2 AS offset) AS c")
        self._append(self._frame(offsets, at).selectExpr(*columns), self.table, stamp)

    def land_bad(self, offsets: Mapping[int, Sequence[int]], topic_id: str | None) -> None:
        known_id = "CAST(NULL AS STRING)" if topic_id is None else f"'{topic_id}'"
        why = ("'malformed' AS kind", "'no JSON' AS reason", "value", "now() AS landed_at")
        columns = (KAFKA_STRUCT, f"{known_id} AS topic_id", *why)
        frame = self._frame(offsets, EARLIER).selectExpr(*columns)
        self._append(frame, self.table + BAD_SUFFIX)

    def _frame(self, offsets: Mapping[int, Sequence[int]], at: datetime) -> Any:
        same = {"topic": self.topic, "timestamp": at, "timestamp_type": 0, "value": b"x"}
        rows = [
            {**same, "partition": partition, "offset": offset, "headers": []}
            for partition, landed in offsets.items()
            for offset in landed
        ]
        none = [{**same, "partition": 0, "offset": 0, "headers": []}]  # Spark takes no empty one
        frame = self.spark.createDataFrame(pa.Table.from_pylist(rows or none, COLUMNS))
        return frame if rows else frame.where("false")

    @staticmethod
    def _append(frame: Any, path: str, stamp: str = "") -> None:
        writer = frame.coalesce(1).write.format("delta").mode("append")
        writer.option("userMetadata", stamp).save(path)

    async def topic_id(self) -> str | None:
        async with ClusterClient(self.kafka) as cluster:
            return await cluster.topic_id(self.topic)

    def offsets(self, of: Mapping[int, int]) -> dict[TopicPartition, int]:
        """Return offsets by partition, of the numbers of the topic's partitions."""
        return {TopicPartition(self.topic, number): offset for number, offset in of.items()}

    async def stamp(self, committed: Mapping[int, int], **more: Any) -> str:
        """Return what the table's writer says of a commit about the topic as it is now."""
        return Stamp(
            group="g",
            cluster="c",
            writer="w",
            sequence=1,
            topic_ids={self.topic: await self.topic_id()},
            landing_id="l",
            committed=self.offsets(committed),
            **more,
        ).encode()

    def sql(self, statement: str) -> None:
        self.spark.sql(statement.format(f"delta.`{self.table}`")).collect()

    def move_away(self) -> None:
        """Have no table, and what was beside it."""
        Path(self.table).rename(f"{self.table}.before")

    def files(self) -> list[Path]:
        return list(Path(self.table).glob("*.parquet"))

    async def create(self, partitions: int, **config: str) -> None:
        """Create the topic; once Kafka has deleted one of this name, if it is just doing so."""
        await create_topic(self.kafka, self.topic, partitions, config=config)

    async def delete(self) -> None:
        async with admin_of(self.kafka.bootstrap_servers) as admin:
            await admin.delete_topics([self.topic])

    async def fill(self, partitions: int) -> None:
        """Create the topic and produce to every partition but `EMPTY`."""
        await self.create(partitions)
        await self.produce(*({*range(partitions)} - {EMPTY}))

    async def produce(
        self, *partitions: int, records: int = RECORDS, value: bytes | None = b"x"
    ) -> None:
        servers = self.kafka.bootstrap_servers
        async with AIOKafkaProducer(bootstrap_servers=servers) as producer:
            for partition in partitions:
                for _ in range(records):
                    await producer.send(self.topic, value, b"k", partition=partition)

    async def forget(self, partition: int, before: int) -> None:
        """Do what retention does."""
        gone = {KafkaPartition(self.topic, partition): RecordsToDelete(before_offset=before)}
        async with admin_of(self.kafka.bootstrap_servers) as admin:
            await admin.delete_records(gone)

    async def transact(self, partition: int) -> None:
        """Append five records and a marker, five aborted ones and a marker, five and a marker."""
        async with AIOKafkaProducer(
            bootstrap_servers=self.kafka.bootstrap_servers, transactional_id=self.topic
        ) as producer:
            for commits in (True, False, True):
                await producer.begin_transaction()
                for _ in range(5):
                    await producer.send(self.topic, b"x", partition=partition)
                await (producer.commit_transaction() if commits else producer.abort_transaction())

    async def audit(self, **options: Any) -> AuditResult:
        return await audit([self.topic], self.kafka, self.lake, **options)


@asynccontextmanager
async def admin_of(servers: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=servers)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()
