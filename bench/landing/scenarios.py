"""The scenarios that both sides go through."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.handover.ages import landed_rows
from bench.landing import binwright_side, streaming
from bench.landing.bench_broker import RECORD_BYTES, BenchBroker, until
from bench.landing.cpu_usage import CpuUsage
from bench.landing.streaming import Query
from bench.landing.table_log import TableLog
from binwright.local.spark import SparkServer, run_spark
from binwright.views.group_view import percentile

ProgressCallback = Callable[[str], None]
Row = dict[str, Any]

HEAP = "2g"
PARTITIONS = 8
WARM_MB = 200
LOOK_S = 0.25
BACKLOG_S, READY_S = 900.0, 400.0
LIVE_S = (45.0, 90.0)  # warming up, measured
TABLES_S = (240.0, 180.0)
"""The same for fifty tables: a server that they share takes minutes until its code is compiled."""
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


@contextlib.asynccontextmanager
async def spark_for(
    name: str, directory: Path, progress: ProgressCallback, conf: Mapping[str, str] | None = None
) -> AsyncIterator[SparkServer]:
    """Run a Spark with the Kafka source on its class path: the same for both sides."""
    jars = await streaming.connector_jars(progress)
    home = directory / f"spark-{name}"
    await asyncio.to_thread(home.mkdir, parents=True, exist_ok=True)
    async with run_spark(home, memory=HEAP, settings=conf, jars=jars, progress=progress) as spark:
        yield spark


# --- a backlog ---------------------------------------------------------------------------------


async def backlog(
    ground: BenchBroker, directory: Path, megabytes: int, progress: ProgressCallback
) -> list[Row]:
    """Land a backlog by one consumer, and by Structured Streaming in three ways."""
    rows = {
        "warm": WARM_MB * 1_000_000 // RECORD_BYTES,
        "backlog": megabytes * 1_000_000 // RECORD_BYTES,
    }
    await asyncio.to_thread(ground.create, list(rows), PARTITIONS)
    for topic, records in rows.items():
        progress(f"writing {records:,} records to {topic}")
        await asyncio.to_thread(ground.fill, topic, PARTITIONS, records)
    found = [await _our_backlog(ground, directory / "ours", rows, progress)]
    for name, conf, most in (
        ("Structured Streaming, Spark's defaults", SPARK_DEFAULTS, None),
        ("Structured Streaming, our settings", None, None),
        (f"Structured Streaming, our settings, {BATCH_RECORDS:,} a batch", None, BATCH_RECORDS),
    ):
        found.append(
            await _their_backlog(
                ground,
                directory / name.replace(" ", "-").replace("'", ""),
                rows,
                (name, conf, most),
                progress,
            )
        )
    return found


async def _our_backlog(
    ground: BenchBroker, directory: Path, rows: Mapping[str, int], progress: ProgressCallback
) -> Row:
    async with spark_for("ours", directory, progress) as spark:
        for topic, wanted in rows.items():
            progress(f"binwright lands {topic}")
            group = binwright_side.GroupOptions(name=f"bench-{topic}", topics=[topic])
            chosen = binwright_side.settings(group, ground.kafka, spark.url, directory)
            log = TableLog(directory / "lake" / topic)
            async with binwright_side.running(chosen, directory) as stack:
                staging = directory / "lake" / "_staging"
                await until(lambda: any(staging.glob(f"*/{topic}/*")), READY_S, "files are staged")  # noqa: B023 - within the loop
                usage = CpuUsage([spark.pid or 0])
                usage.add(stack.pids())
                began, cost = time.time(), usage.seconds()
                server = CpuUsage([spark.pid or 0])
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


async def _their_backlog(
    ground: BenchBroker,
    directory: Path,
    rows: Mapping[str, int],
    how: tuple[str, Mapping[str, str] | None, int | None],
    progress: ProgressCallback,
) -> Row:
    name, conf, most = how
    async with spark_for("streaming", directory, progress, conf) as spark:
        usage = CpuUsage([spark.pid or 0])
        for topic in rows:
            progress(f"{name} lands {topic}")
            table = directory / "lake" / topic
            query = Query(topic, table, directory / "checkpoints" / topic, most, once=True)
            began, cost = time.time(), usage.seconds()
            servers = ground.kafka.bootstrap_servers
            async with streaming.running(spark.url, servers, [query], {}) as handles:
                await streaming.wait_until_finished(handles[0], BACKLOG_S)
            took = time.time() - began
            spent = usage.seconds() - cost
            log = TableLog(table)
            log.read_new_commits()
    return Took(took, spent, spent).row(name, rows["backlog"], log)


# --- a load that goes on -----------------------------------------------------------------------


async def live(ground: BenchBroker, directory: Path, progress: ProgressCallback) -> list[Row]:
    """One table, 200 kB/s: four consumers at `freshness_s = 3`, and one at the default."""
    rate, partitions = 200_000.0, 8
    await asyncio.to_thread(ground.create, ["live"], partitions)
    found = []
    async with ground.load(["live"], partitions, rate):
        for name, consumers, freshness_s in (
            ("4 consumers, 3 s", 4, 3.0),
            ("1 consumer, 5 s", 1, 5.0),
        ):
            group = binwright_side.GroupOptions(
                name=f"live-{consumers}",
                topics=["live"],
                limit=1.32 * rate / consumers,
                max_consumers=2 * consumers,
                freshness_s=freshness_s,
            )
            found.append(
                await _our_live(
                    ground, directory / group.name, group, (f"binwright, {name}", rate), progress
                )
            )
        found.append(await _their_live(ground, directory / "live-theirs", ["live"], rate, progress))
    return found


async def tables(ground: BenchBroker, directory: Path, progress: ProgressCallback) -> list[Row]:
    """Fifty tables, 500 kB/s in all, four consumers."""
    rate, topics = 500_000.0, [f"many-{n:02}" for n in range(50)]
    await asyncio.to_thread(ground.create, topics, 2)
    async with ground.load(topics, 2, rate):
        group = binwright_side.GroupOptions(
            name="tables", topics=topics, limit=1.32 * rate / 4, max_consumers=8
        )
        mine = await _our_live(
            ground, directory / "tables", group, ("binwright, 50 tables", rate), progress, TABLES_S
        )
        theirs = await _their_live(
            ground, directory / "tables-theirs", topics, rate, progress, TABLES_S
        )
    return [mine, theirs]


async def _our_live(  # noqa: PLR0913, PLR0917 - what is run, and how it is watched
    ground: BenchBroker,
    directory: Path,
    group: binwright_side.GroupOptions,
    named: tuple[str, float],
    progress: ProgressCallback,
    seconds: tuple[float, float] = LIVE_S,
) -> Row:
    progress(named[0])
    async with spark_for("ours", directory, progress) as spark:
        chosen = binwright_side.settings(group, ground.kafka, spark.url, directory)
        async with binwright_side.running(chosen, directory) as stack:
            logs = {t: directory / "lake" / t for t in group.topics}
            await until(
                lambda: all(any((d / "_delta_log").glob("*.json")) for d in logs.values()),
                READY_S,
                "all tables are there",
            )
            window = await _watched(spark, stack.pids, seconds)
        return await _figures(named[0], spark, logs, window, progress)


async def _their_live(  # noqa: PLR0913, PLR0917 - what is run, and how it is watched
    ground: BenchBroker,
    directory: Path,
    topics: Sequence[str],
    rate: float,
    progress: ProgressCallback,
    seconds: tuple[float, float] = LIVE_S,
) -> Row:
    del rate
    name = f"Structured Streaming, {len(topics)} queries"
    progress(name)
    logs = {t: directory / "lake" / t for t in topics}
    queries = [Query(t, logs[t], directory / "checkpoints" / t) for t in topics]
    async with spark_for("streaming", directory, progress) as spark:
        servers = ground.kafka.bootstrap_servers
        async with streaming.running(spark.url, servers, queries, {}):
            window = await _watched(spark, list, seconds)
        return await _figures(name, spark, logs, window, progress)


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, and what it cost."""

    began: float
    ended: float
    cpu_s: float
    spark_s: float

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.ended - self.began


