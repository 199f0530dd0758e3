"""What a commit costs in a table that is old: after 100, 10,000 and 100,000 landed batches.

Landing 100,000 batches takes days. So most of them are made up: the log files that they would have
left (commits, compactions every `COMPACT` of them, and their times) are written by this bench, in
Delta's own form. delta-rs writes the checkpoint behind the old ones: Spark takes over fifteen
minutes to read 100,000 log files. Real commits of the product's writer follow them and the recent
ones, so that Delta writes its own, and the log can be trimmed to what the product keeps. The real
commits behind that are measured.
"""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
from deltalake import DeltaTable

from bench.landing.cpu_usage import CpuUsage
from binwright.consumer.land.lake.log_trim import trim_log
from binwright.consumer.land.lake.spark_lake import SparkLake
from binwright.consumer.stage.file_staging import FileStaging
from binwright.local.spark import run_spark
from binwright.protocol.model import TopicPartition
from binwright.protocol.names import lease_name
from binwright.protocol.ports.kafka import Record, Records
from binwright.runtime.clock import wall_ms
from binwright.runtime.settings.consumer import LakeSettings
from binwright.streams.load import SampleRecords
from binwright.tables.ports import Batch, FileSlice, Footer, Table
from binwright.tables.stamp import Stamp

BATCHES = (100, 10_000, 100_000)
COMPACT, EVERY_S = 200, 5.0
ROWS = 600  # of a batch, a kilobyte each
MEASURED = 60
CHECKPOINTED = 60  # real commits behind which there is a checkpoint: Delta writes one every 50
KEEP = 1_000
ANSWER_S = 120.0
RECENT = 1_100  # batches behind the old checkpoint: above `KEEP`, so that the log is trimmed there
TABLE = Table("old", "bench", "cluster")
LEASE = lease_name("0" * 32, 1)


class History:
    """Writes the log of batches that never were; the last of them landed `before_s` ago."""

    def __init__(self, table: Path, batches: int, before_s: float) -> None:
        self._log = table / "_delta_log"
        self._version = 1 + max(int(file.stem) for file in self._log.glob("*[0-9].json"))
        self._at = time.time() - before_s - batches * EVERY_S
        self._small: list[str] = []
        for batch in range(batches):
            self._commit(batch + 1)
            if len(self._small) == COMPACT:
                self._compact()

    def _commit(self, sequence: int) -> None:
        stamp = Stamp(
            group=TABLE.group,
            cluster=TABLE.cluster,
            writer="history",
            sequence=sequence,
        )
        name = f"part-00000-{uuid4()}-c000.snappy.parquet"
        self._small.append(name)
        info = {"operation": "WRITE", "userMetadata": stamp.encode(), "isBlindAppend": True}
        self._write([self._info(info), self._add(name, ROWS, data_change=True)])
        self._at += EVERY_S

    def _compact(self) -> None:
        removed = [
            {
                "remove": {
                    "path": name,
                    "deletionTimestamp": self._ms,
                    "dataChange": False,
                    "extendedFileMetadata": True,
                    "partitionValues": {},
                    "size": ROWS * 1_000,
                }
            }
            for name in self._small
        ]
        whole = f"part-00000-{uuid4()}-c000.snappy.parquet"
        merged = self._add(whole, ROWS * len(self._small), data_change=False)
        self._write([self._info({"operation": "OPTIMIZE"}), merged, *removed])
        self._small = []

    @property
    def _ms(self) -> int:
        return round(self._at * 1000)

    def _info(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {"commitInfo": {"timestamp": self._ms, "txnId": str(uuid4()), **facts}}

    def _add(self, name: str, rows: int, *, data_change: bool) -> dict[str, Any]:
        stats = orjson.dumps({"numRecords": rows, "nullCount": {"topic": 0}}).decode()
        return {
            "add": {
                "path": name,
                "partitionValues": {},
                "size": rows * 1_000,
                "modificationTime": self._ms,
                "dataChange": data_change,
                "stats": stats,
            }
        }

    def _write(self, actions: list[dict[str, Any]]) -> None:
        file = self._log / f"{self._version:020}.json"
        file.write_bytes(b"\n".join(map(orjson.dumps, actions)) + b"\n")
        os.utime(file, (self._at, self._at))
        self._version += 1


async def growth(directory: Path, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return the cost of a commit after so many batches, each table on the same warm Spark."""
    found: list[dict[str, Any]] = []
    home = directory / "growth"
    async with run_spark(home / "spark", memory="2g", progress=progress) as spark:
        server = CpuUsage([spark.pid or 0])
        for batches in (BATCHES[0], *BATCHES):  # the first one warms the server up
            progress(f"commits after {batches:,} batches")
            lake = LakeSettings(path=str(home / f"lake-{len(found)}-{batches}"), spark=spark.url)
            found.append(await _measure(lake, batches, server))
            progress(str(found[-1]))
    first = found[1]["CPU-s a commit"]
    return [{**row, "ratio": row["CPU-s a commit"] / first} for row in found[1:]]


async def _measure(settings: LakeSettings, batches: int, server: CpuUsage) -> dict[str, Any]:
    table = Path(settings.path) / TABLE.topic
    staging = FileStaging(f"{settings.path}/_staging")
    async with SparkLake(settings, f"{settings.path}/_staging", ANSWER_S) as lake:
        await lake.open(TABLE)
        await staging.write_lease(TABLE.topic, LEASE)
        old, recent = max(0, batches - RECENT), min(batches, RECENT)
        await asyncio.to_thread(History, table, old, recent * EVERY_S)
        await asyncio.to_thread(DeltaTable(table).create_checkpoint)
        await _commits(lake, staging, CHECKPOINTED)
        await asyncio.to_thread(History, table, recent, 0.0)
        await _commits(lake, staging, CHECKPOINTED)
        await asyncio.to_thread(trim_log, table, KEEP)
        cost, began = server.seconds(), time.monotonic()
        await _commits(lake, staging, MEASURED)
        spent, took = server.seconds() - cost, time.monotonic() - began
    return {
        "side": f"after {batches:,} batches",
        "CPU-s a commit": spent / MEASURED,
        "s a commit": took / MEASURED,
        "files in the log": sum(1 for _ in (table / "_delta_log").iterdir()),
    }


async def _commits(lake: SparkLake, staging: FileStaging, count: int) -> None:
    for number in range(count):
        await _commit(lake, staging, number)


async def _commit(lake: SparkLake, staging: FileStaging, number: int) -> None:
    partition, name = TopicPartition(TABLE.topic, 0), f"0-1-{number}-{uuid4().hex[:8]}.parquet"
    source, first = SampleRecords(1_000, seed=number), number * ROWS
    rows = Records.of(Record(first + n, wall_ms(), *source.make(0)) for n in range(ROWS))
    ranges = {0: (first, first + ROWS)}
    size = await staging.write(TABLE.topic, name, {partition: [rows]}, Footer(None, ROWS, ranges))
    stamp = Stamp(group=TABLE.group, cluster=TABLE.cluster, writer="bench", sequence=number + 1)
    batch = Batch((FileSlice(name, ranges, True, size, TABLE.topic),), {}, ROWS, size)  # noqa: FBT003 - whole
    await lake.append(TABLE.topic, batch, LEASE, stamp.encode())
    await staging.delete(TABLE.topic, [name])
