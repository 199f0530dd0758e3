"""What lands a live load instead of us, with so many seconds between two commits as it is given."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.landing import kafka_connect, streaming
from bench.landing.bench_broker import BenchBroker
from bench.landing.connect_server import spark_for
from bench.landing.forms import BYTES, EVENT_TYPES, Form
from bench.landing.streaming import Query
from bench.landing.table_log import DeltaLog, IcebergLog, TableLog
from binwright.local.child import Child, Command
from binwright.local.server import ProgressCallback
from binwright.runtime.environment import clean_environment

GRACE_S = 10.0
CONTROL = "iceberg-control"


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


@dataclass(frozen=True, slots=True)
class Running:
    """A side that is ready to land: its servers are there, and stay from one interval to the next.

    Attributes:
        every: Lands with these seconds between two commits beside the block.
        processes: Those whose CPU and memory count.
        spark: Those among them that are Spark's.
        logs: Of its tables.
        timestamp: The column of its tables with Kafka's timestamp.
    """

    every: Callable[[float], AbstractAsyncContextManager[None]]
    processes: Callable[[], list[int]]
    spark: tuple[int, ...]
    logs: Callable[[], list[TableLog]]
    timestamp: str


@dataclass(frozen=True, slots=True)
class Rival:
    """Something else that lands topics."""

    name: str
    runs: Callable[[BenchBroker, LiveLoad, ProgressCallback], AbstractAsyncContextManager[Running]]


def structured_streaming(files: int | None = None) -> Rival:
    """Return a query of Structured Streaming for each topic; see `Query.files`."""

    @contextlib.asynccontextmanager
    async def runs(
        ground: BenchBroker, load: LiveLoad, progress: ProgressCallback
    ) -> AsyncIterator[Running]:
        async with spark_for(
            "streaming", load.directory, progress, executors=load.executors
        ) as spark:

            @contextlib.asynccontextmanager
            async def every(interval_s: float) -> AsyncIterator[None]:
                checkpoints = load.directory / "checkpoints"
                queries = [
                    Query(
                        topic,
                        table,
                        checkpoints / topic,
                        trigger_s=interval_s,
                        files=files,
                        form=load.form,
                    )
                    for topic, table in load.tables.items()
                ]
                servers = ground.kafka.bootstrap_servers
                async with streaming.running(spark.url, servers, queries, {}):
                    yield

            yield Running(
                every,
                lambda: list(spark.pids),
                spark.pids,
                lambda: [DeltaLog(table) for table in load.tables.values()],
                delta_timestamp(load.form),
            )

    tuned = "" if files is None else f", coalesce({files})"
    return Rival(f"Structured Streaming{tuned}", runs)


def connect_with_iceberg() -> Rival:
    """Return Iceberg's sink in a worker of Kafka Connect; it lands one topic."""

    @contextlib.asynccontextmanager
    async def runs(
        ground: BenchBroker, load: LiveLoad, progress: ProgressCallback
    ) -> AsyncIterator[Running]:
        (topic,) = load.topics
        servers, lake = ground.kafka.bootstrap_servers, load.directory / "lake"
        await asyncio.to_thread(ground.create, (CONTROL,), 1)
        async with kafka_connect.run_worker(load.directory / "worker", servers, progress) as worker:

            @contextlib.asynccontextmanager
            async def every(interval_s: float) -> AsyncIterator[None]:
                table = f"lake.{topic}"
                sink = kafka_connect.iceberg_sink(topic, table, lake, CONTROL, interval_s)
                await worker.put("iceberg", sink)
                yield

            yield Running(
                every,
                lambda: [worker.pid] if worker.pid else [],
                (),
                lambda: [IcebergLog(lake / "lake" / topic)],
                kafka_connect.TIMESTAMP,
            )

    return Rival("Kafka Connect, Iceberg's sink", runs)


def by_hand() -> Rival:
    """Return a consumer that somebody wrote; it lands one topic of `EVENTS`."""

    @contextlib.asynccontextmanager
    async def runs(
        ground: BenchBroker, load: LiveLoad, _: ProgressCallback
    ) -> AsyncIterator[Running]:
        ((topic, table),) = load.tables.items()
        consumers: list[Child] = []

        @contextlib.asynccontextmanager
        async def every(interval_s: float) -> AsyncIterator[None]:
            program = str(Path(__file__).with_name("by_hand.py"))
            servers = ground.kafka.bootstrap_servers
            columns = json.dumps(EVENT_TYPES)
            consumer = Child(
                Command(
                    title="a consumer by hand",
                    argv=(
                        *(sys.executable, "-P", program, servers, topic, "by-hand"),
                        *(str(table), str(interval_s), columns),
                    ),
                    directory=load.directory,
                    log=load.directory / "by-hand.log",
                    environment=clean_environment({}),
                )
            )
            consumers.append(consumer)
            try:
                yield
            finally:
                await consumer.stop(grace_s=GRACE_S)

        yield Running(
            every,
            lambda: [each.pid for each in consumers if each.returncode is None],
            (),
            lambda: [DeltaLog(table)],
            "_timestamp",
        )

    return Rival("a consumer by hand, delta-rs", runs)


def delta_timestamp(form: Form) -> str:
    """Return the column with Kafka's timestamp in tables like ours."""
    return "_kafka.timestamp" if form.row else "timestamp"
