"""Loads that go on: one table, and fifty, each side at the same freshness."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.handover.ages import landed_rows
from bench.landing import binwright_side, streaming
from bench.landing.bench_broker import BenchBroker, until
from bench.landing.connect_server import RunningSpark, spark_for
from bench.landing.cpu_usage import CpuUsage
from bench.landing.forms import BYTES, JSON, Form
from bench.landing.streaming import Query
from bench.landing.table_log import TableLog
from binwright.local.server import ProgressCallback
from binwright.look.group_view import percentile

Row = dict[str, Any]

PARTITIONS = 8
LOOK_S = 0.25
READY_S = 400.0
TRIALS = 4  # of triggers, until the query is as fresh as we are
EQUAL = 0.1  # share of our p50 by which its may differ
SHORTEST_TRIGGER_S = 0.1
AGAIN_S = 20.0  # until a query that was started again is steady


async def live(ground: BenchBroker, directory: Path, progress: ProgressCallback) -> list[Row]:
    """One table, 200 kB/s, `freshness_s = 3`: one consumer, four, and one on two executors."""
    rows: list[Row] = []
    for consumers, executors in ((1, 0), (4, 0), (1, 2)):
        name = f"live-{consumers}-{executors}"
        load = LiveLoad(directory / name, (name,), PARTITIONS, 200_000.0, executors=executors)
        many = f"{consumers} consumer{'s' if consumers > 1 else ''}"
        side = many + (f", {executors} executors" if executors else "")
        rows += await _both_live(ground, load, side, progress, consumers, 3.0)
    return rows


async def live_in_columns(
    ground: BenchBroker, directory: Path, progress: ProgressCallback
) -> list[Row]:
    """The load of `live` by one consumer: as bytes, then JSON as columns."""
    rows: list[Row] = []
    for form in (BYTES, JSON):
        topic = f"form-{form.name}"
        load = LiveLoad(directory / topic, (topic,), PARTITIONS, 200_000.0, form=form)
        rows += await _both_live(ground, load, form.name, progress, 1, 3.0)
    return rows


async def tables(ground: BenchBroker, directory: Path, progress: ProgressCallback) -> list[Row]:
    """Fifty tables, 500 kB/s in all, four consumers."""
    topics = tuple(f"many-{n:02}" for n in range(50))
    load = LiveLoad(directory / "tables", topics, 2, 500_000.0, measured_s=180.0)
    return await _both_live(ground, load, "50 tables", progress, 4, 5.0)


@dataclass(frozen=True, slots=True)
class LiveLoad:
    """What a side lands, and for how long it is watched.

    A server takes its first hundred commits to compile its code, four minutes at two seconds each.
    """

    directory: Path
    topics: tuple[str, ...]
    partitions: int  # of each topic
    bytes_per_s: float  # of all topics
    executors: int = 0
    form: Form = BYTES
    warm_up_s: float = 240.0
    measured_s: float = 90.0

    @property
    def tables(self) -> Mapping[str, Path]:
        """Return the places of the topics' tables."""
        return {topic: self.directory / "lake" / topic for topic in self.topics}

    def of(self, side: str) -> "LiveLoad":
        """Return the load of one side: it has topics of its own, so that it begins at their end."""
        topics = tuple(f"{topic}-{side}" for topic in self.topics)
        return replace(self, directory=self.directory / side, topics=topics)


async def _both_live(  # noqa: PLR0917 - what is run, and how it is watched
    ground: BenchBroker,
    load: LiveLoad,
    side: str,
    progress: ProgressCallback,
    consumers: int,
    freshness_s: float,
) -> list[Row]:
    """Measure us, then the query at our freshness; our cost is a ratio of its cost."""
    ours, theirs = load.of("ours"), load.of("theirs")
    group = binwright_side.GroupOptions(
        name=load.directory.name,
        topics=ours.topics,
        limit=1.32 * load.bytes_per_s / consumers,
        max_consumers=2 * consumers,
        freshness_s=freshness_s,
        form=load.form,
    )
    mine = await _our_live(ground, ours, group, f"binwright, {side}", progress)
    query = await _their_live(ground, theirs, mine["age p50, s"], progress)
    return [{**row, "cost ratio": row["cores"] / query["cores"]} for row in (mine, query)]


