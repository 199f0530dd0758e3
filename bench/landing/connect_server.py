"""A Spark for one side: the same class path for both, so that only what it is told differs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bench.landing import streaming
from binwright.local.server import ProgressCallback
from binwright.local.spark import JAVA_OPTIONS, run_spark
from binwright.local.spark_cluster import run_spark_cluster
from binwright.local.spark_size import SparkSize

OURS = "ours"
HEAP = "2g"
"""Of a query, which has Java's own collector and compilers; ours has what we ship."""


@dataclass(frozen=True, slots=True)
class RunningSpark:
    """A Connect server, and the processes whose CPU counts as Spark's."""

    url: str
    pids: tuple[int, ...]


@contextlib.asynccontextmanager
async def spark_for(
    name: str,
    directory: Path,
    progress: ProgressCallback,
    conf: Mapping[str, str] | None = None,
    executors: int = 0,
) -> AsyncIterator[RunningSpark]:
    """Run a Spark with the Kafka source on its class path: the same for both sides.

    Args:
        name: Of its directory; what begins with `OURS` is set up as we ship it.
        directory: Of this run.
        progress: Told in words what goes on.
        conf: Settings instead of ours.
        executors: Of a standalone cluster, one core each; 0: tasks run in the server's process.
    """
    jars = await streaming.connector_jars(progress)
    home = directory / f"spark-{name}"
    await asyncio.to_thread(home.mkdir, parents=True, exist_ok=True)
    before = set(psutil.Process().children())
    async with contextlib.AsyncExitStack() as stack:
        master = None
        if executors:
            cluster = run_spark_cluster(home / "cluster", workers=executors, progress=progress)
            master = await stack.enter_async_context(cluster)
        ours = name.startswith(OURS)
        memory = SparkSize().heap if ours else HEAP
        own = conf if ours else {JAVA_OPTIONS: "", **(conf or {})}
        options: Any = {"memory": memory, "settings": own, "jars": jars, "master": master}
        spark = await stack.enter_async_context(run_spark(home, progress=progress, **options))
        started = set(psutil.Process().children()) - before
        yield RunningSpark(spark.url, tuple(sorted(each.pid for each in started)))
