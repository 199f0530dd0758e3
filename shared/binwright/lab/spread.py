"""Many trials at once, on the cores of this machine or on Spark: same code, same result."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.connect.functions import udf
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StringType

from binwright.core.errors import LakeUnavailable
from binwright.lab.spark import knock, reason
from binwright.lab.trials import Outcome, Trial, play, played
from binwright.shell.connect import shown

Told = Callable[[int], None]


def spread(
    trials: Sequence[Trial], told: Told, jobs: int, spark: str | None = None
) -> list[Outcome]:
    """Play every trial; return the outcomes in the order of the trials.

    Args:
        trials: Each is played alone.
        told: Called with how many more have ended.
        jobs: Processes on this machine; 1: none but this one.
        spark: A Spark Connect server, sc://HOST:PORT, that plays them instead.

    Raises:
        UserError: A trial names no packing or stream.
        LakeUnavailable: Spark failed.
    """
    if spark is not None:
        return _on_spark(trials, told, spark)
    return list(_in_turn(trials, told)) if jobs == 1 else _here(trials, told, jobs)


def _in_turn(trials: Sequence[Trial], told: Told) -> Iterator[Outcome]:
    for trial in trials:
        yield play(trial)
        told(1)


def _here(trials: Sequence[Trial], told: Told, jobs: int) -> list[Outcome]:
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(play, trial) for trial in trials]
        try:
            for future in as_completed(futures):
                future.result()
                told(1)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _on_spark(trials: Sequence[Trial], told: Told, url: str) -> list[Outcome]:
    """One row, one partition, one task a trial; the workers need binwright installed."""
    knock(url)
    spark: Any = None
    try:
        spark = SparkSession.builder.remote(url).create()
        # By itself the client would go on trying for ten minutes, silently.
        spark.client.set_retry_policies([])
        rows = [(number, trial.encode()) for number, trial in enumerate(trials)]
        frame = spark.createDataFrame(rows, "number int, trial string")
        frame = frame.repartitionByRange(len(rows), "number")
        # Row by row: one that is left to choose warns that `str` is no column's type.
        playing = udf(played, StringType(), useArrow=False)
        done = frame.select("number", playing("trial").alias("outcome"))
        found: dict[int, Outcome] = {}
        for row in done.toLocalIterator():
            found[row["number"]] = Outcome.decode(row["outcome"])
            told(1)
        return [found[number] for number in range(len(trials))]
    except PySparkException as exc:
        raise LakeUnavailable(f"play trials: {reason(exc)} (Spark at {shown(url)})") from exc
    finally:
        if spark is not None:
            spark.stop()
