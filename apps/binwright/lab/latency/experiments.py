"""The latency of records under a packing, consumer by consumer: eq. 16 to 27 of the paper.

Landau, Andrade, Barbosa, arXiv 2402.06085. At a measurement, a consumer's partitions form two
queues: the fixed queue of those that it had before, and the rebalanced queue of those that it has
since now. It reads the fixed queue at the rate at which that is written, or at its limit, and the
rebalanced one, once the hand-over is done, with what is left of its limit. Rates are per cent of
the capacity, and one unit of data, here called a byte, is what a rate of 1 writes in a second.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean

from binwright.lab.latency.samples import LatencyLine, LatencySamples, SamplesBuilder
from binwright.lab.packing.experiments import CAPACITY, Experiment, decisions
from binwright.packing.score import expected_rscore, rscore
from binwright.protocol.errors import SettingsError
from binwright.protocol.model import Assignment, Rates, Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyModel:
    """What the equations need besides rates and assignments; the paper's values by default."""

    limit: float = 133.0  # C', what a consumer really reads, per cent of the capacity, > 0
    interval_s: float = 30.0  # T, between measurements, > 0
    rebalance_s: float = 5.0  # until a partition's new owner reads it, >= 0

    def __post_init__(self) -> None:
        """Raise `SettingsError` for numbers that are no model."""
        numbers = (self.limit, self.interval_s, self.rebalance_s)
        if not (all(map(isfinite, numbers)) and min(numbers[:2]) > 0 <= self.rebalance_s):
            raise SettingsError(
                "the latency model needs a limit and an interval > 0 and a rebalance time >= 0, "
                f"got {numbers}"
            )

    def lines(self, fixed: float, rebalanced: float, last_s: float) -> Iterator[LatencyLine]:
        """Yield the latencies of one consumer's bytes during one interval.

        Where the fixed queue takes the whole limit, the equations leave no rate for the rebalanced
        one, and its bytes are never read. They are taken as read when the interval is over, at the
        limit: the least that they can have to wait.

        Args:
            fixed: The rate at which the fixed queue is written, >= 0 (eq. 18).
            rebalanced: The same of the rebalanced queue (eq. 24).
            last_s: The latency of this consumer's last byte of the intervals before, 0 at first.
        """
        read = self.limit if rebalanced == 0 else min(self.limit, fixed)
        if bytes_written := int(self.interval_s * fixed):
            yield LatencyLine(last_s, 1 / read - 1 / fixed, bytes_written)
        if bytes_written := int(self.interval_s * rebalanced):
            spare = self.limit - read
            if spare > 0:
                yield LatencyLine(self.rebalance_s, 1 / spare - 1 / rebalanced, bytes_written)
            else:
                unread = LatencyLine(
                    self.interval_s, 1 / self.limit - 1 / rebalanced, bytes_written
                )
                yield unread


class GroupQueues:
    """Collects the latencies of a whole group, interval by interval."""

    def __init__(self, model: LatencyModel) -> None:
        self._model = model
        self._last_s: dict[Slot, float] = {}
        self._samples = SamplesBuilder()
        self.unread = 0
        """Bytes for which the equations leave no rate. See `LatencyModel.lines`."""

    def add(self, rates: Rates, before: Assignment, after: Assignment) -> None:
        """Add one interval.

        Args:
            rates: Per cent of the capacity, of all partitions of `after`.
            before: Who read each partition in the interval before.
            after: Who reads it now; another owner, or a first one, makes it a rebalanced partition.
        """
        fixed, rebalanced = dict[Slot, float](), dict[Slot, float]()
        for partition, slot in after.items():
            queue = fixed if before.get(partition) == slot else rebalanced
            queue[slot] = queue.get(slot, 0.0) + rates[partition]
        for slot in sorted(fixed.keys() | rebalanced.keys()):
            self._add_consumer(slot, fixed.get(slot, 0.0), rebalanced.get(slot, 0.0))

    def _add_consumer(self, slot: Slot, fixed: float, rebalanced: float) -> None:
        if fixed >= self._model.limit:
            self.unread += int(self._model.interval_s * rebalanced)
        for line in self._model.lines(fixed, rebalanced, self._last_s.get(slot, 0.0)):
            self._samples.add(line)
            self._last_s[slot] = line.last

    def samples(self) -> LatencySamples:
        """Return all latencies so far."""
        return self._samples.build()


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
    samples: LatencySamples | None  # if they are kept

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
    samples: LatencySamples, percents: Sequence[int], *, above_zero: bool
) -> dict[int, float]:
    quantiles = {p: samples.quantile(p / 100, above_zero=above_zero) for p in percents}
    return {percent: value for percent, value in quantiles.items() if value is not None}
