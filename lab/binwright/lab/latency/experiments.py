"""One packing over one stream, as latencies: the unit of comparison of the latency experiment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from binwright.lab.latency.queues import GroupQueues, LatencyModel
from binwright.lab.latency.samples import Samples
from binwright.lab.packing.experiments import CAPACITY, Experiment, decisions
from binwright.packing.score import expected_rscore, rscore

PERCENTILES = (1, 25, 50, 75, 90, 99)
"""Of the samples above 0."""
PERCENTILES_OF_ALL = (90, 99)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyExperiment:
    """A packing over a stream, and the model of its consumers."""

    packing: Experiment
    model: LatencyModel
    keep_samples: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyOutcome:
    """How late bytes were read, and what that took."""

    algorithm: str
    consumers: float  # mean over the measurements
    expected_rscore: float
    total: int  # samples: bytes
    above_zero: int  # samples
    unread: int  # samples, see `LatencyModel.lines`
    above_zero_s: Mapping[int, float]  # percentile -> seconds; empty: there are none above 0
    all_s: Mapping[int, float]  # percentile -> seconds
    max_s: float
    samples: Samples | None  # if they are kept

    @property
    def share(self) -> float:
        """Return the share of samples above 0, from 0 to 1."""
        return self.above_zero / self.total if self.total else 0.0


def run_latency(experiment: LatencyExperiment) -> LatencyOutcome:
    """Decide at every measurement and return the latencies from the second one on.

    The first measurement starts every partition: as in the paper, it has no latencies.

    Raises:
        UserError: The packing does not exist, or the stream is malformed.
    """
    queues = GroupQueues(experiment.model)
    consumers, scores = list[int](), list[float]()
    for made in decisions(experiment.packing):
        if consumers:
            queues.add(made.rates, made.current, made.target)
        consumers.append(len(set(made.target.values())))
        scores.append(rscore(made.rates, CAPACITY, made.current, made.target))
    samples = queues.samples()
    return LatencyOutcome(
        algorithm=experiment.packing.algorithm,
        consumers=fmean(consumers),
        expected_rscore=expected_rscore(scores),
        total=samples.total,
        above_zero=samples.above_zero,
        unread=queues.unread,
        above_zero_s=_percentiles(samples, PERCENTILES, above_zero=True),
        all_s=_percentiles(samples, PERCENTILES_OF_ALL, above_zero=False),
        max_s=samples.max_s,
        samples=samples if experiment.keep_samples else None,
    )


def _percentiles(
    samples: Samples, percents: Sequence[int], *, above_zero: bool
) -> dict[int, float]:
    found = {p: samples.quantile(p / 100, above_zero=above_zero) for p in percents}
    return {percent: value for percent, value in found.items() if value is not None}
