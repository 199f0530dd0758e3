"""Loads that go on: one table, and fifty, each side at the same freshness."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.handover.ages import landed_rows
from bench.landing import binwright_side, compaction
from bench.landing.bench_broker import BenchBroker, until
from bench.landing.connect_server import OURS, spark_for
from bench.landing.cpu_usage import CpuUsage, memory_mb
from bench.landing.forms import BYTES, EVENTS, JSON
from bench.landing.rivals import (
    LiveLoad,
    Rival,
    by_hand,
    connect_with_iceberg,
    delta_timestamp,
    structured_streaming,
)
from bench.landing.table_log import Commit, DeltaLog, TableLog, within
from binwright.local.server import ProgressCallback
from binwright.look.group_view import percentile

Row = dict[str, Any]

PARTITIONS = 8
LOOK_S, MEMORY_S = 0.25, 5.0
READY_S = 400.0
TRIALS = 4  # of intervals, until a rival is as fresh as we are
EQUAL = 0.1  # share of our p50 by which its may differ
SHORTEST_INTERVAL_S = 0.1
AGAIN_S = 20.0  # until a rival with another interval is steady


async def live(ground: BenchBroker, directory: Path, progress: ProgressCallback) -> list[Row]:
    """One table, 200 kB/s, `freshness_s = 3`: one consumer, four, and one on two executors."""
    rows: list[Row] = []
    for consumers, executors in ((1, 0), (4, 0), (1, 2)):
        name = f"live-{consumers}-{executors}"
        load = LiveLoad(directory / name, (name,), PARTITIONS, 200_000.0, executors=executors)
        many = f"{consumers} consumer{'s' if consumers > 1 else ''}"
        side = many + (f", {executors} executors" if executors else "")
        rows += await _beside(ground, load, side, progress, consumers, 3.0)
    return rows


async def live_in_columns(
    ground: BenchBroker, directory: Path, progress: ProgressCallback
) -> list[Row]:
    """The load of `live` by one consumer: as bytes, then JSON as columns."""
    rows: list[Row] = []
    for form in (BYTES, JSON):
        topic = f"form-{form.name}"
        load = LiveLoad(directory / topic, (topic,), PARTITIONS, 200_000.0, form=form)
        rows += await _beside(ground, load, form.name, progress, 1, 3.0)
    return rows


async def peers(ground: BenchBroker, directory: Path, progress: ProgressCallback) -> list[Row]:
    """Small events as columns, 200 kB/s: us, and what is run instead; a ratio of Connect's cost."""
    load = LiveLoad(directory / "peers", ("events",), PARTITIONS, 200_000.0, form=EVENTS)
    rivals = (by_hand(), structured_streaming(files=1), connect_with_iceberg())
    return await _beside(ground, load, "JSON columns", progress, 1, 3.0, rivals)


async def tables(ground: BenchBroker, directory: Path, progress: ProgressCallback) -> list[Row]:
    """Fifty tables, 500 kB/s in all, four consumers."""
    topics = tuple(f"many-{n:02}" for n in range(50))
    load = LiveLoad(directory / "tables", topics, 2, 500_000.0, measured_s=180.0)
    return await _beside(ground, load, "50 tables", progress, 4, 5.0)


async def _beside(  # noqa: PLR0917 - what is run, and how it is watched
    ground: BenchBroker,
    load: LiveLoad,
    side: str,
    progress: ProgressCallback,
    consumers: int,
    freshness_s: float,
    rivals: Sequence[Rival] = (structured_streaming(),),
) -> list[Row]:
    """Measure us, then rivals at our freshness; our cost is a ratio of the last one's."""
    ours = load.of("ours")
    group = binwright_side.GroupOptions(
        name=load.directory.name,
        topics=ours.topics,
        # One is one, however its records are stored; several are made to be by the limit.
        limit=1.32 * load.bytes_per_s / consumers if consumers > 1 else 1e9,
        max_consumers=2 * consumers,
        freshness_s=freshness_s,
        form=load.form,
    )
    row = await _our_live(ground, ours, group, f"binwright, {side}", progress)
    rows = [await _with_compaction(row, f"{OURS}-merging", ours, progress)]
    for number, rival in enumerate(rivals):
        theirs = load.of(f"rival-{number}")
        row = await _their_live(ground, theirs, rival, rows[0]["age p50, s"], progress)
        rows.append(await _with_compaction(row, "merging", theirs, progress))
    return [{**row, "cost ratio": row["cores"] / rows[-1]["cores"]} for row in rows]


async def _with_compaction(
    row: Row, server: str, load: LiveLoad, progress: ProgressCallback
) -> Row:
    """Return a side's figures with what it takes to merge as many files as it lands.

    Tables of Iceberg are not merged: their side is cheaper than it is.
    """
    files_per_s = row["files/min and table"] * len(load.topics) / 60
    a_file = await compaction.cpu_s_a_file(server, load.directory, load.tables, progress)
    cores = files_per_s * a_file
    spark = {"of it Spark": row["of it Spark"] + cores, "of it compaction": cores}
    return {**row, "cores": row["cores"] + cores, **spark}