@contextlib.asynccontextmanager
async def _written(ground: BenchBroker, load: LiveLoad) -> AsyncIterator[None]:
    """Create the load's topics, and write to them beside the block."""
    await asyncio.to_thread(ground.create, load.topics, load.partitions)
    async with ground.load(load.topics, load.partitions, load.bytes_per_s):
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
    async with spark_for("ours", directory, progress, executors=load.executors) as spark:
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
            window = await _watched(spark, stack.pids, load.measured_s)
        return await _figures(side, spark, load, window, progress)


async def _their_live(
    ground: BenchBroker, load: LiveLoad, p50_s: float, progress: ProgressCallback
) -> Row:
    """Run queries with the trigger at which the median age of their rows is `p50_s`.

    The trigger is corrected after each trial: a row waits for half of it on average.
    """
    directory = load.directory
    trigger_s, warm_up_s = max(SHORTEST_TRIGGER_S, p50_s), load.warm_up_s
    trials: list[Row] = []
    async with (
        spark_for("streaming", directory, progress, executors=load.executors) as spark,
        _written(ground, load),
    ):
        for _ in range(TRIALS):
            queries = [
                Query(
                    t,
                    table,
                    directory / "checkpoints" / t,
                    trigger_s=trigger_s,
                    form=load.form,
                )
                for t, table in load.tables.items()
            ]
            side = f"Structured Streaming, trigger {trigger_s:.1f} s"
            progress(side)
            servers = ground.kafka.bootstrap_servers
            async with streaming.running(spark.url, servers, queries, {}):
                await asyncio.sleep(warm_up_s)
                window = await _watched(spark, list, load.measured_s)
            trials.append(await _figures(side, spark, load, window, progress))
            late_s = trials[-1]["age p50, s"] - p50_s
            is_shortest = trigger_s == SHORTEST_TRIGGER_S and late_s > 0
            if abs(late_s) <= EQUAL * p50_s or is_shortest:
                break
            trigger_s = max(SHORTEST_TRIGGER_S, trigger_s - 2 * late_s)
            warm_up_s = AGAIN_S
    return min(trials, key=lambda row: abs(row["age p50, s"] - p50_s))


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


async def _watched(spark: RunningSpark, pids: Callable[[], list[int]], measured_s: float) -> Window:
    """Look at a stretch of time."""
    usage, server = CpuUsage(spark.pids), CpuUsage(spark.pids)
    usage.add(pids())
    began, cost, spark_cost = time.time(), usage.seconds(), server.seconds()
    while (elapsed := time.time() - began) < measured_s:
        await asyncio.sleep(min(LOOK_S, measured_s - elapsed))
        usage.add(pids())
        usage.seconds()
    return Window(began, time.time(), usage.seconds() - cost, server.seconds() - spark_cost)


async def _figures(
    name: str, spark: RunningSpark, load: LiveLoad, window: Window, progress: ProgressCallback
) -> Row:
    """Return ages, cost, commits and files of the rows that landed in the window."""
    ages: list[float] = []
    longest: list[float] = []
    commits = files = 0
    timestamp = "_kafka.timestamp" if load.form.row else "timestamp"
    for table in load.tables.values():
        if not (table / "_delta_log").is_dir():
            longest.append(float("inf"))  # it came to no turn
            continue
        rows = await landed_rows(spark.url, table, timestamp)
        own = [r.age_s for r in rows if window.began <= r.at < window.ended]
        ages += own
        longest.append(max(own, default=float("inf")))
        log = TableLog(table)
        log.read_new_commits()
        during = [c for c in log.commits if window.began <= c.at < window.ended]
        commits, files = commits + len(during), files + sum(c.files for c in during)
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
        "commits/min and table": commits / minutes / len(load.topics),
        "files/min and table": files / minutes / len(load.topics),
        "CPU-s a commit": window.spark_s / max(commits, 1),
    }
    progress(str(row))  # what follows may fail
    return row
