"""Run many experiments at once, on the cores of this machine or on Spark."""

from collections.abc import Sequence

from binwright.lab.packing.experiments import Experiment, Outcome, run_encoded, run_experiment
from binwright.lab.processes import OnProgress, run_all
from binwright.lab.spark_tasks import run_on_spark


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
        texts = [experiment.encode() for experiment in experiments]
        return [
            Outcome.decode(text) for text in run_on_spark(run_encoded, texts, on_progress, spark)
        ]
    return run_all(run_experiment, experiments, lambda _: on_progress(1), jobs)
