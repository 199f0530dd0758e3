"""Structured Streaming: Kafka source to Delta tables with binwright's columns, on a Spark beside.

It runs in the Connect server, so its cost is the server's alone. Exactly once rests on its
checkpoint directory; each trigger is one commit.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.connect.session import SparkSession

from bench.landing.forms import BYTES, Form
from binwright.local.cache import cache_dir
from binwright.local.jars import ensure_jars, ivy_fetch, parse_lock
from binwright.local.java import find_java
from binwright.local.server import ProgressCallback

LOCK = Path(__file__).with_name("streaming.lock")


async def connector_jars(progress: ProgressCallback) -> tuple[Path, ...]:
    """Return the jars of Spark's Kafka source and of `from_avro`, fetched once."""
    jars = parse_lock(LOCK.read_text())
    directory = cache_dir() / "jars" / "streaming"
    return await ensure_jars(jars, directory, ivy_fetch(await find_java(), "the bench's", progress))


@dataclass(frozen=True, slots=True)
class Query:
    """One topic into one table."""

    topic: str
    table: Path
    checkpoint: Path
    per_trigger: int | None = None  # records of one commit at most; None: all there are
    once: bool = False  # end when all that was there at the start has landed
    trigger_s: float | None = None  # seconds from one commit's beginning to the next; None: at once
    files: int | None = None  # of each commit at most; None: one for each partition of Kafka
    form: Form = BYTES


def start(spark: SparkSession, bootstrap_servers: str, query: Query) -> Any:
    """Start a streaming query; returns Spark's own handle."""
    source = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", query.topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
    )
    if query.per_trigger is not None:
        source = source.option("maxOffsetsPerTrigger", str(query.per_trigger))
    records = source.load()
    for expressions in query.form.select:
        records = records.selectExpr(*expressions)
    if query.files is not None:
        records = records.coalesce(query.files)
    writer = records.writeStream.format("delta").option("checkpointLocation", str(query.checkpoint))
    if query.once:
        writer = writer.trigger(availableNow=True)
    elif query.trigger_s is not None:
        writer = writer.trigger(processingTime=f"{round(1000 * query.trigger_s)} milliseconds")
    return writer.start(str(query.table))


@contextlib.asynccontextmanager
async def running(
    url: str, bootstrap_servers: str, queries: Sequence[Query], conf: Mapping[str, str]
) -> AsyncIterator[list[Any]]:
    """Run queries beside the block; they are stopped at its end."""
    spark = SparkSession.builder.remote(url).create()
    for key, value in conf.items():
        spark.conf.set(key, value)
    started: list[Any] = []
    try:
        for query in queries:
            started.append(await asyncio.to_thread(start, spark, bootstrap_servers, query))  # noqa: PERF401 - stopped below, however far it came
        yield started
    finally:
        for handle in started:
            await asyncio.to_thread(handle.stop)
        await asyncio.to_thread(spark.stop)


async def wait_until_finished(handle: Any, deadline_s: float) -> None:
    """Wait until a query of `once` has landed everything; raise what it failed with."""
    done = await asyncio.to_thread(handle.awaitTermination, round(deadline_s))
    if (error := handle.exception()) is not None:
        raise error
    if not done:
        raise TimeoutError(f"the query has not ended after {deadline_s:g} s")