@contextlib.asynccontextmanager
async def _written(ground: BenchBroker, load: LiveLoad) -> AsyncIterator[None]:
    """Create the load's topics, and write to them beside the block."""
    await asyncio.to_thread(ground.create, load.topics, load.partitions)
    async with ground.load(load.topics, load.partitions, load.bytes_per_s, load.form):
        yield


async def _our_live(
    ground: BenchBroker,
    load: LiveLoad,
    group: binwright_side.GroupOptions,
    side: str,
    progress: ProgressCallback,
) -> Row:
    progress(side)
    directory = load.directory
    async with spark_for(OURS, directory, progress, executors=load.executors) as spark:
        chosen = binwright_side.settings(group, ground.kafka, spark.url, directory)
        async with (
            _written(ground, load),
            binwright_side.running(chosen, directory) as stack,
        ):
            await until(
                lambda: all(any((d / "_delta_log").glob("*.json")) for d in load.tables.values()),
                READY_S,
                "all tables are there",
            )
            await asyncio.sleep(load.warm_up_s)
            window = await _watched(
                lambda: [*spark.pids, *stack.pids()], spark.pids, load.measured_s
            )
    logs: list[TableLog] = [DeltaLog(table) for table in load.tables.values()]
    return _figures(side, logs, delta_timestamp(load.form), window, progress)


async def _their_live(
    ground: BenchBroker, load: LiveLoad, rival: Rival, p50_s: float, progress: ProgressCallback
) -> Row:
    """Run a rival with the interval at which the median age of its rows is `p50_s`.

    The interval is corrected after each trial: a row waits for half of it on average.
    """
    interval_s, warm_up_s = max(SHORTEST_INTERVAL_S, p50_s), load.warm_up_s
    trials: list[Row] = []
    async with rival.runs(ground, load, progress) as running, _written(ground, load):
        for _ in range(TRIALS):
            side = f"{rival.name}, each {interval_s:.1f} s"
            progress(side)
            async with running.every(interval_s):
                await asyncio.sleep(warm_up_s)
                window = await _watched(running.processes, running.spark, load.measured_s)
            trials.append(_figures(side, running.logs(), running.timestamp, window, progress))
            late_s = trials[-1]["age p50, s"] - p50_s
            is_shortest = interval_s == SHORTEST_INTERVAL_S and late_s > 0
            if abs(late_s) <= EQUAL * p50_s or is_shortest:
                break
            interval_s = max(SHORTEST_INTERVAL_S, interval_s - 2 * late_s)
            warm_up_s = AGAIN_S
    return min(trials, key=lambda row: abs(row["age p50, s"] - p50_s))


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time, and what it cost."""

    began: float
    ended: float
    cpu_s: float
    spark_s: float
    memory_mb: float  # the largest sample

    @property
    def seconds(self) -> float:
        """How long it was."""
        return self.ended - self.began


async def _watched(
    processes: Callable[[], list[int]], spark: Sequence[int], measured_s: float
) -> Window:
    """Look at a stretch of time."""
    usage, server = CpuUsage(processes()), CpuUsage(spark)
    began, cost, spark_cost = time.time(), usage.seconds(), server.seconds()
    memory, looked = 0.0, began
    while (elapsed := time.time() - began) < measured_s:
        await asyncio.sleep(min(LOOK_S, measured_s - elapsed))
        usage.add(processes())
        usage.seconds()
        if time.time() - looked >= MEMORY_S:
            memory, looked = max(memory, memory_mb(processes())), time.time()
    spent, spark_spent = usage.seconds() - cost, server.seconds() - spark_cost
    return Window(began, time.time(), spent, spark_spent, memory)


def _figures(
    name: str,
    logs: Sequence[TableLog],
    timestamp: str,
    window: Window,
    progress: ProgressCallback,
) -> Row:
    """Return ages, cost, commits and files of the rows that landed in the window."""
    ages: list[float] = []
    longest: list[float] = []
    commits: list[Commit] = []
    for log in logs:
        log.read_new_commits()
        during = within(log.commits, window.began, window.ended)
        own = [row.age_s for row in landed_rows(during, timestamp)]
        longest.append(max(own, default=float("inf")))  # none: it came to no turn
        ages += own
        commits += during
    if not ages:
        raise TimeoutError(f"{name}: nothing landed while it was measured")
    minutes = window.seconds / 60
    row = {
        "side": name,
        "age p50, s": percentile(ages, 0.5),
        "age p99, s": percentile(ages, 0.99),
        "worst table, s": max(longest),
        "cores": window.cpu_s / window.seconds,
        "of it Spark": window.spark_s / window.seconds,
        "memory, MB": round(window.memory_mb),
        "commits/min and table": len(commits) / minutes / len(logs),
        "files/min and table": sum(len(c.files) for c in commits) / minutes / len(logs),
        "CPU-s a commit": window.cpu_s / len(commits),
        "bytes a row": sum(c.bytes for c in commits) / len(ages),
    }
    progress(str(row))  # what follows may fail
    return row