async def _watched(
    spark: SparkServer, pids: Callable[[], list[int]], seconds: tuple[float, float]
) -> Window:
    """Warm up, then look at a stretch of time."""
    warm_up_s, measured_s = seconds
    await asyncio.sleep(warm_up_s)
    usage, server = CpuUsage([spark.pid or 0]), CpuUsage([spark.pid or 0])
    usage.add(pids())
    began, cost, spark_cost = time.time(), usage.seconds(), server.seconds()
    while (elapsed := time.time() - began) < measured_s:
        await asyncio.sleep(min(LOOK_S, measured_s - elapsed))
        usage.add(pids())
        usage.seconds()
    return Window(began, time.time(), usage.seconds() - cost, server.seconds() - spark_cost)


async def _figures(
    name: str,
    spark: SparkServer,
    tables: Mapping[str, Path],
    window: Window,
    progress: ProgressCallback,
) -> Row:
    """Return ages, cost, commits and files of the rows that landed in the window."""
    ages: list[float] = []
    longest: list[float] = []
    commits = files = 0
    for table in tables.values():
        if not (table / "_delta_log").is_dir():
            longest.append(float("inf"))  # it came to no turn
            continue
        rows = await landed_rows(spark.url, table)
        own = [r.age_s for r in rows if window.began <= r.at < window.ended]
        ages += own
        longest.append(max(own, default=float("inf")))
        log = TableLog(table)
        log.read_new_commits()
        during = [c for c in log.commits if window.began <= c.at < window.ended]
        commits, files = commits + len(during), files + sum(c.files for c in during)
    minutes = window.seconds / 60
    row = {
        "side": name,
        "age p50, s": percentile(ages, 0.5),
        "age p99, s": percentile(ages, 0.99),
        "worst table, s": max(longest),
        "cores": window.cpu_s / window.seconds,
        "of it Spark": window.spark_s / window.seconds,
        "commits/min and table": commits / minutes / len(tables),
        "files/min and table": files / minutes / len(tables),
        "CPU-s a commit": window.spark_s / max(commits, 1),
    }
    progress(str(row))  # what follows may fail
    return row
