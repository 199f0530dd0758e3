"""A topic that is full: landed by one consumer, and by Structured Streaming in three ways."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.landing import binwright_side, streaming
from bench.landing.bench_broker import COLUMNS, RECORD_BYTES, BenchBroker, until
from bench.landing.connect_server import spark_for
from bench.landing.cpu_usage import CpuUsage
from bench.landing.streaming import Query
from bench.landing.table_log import TableLog
from binwright.local.server import ProgressCallback

Row = dict[str, Any]

PARTITIONS = 8
WARM_MB = 200
BACKLOG_S, READY_S = 900.0, 400.0
BATCH_RECORDS = 75_000
SPARK_DEFAULTS: Mapping[str, str] = {
    "spark.scheduler.mode": "FIFO",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "200",
    "spark.databricks.delta.snapshotPartitions": "50",
    "spark.sql.files.openCostInBytes": "4194304",
    "spark.broadcast.compress": "true",
    "spark.shuffle.compress": "true",
}
"""Spark's own values of what we set otherwise, as far as landing goes."""


async def backlog(
    ground: BenchBroker, directory: Path, megabytes: int, progress: ProgressCallback
) -> list[Row]:
    """Land a backlog by one consumer, and by Structured Streaming in three ways."""
    batches = f"Structured Streaming, our settings, {BATCH_RECORDS:,} a batch"
    queries = (
        Variant("Structured Streaming, Spark's defaults", SPARK_DEFAULTS),
        Variant("Structured Streaming, our settings"),
        Variant(batches, per_trigger=BATCH_RECORDS),
    )
    return await _both_backlogs(ground, directory, megabytes, queries, "", progress)


async def backlog_in_columns(
    ground: BenchBroker, directory: Path, megabytes: int, progress: ProgressCallback
) -> list[Row]:
    """Land a backlog of JSON as columns: by one consumer, and by queries with `from_json`."""
    queries = (
        Variant("from_json, Spark's defaults", SPARK_DEFAULTS),
        Variant("from_json, our settings"),
    )
    return await _both_backlogs(
        ground, directory / "columns", megabytes, queries, COLUMNS, progress
    )


async def _both_backlogs(  # noqa: PLR0913, PLR0917 - what is run, and where
    ground: BenchBroker,
    directory: Path,
    megabytes: int,
    queries: Sequence["Variant"],
    columns: str,
    progress: ProgressCallback,
) -> list[Row]:
    kind = "-columns" if columns else ""
    rows = {
        f"warm{kind}": WARM_MB * 1_000_000 // RECORD_BYTES,
        f"backlog{kind}": megabytes * 1_000_000 // RECORD_BYTES,
    }
    await asyncio.to_thread(ground.create, list(rows), PARTITIONS)
    for topic, records in rows.items():
        progress(f"writing {records:,} records to {topic}")
        await asyncio.to_thread(ground.fill, topic, PARTITIONS, records)
    found = [await _our_backlog(ground, directory / "ours", rows, columns, progress)]
    for how in queries:
        found.append(await _their_backlog(ground, directory, rows, how, columns, progress))  # noqa: PERF401 - one after the other
    return found


async def _our_backlog(
    ground: BenchBroker,
    directory: Path,
    rows: Mapping[str, int],
    columns: str,
    progress: ProgressCallback,
) -> Row:
    async with spark_for("ours", directory, progress) as spark:
        for topic, wanted in rows.items():
            progress(f"binwright lands {topic}")
            group = binwright_side.GroupOptions(
                name=f"bench-{topic}", topics=[topic], columns=columns
            )
            chosen = binwright_side.settings(group, ground.kafka, spark.url, directory)
            log = TableLog(directory / "lake" / topic)
            async with binwright_side.running(chosen, directory) as stack:
                staging = directory / "lake" / "_staging"
                await until(lambda: any(staging.glob(f"*/{topic}/*")), READY_S, "files are staged")  # noqa: B023 - within the loop
                usage = CpuUsage(spark.pids)
                usage.add(stack.pids())
                began, cost = time.time(), usage.seconds()
                server = CpuUsage(spark.pids)
                server_began = server.seconds()
                await _landed(log, wanted, usage, BACKLOG_S)
                took = Took(
                    time.time() - began, usage.seconds() - cost, server.seconds() - server_began
                )
    return took.row("binwright", wanted, log)


class Took:
    """Time and cost of a backlog."""

    def __init__(self, seconds: float, cpu_s: float, spark_s: float) -> None:
        self.seconds, self.cpu_s, self.spark_s = seconds, cpu_s, spark_s

    def row(self, side: str, records: int, log: TableLog) -> Row:
        """Return what is printed."""
        megabytes = records * RECORD_BYTES / 1e6
        return {
            "side": side,
            "MB": megabytes,
            "s": self.seconds,
            "MB/s": megabytes / self.seconds,
            "CPU-s": self.cpu_s,
            "of it Spark": self.spark_s,
            "MB per CPU-s": megabytes / self.cpu_s,
            "commits": len(log.commits),
            "files": sum(c.files for c in log.commits),
        }


async def _landed(log: TableLog, wanted: int, usage: CpuUsage, deadline_s: float) -> None:
    def done() -> bool:
        usage.seconds()
        return log.read_new_commits() >= wanted

    await until(done, deadline_s, f"{wanted} records have landed")


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to land a backlog by Structured Streaming."""

    name: str
    conf: Mapping[str, str] | None = None  # of Spark; None: ours
    per_trigger: int | None = None  # records of one commit at most


async def _their_backlog(  # noqa: PLR0913, PLR0917 - what is run, and where
    ground: BenchBroker,
    directory: Path,
    rows: Mapping[str, int],
    how: Variant,
    columns: str,
    progress: ProgressCallback,
) -> Row:
    own = directory / how.name.replace(" ", "-").replace("'", "")
    async with spark_for("streaming", own, progress, how.conf) as spark:
        usage = CpuUsage(spark.pids)
        for topic in rows:
            progress(f"{how.name} lands {topic}")
            table = own / "lake" / topic
            query = Query(
                topic,
                table,
                own / "checkpoints" / topic,
                how.per_trigger,
                once=True,
                columns=columns,
            )
            began, cost = time.time(), usage.seconds()
            servers = ground.kafka.bootstrap_servers
            async with streaming.running(spark.url, servers, [query], {}) as handles:
                await streaming.wait_until_finished(handles[0], BACKLOG_S)
            took = time.time() - began
            spent = usage.seconds() - cost
            log = TableLog(table)
            wanted = log.read_new_commits()
    return Took(took, spent, spent).row(how.name, wanted, log)
