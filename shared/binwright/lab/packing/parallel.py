"""Run many experiments at once, on the cores of this machine or on Spark."""

from collections.abc import Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect.functions import udf
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StringType

from binwright.core.errors import LakeUnavailable
from binwright.lab.packing.experiments import Experiment, Outcome, run_encoded, run_experiment
from binwright.lab.processes import OnProgress, run_all
from binwright.ops.lake_reader import check_reachable, reason
from binwright.runtime.spark_url import redacted_url


def run_parallel(
    experiments: Sequence[Experiment], on_progress: OnProgress, jobs: int, spark: str | None = None
) -> list[Outcome]:
    """Run all experiments; return their outcomes in the same order.

    Args:
        experiments: Each runs independently.
        on_progress: Called with the number of experiments that ended since the last call.
        jobs: Processes on this machine; 1: only this one.
        spark: A Spark Connect server, sc://HOST:PORT, that runs them instead.

    Raises:
        UserError: An experiment names an unknown packing, or its stream is malformed.
        LakeUnavailable: Spark failed.
    """
    if spark is not None:
        return _on_spark(experiments, on_progress, spark)
    return run_all(run_experiment, experiments, on_progress, jobs)


def _on_spark(
    experiments: Sequence[Experiment], on_progress: OnProgress, url: str
) -> list[Outcome]:
    """Run each experiment as a task of its own; the workers need binwright installed."""
    check_reachable(url)
    spark: Any = None
    try:
        spark = SparkSession.builder.remote(url).create()
        # Without this the client retries silently for ten minutes.
        spark.client.set_retry_policies([])
        rows = [(number, experiment.encode()) for number, experiment in enumerate(experiments)]
        frame = spark.createDataFrame(rows, "number int, experiment string")
        frame = frame.repartitionByRange(len(rows), "number")
        # useArrow is given: without it Spark warns that `str` is not the type of a column.
        run = udf(run_encoded, StringType(), useArrow=False)
        done = frame.select("number", run("experiment").alias("outcome"))
        found: dict[int, Outcome] = {}
        for row in done.toLocalIterator():
            found[row["number"]] = Outcome.decode(row["outcome"])
            on_progress(1)
        return [found[number] for number in range(len(experiments))]
    except PySparkException as exc:
        raise LakeUnavailable(
            f"run experiments: {reason(exc)} (Spark at {redacted_url(url)})"
        ) from exc
    finally:
        if spark is not None:
            spark.stop()
