"""Runs all points of a sweep, on the cores of this machine or as a job of Spark."""

from collections.abc import Sequence

from binwright.lab.processes import OnProgress, run_all
from binwright.lab.spark_tasks import run_on_spark
from binwright.lab.sweep.point import Point, Result, run_encoded, run_point


def run_points(
    points: Sequence[Point], on_progress: OnProgress, jobs: int, spark: str | None = None
) -> list[Result]:
    """Simulate all points; return their results in the same order.

    Args:
        points: Each independent of the others.
        on_progress: Called with the number of points that are done since the last call.
        jobs: Processes on this machine; 1: only this one.
        spark: A Spark Connect server, sc://HOST:PORT, that runs them instead, a task for each.

    Raises:
        UserError: A point names an unknown packing, or its load is malformed.
        LakeUnavailable: Spark failed.
    """
    if spark is None:
        return run_all(run_point, points, lambda _: on_progress(1), jobs)
    files = {point.load.file for point in points if point.load.file is not None}
    texts = [point.encode() for point in points]
    found = run_on_spark(run_encoded, texts, on_progress, spark, sorted(files))
    return [Result.decode(text) for text in found]
