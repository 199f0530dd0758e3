"""A topic that is full: landed by one consumer, and by Structured Streaming in three ways."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.registry.server import run_registry

from bench.landing import binwright_side, compaction, streaming
from bench.landing.bench_broker import BenchBroker, until
from bench.landing.connect_server import OURS, spark_for
from bench.landing.cpu_usage import CpuUsage
from bench.landing.forms import BYTES, JSON, SCHEMA, Form, avro
from bench.landing.streaming import Query
from bench.landing.table_log import DeltaLog
from binwright.local.server import ProgressCallback
from binwright.protocol.errors import ExternalError

Row = dict[str, Any]

PARTITIONS = 8
# An append of 60 MB takes 14 CPU-s in a new server, 3 after a few, and 1 after thirty.
WARM_MB = 1_000
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
    return await _both_backlogs(ground, directory, megabytes, queries, BYTES, progress)


async def backlog_in_columns(
    ground: BenchBroker, directory: Path, megabytes: int, progress: ProgressCallback
) -> list[Row]:
    """Land a backlog of JSON as columns: by one consumer, and by queries with `from_json`."""
    queries = (
        Variant("from_json, Spark's defaults", SPARK_DEFAULTS),
        Variant("from_json, our settings"),
    )
    return await _both_backlogs(ground, directory / "columns", megabytes, queries, JSON, progress)


async def backlog_of_avro(
    ground: BenchBroker, directory: Path, megabytes: int, progress: ProgressCallback
) -> list[Row]:
    """Land a backlog of Avro as columns: by one consumer, and by queries with `from_avro`.

    A registry has the schema, whose id is in front of each value; queries are given it as text.
    """
    queries = (
        Variant("from_avro, Spark's defaults", SPARK_DEFAULTS),
        Variant("from_avro, our settings"),
    )
    own = directory / "avro"
    async with run_registry(own / "registry") as registry:
        # Both topics' subjects have one schema, so one id.
        ids = {registry.register(f"{name}-avro-value", SCHEMA) for name in ("warm", "backlog")}
        form = avro(registry.url, ids.pop())
        return await _both_backlogs(ground, own, megabytes, queries, form, progress)


async def _both_backlogs(  # noqa: PLR0917 - what is run, and where
    ground: BenchBroker,
    directory: Path,
    megabytes: int,
    queries: Sequence["Variant"],
    form: Form,
    progress: ProgressCallback,
) -> list[Row]:
    rows = {
        f"{name}-{form.name}": size * 1_000_000 // form.record_bytes
        for name, size in (("warm", WARM_MB), ("backlog", megabytes))
    }
    await asyncio.to_thread(ground.create, list(rows), PARTITIONS)
    written = 0.0  # megabytes of the last topic
    for topic, records in rows.items():
        progress(f"writing {records:,} records to {topic}")
        written = await asyncio.to_thread(ground.fill, topic, PARTITIONS, records, form)
    found = [await _our_backlog(ground, directory / "ours", rows, form, progress)]
    for how in queries:
        found.append(await _their_backlog(ground, directory, rows, how, form, progress))  # noqa: PERF401 - one after the other
    return [took.row(written) for took in found]


async def _our_backlog(
    ground: BenchBroker,
    directory: Path,
    rows: Mapping[str, int],
    form: Form,
    progress: ProgressCallback,
) -> "Took":
    async with spark_for(OURS, directory, progress) as spark:
        for topic, wanted in rows.items():
            progress(f"binwright lands {topic}")
            group = binwright_side.GroupOptions(name=f"bench-{topic}", topics=[topic], form=form)
            chosen = binwright_side.settings(group, ground.kafka, spark.url, directory)
            log = DeltaLog(directory / "lake" / topic)
            async with binwright_side.running(chosen, directory) as stack:
                staging = directory / "lake" / "_staging"
                await until(lambda: any(staging.glob(f"*/{topic}/*")), READY_S, "files are staged")  # noqa: B023 - within the loop
                usage = CpuUsage(spark.pids)
                usage.add(stack.pids())
                began, cost = time.time(), usage.seconds()
                server = CpuUsage(spark.pids)
                server_began = server.seconds()
                await _landed(log, wanted, usage, BACKLOG_S)
                seconds, spent = time.time() - began, usage.seconds() - cost
                spark_s = server.seconds() - server_began
            # The first table's teaches the server.
            merge_s, _ = await compaction.compact(spark, [directory / "lake" / topic])
            took = Took("binwright", seconds, spent, spark_s, merge_s, log)
    return took


@dataclass(frozen=True, slots=True)
class Took:
    """Time and cost of a backlog: of its last topic."""

    side: str
    seconds: float
    cpu_s: float
    spark_s: float
    merge_s: float  # CPU of Spark that merged its small files afterwards
    log: DeltaLog

    def row(self, megabytes: float) -> Row:
        """Return what is printed."""
        cpu_s = self.cpu_s + self.merge_s
        return {
            "side": self.side,
            "MB": megabytes,
            "s": self.seconds,
            "MB/s": megabytes / self.seconds,
            "CPU-s": cpu_s,
            "of it Spark": self.spark_s + self.merge_s,
            "of it compaction": self.merge_s,
            "MB per CPU-s": megabytes / cpu_s,
            "commits": len(self.log.commits),
            "files": sum(len(c.files) for c in self.log.commits),
        }


async def _landed(log: DeltaLog, wanted: int, usage: CpuUsage, deadline_s: float) -> None:
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


async def _their_backlog(  # noqa: PLR0917 - what is run, and where
    ground: BenchBroker,
    directory: Path,
    rows: Mapping[str, int],
    how: Variant,
    form: Form,
    progress: ProgressCallback,
) -> Took:
    own = directory / how.name.replace(" ", "-").replace("'", "")
    async with spark_for("streaming", own, progress, how.conf) as spark:
        usage = CpuUsage(spark.pids)
        for topic, wanted in rows.items():
            progress(f"{how.name} lands {topic}")
            table = own / "lake" / topic
            query = Query(
                topic,
                table,
                own / "checkpoints" / topic,
                how.per_trigger,
                once=True,
                form=form,
            )
            began, cost = time.time(), usage.seconds()
            servers = ground.kafka.bootstrap_servers
            async with streaming.running(spark.url, servers, [query], {}) as handles:
                await streaming.wait_until_finished(handles[0], BACKLOG_S)
            took = time.time() - began
            spent = usage.seconds() - cost
            log = DeltaLog(table)
            if (landed := log.read_new_commits()) != wanted:
                raise ExternalError(f"{how.name} landed {landed} of {wanted} records")
            merge_s, _ = await compaction.compact(spark, [table])
    return Took(how.name, took, spent, spent, merge_s, log)
