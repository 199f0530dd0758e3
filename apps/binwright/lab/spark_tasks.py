"""A function over many values, as a Spark job: a task for each."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from binwright.lab.processes import OnProgress

T = TypeVar("T")


def run_on_spark(
    function: Callable[[str], str],
    values: Sequence[str],
    on_progress: OnProgress,
    url: str,
    files: Iterable[Path] = (),
) -> list[str]:
    """Return what the function returns for each value, in their order.

    Args:
        function: Runs on Spark's workers, which need binwright installed.
        values: Each independent of the others.
        on_progress: Called with the number of values that are done since the last call.
        url: A Spark Connect server, sc://HOST:PORT.
        files: Brought to the workers, into `SparkFiles.getRootDirectory()`, by their names.

    Raises:
        LakeUnavailable: Spark failed.
    """

    def run(spark: Any) -> list[str]:
        from pyspark.sql.connect.functions import udf  # noqa: PLC0415 - as in `on_spark`
        from pyspark.sql.types import StringType  # noqa: PLC0415

        for file in files:
            spark.addArtifact(str(file), file=True)
        rows = list(enumerate(values))
        frame = spark.createDataFrame(rows, "number int, value string")
        frame = frame.repartitionByRange(len(rows), "number")
        # useArrow is given: without it Spark warns that `str` is not the type of a column.
        each = udf(function, StringType(), useArrow=False)
        results: dict[int, str] = {}
        for row in frame.select("number", each("value").alias("result")).toLocalIterator():
            results[row["number"]] = row["result"]
            on_progress(1)
        return [results[number] for number in range(len(values))]

    return on_spark(url, "run experiments", run)


def on_spark(url: str, doing: str, query: Callable[[Any], T]) -> T:
    """Return what a query returns on a session of its own, however long it takes; blocks.

    Args:
        url: sc://HOST:PORT.
        doing: What the query does, for errors.
        query: Is given the session.

    Raises:
        LakeUnavailable: Spark failed.
    """
    # The lab is installed without Spark's client, for those who have no server.
    from binwright.lake.lake_reader import lake_reader  # noqa: PLC0415

    async def run() -> T:
        async with lake_reader(url, query_s=None) as reader:
            return await reader.run(doing, query)

    return asyncio.run(run())
