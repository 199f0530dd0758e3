"""Tables of the tests of the lake, and what is staged for them."""

import asyncio
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import lease_name
from binwright.protocol.ports.kafka import Record
from binwright.runtime.settings.consumer import LakeSettings
from binwright.tables.ports import Batch, FileSlice, Ranges, Table
from binwright.testing.records import in_columns
from binwright.testing.staging import footer_of

DEADLINE_S = 300.0
TABLE, CLICKS = Table("orders", "g", "cluster-a"), Table("clicks", "g", "cluster-a")
P, Q = TopicPartition("orders", 0), TopicPartition("orders", 1)
LEASE, OTHER_LEASE = (lease_name(digit * 32, 1) for digit in "01")

Rows = Mapping[TopicPartition, Sequence[Record]]


def records(count: int, first: int = 0, size: int = 10) -> list[Record]:
    return [Record(first + i, 1_700_000_000_000, None, os.urandom(size)) for i in range(count)]


ROWS: Rows = {P: records(3), Q: records(2, first=7)}
ONCE = Counter([(0, 0), (0, 1), (0, 2), (1, 7), (1, 8)])


def new_lake(
    lake: Path, url: str, *, write_timeout_s: float = 60.0, **settings: float
) -> SparkLake:
    wanted = LakeSettings(path=str(lake), spark=url)
    return SparkLake(
        wanted.model_copy(update=settings),  # also with less than a person may set
        str(lake / "_staging"),
        write_timeout_s,
    )


def whole(file: str, rows: Rows) -> FileSlice:
    """Everything of a file."""
    ends = {p.partition: (r[0].offset, r[-1].offset + 1) for p, r in rows.items()}
    return FileSlice(file, ends, whole=True, bytes=1_000, topic=next(iter(rows)).topic)


def file_part(file: str, ranges: Ranges) -> FileSlice:
    return FileSlice(file, ranges, whole=False, bytes=1_000, topic="orders")


async def stage_file(staging: FileStaging, rows: Rows, name: str = "a.parquet") -> Batch:
    """Write a file; return the batch that is all of it."""
    size = await staging.write(next(iter(rows)).topic, name, in_columns(rows), footer_of(rows))
    found = whole(name, rows)
    ends = dict(zip(found.partitions, (end for _, end in found.ranges.values()), strict=True))
    return Batch((found,), ends, 0, size)


def landed_offsets(
    spark: SparkSession, lake: Path, topic: str = "orders"
) -> Counter[tuple[int, int]]:
    rows = spark.read.format("delta").load(f"{lake}/{topic}").select("partition", "offset")
    return Counter((partition, offset) for partition, offset in rows.collect())


def sql(spark: SparkSession, statement: str) -> None:
    spark.sql(statement).collect()


def files(lake: Path) -> int:
    return len(list((lake / "orders").glob("*.parquet")))


async def wait_for_write(write: asyncio.Task[None], lake: Path, before: int) -> None:
    """Wait until it writes its file: by then it has taken its snapshot."""
    while True:
        if files(lake) > before or write.done():
            return
        await asyncio.sleep(0.01)
