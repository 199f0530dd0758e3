"""A function over many values, as a Spark job: a task for each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect.functions import udf
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StringType

from binwright.lab.processes import OnProgress
from binwright.lake.lake_reader import check_reachable, reason
from binwright.protocol.errors import LakeUnavailable
from binwright.runtime.spark_channel import SparkChannel
from binwright.runtime.spark_url import redacted_url


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
    with spark_session(url, "run experiments") as spark:
        for file in files:
            spark.addArtifact(str(file), file=True)
        rows = list(enumerate(values))
        frame = spark.createDataFrame(rows, "number int, value string")
        frame = frame.repartitionByRange(len(rows), "number")
        # useArrow is given: without it Spark warns that `str` is not the type of a column.
        run = udf(function, StringType(), useArrow=False)
        done = frame.select("number", run("value").alias("result"))
        results: dict[int, str] = {}
        for row in done.toLocalIterator():
            results[row["number"]] = row["result"]
            on_progress(1)
        return [results[number] for number in range(len(values))]


@contextmanager
def spark_session(url: str, task: str) -> Iterator[Any]:
    """Yield a session of a Spark Connect server; raise `LakeUnavailable` if Spark fails.

    Args:
        url: sc://HOST:PORT.
        task: What the session is for, in the words of an error.
    """
    check_reachable(url)
    spark: Any = None
    try:
        spark = SparkSession.builder.channelBuilder(SparkChannel(url)).create()
        # Without this the client retries silently for ten minutes.
        spark.client.set_retry_policies([])
        yield spark
    except PySparkException as exc:
        raise LakeUnavailable(f"{task}: {reason(exc)} (Spark at {redacted_url(url)})") from exc
    finally:
        if spark is not None:
            spark.stop()
