"""Runs of all cases on the cores of this machine, and means over their seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np
from numpy.typing import NDArray

from binwright.lab import processes
from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.lab.simulation.records.consumers import Floats
from binwright.lab.simulation.records.run import simulate
from binwright.lab.slo.cases import TableCase
from binwright.lab.slo.policies import APART, PolicySetup
from binwright.scaler.decide.policy import Fixed

GRID_S: Floats = np.concatenate([np.arange(0.005, 1, 0.005), np.geomspace(1, 60, 180)])
"""The latencies at which distributions are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Runs of records that were worked off one after the other: the last of each."""

    done_s: Floats
    latency_s: Floats
    consumer: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class SloOutcome:
    """What came of one run."""

    records: int
    sla: float  # % of records in time
    minutes: float  # replica-minutes, from each replica's order to its end
    logged_minutes: float  # from its first record to its last: what the paper counts
    ups: int
    downs: int
    longest_s: float
    distribution: Floats  # % of records at most as late as each of `GRID_S`
    trace: Trace | None


@dataclass(frozen=True, slots=True)
class SloRun:
    """One simulation."""

    table: str
    setup: PolicySetup
    workload: RecordLoad
    seed: int
    is_traced: bool


def runs_of(tables: Sequence[TableCase]) -> list[SloRun]:
    """Return all runs of these tables."""
    return [
        SloRun(table.name, setup, table.workload, seed, table.is_traced and seed == 0)
        for table in tables
        for setup in table.setups
        for seed in range(table.seeds)
    ]


def run(one: SloRun) -> SloOutcome:
    """Simulate, and measure what came of it."""
    settings = one.setup.settings
    done = simulate(one.workload, one.setup.policy, settings, one.seed)
    latencies = np.sort(done.latencies_s)
    trace = Trace(*done.group.latencies.last_of_runs()) if one.is_traced else None
    return SloOutcome(
        records=len(latencies),
        sla=float(100 * np.mean(latencies <= settings.sla_s)),
        minutes=done.replica_minutes,
        logged_minutes=done.logged_minutes,
        ups=done.scaler.ups,
        downs=done.scaler.downs,
        longest_s=float(latencies[-1]),
        distribution=100 * np.searchsorted(latencies, GRID_S, "right") / len(latencies),
        trace=trace,
    )


def run_all(
    runs: Sequence[SloRun], jobs: int, on_progress: Callable[[int], None]
) -> list[SloOutcome]:
    """Run all; return their outcomes in the same order.

    Args:
        runs: Each runs independently.
        jobs: Processes; 1: only this one.
        on_progress: Called with the events of each workload that was run to its end.
    """
    return processes.run_all(
        run, runs, lambda one: on_progress(_duration_s(one)), jobs, cost=_duration_s
    )


def _duration_s(one: SloRun) -> int:
    return one.workload.duration_s


RIVAL = "Algorithm 2"
RIVALS = (RIVAL, f"{RIVAL}{APART}")
"""As printed, and the variant: ours is compared with both."""


class _Mean:
    """A figure of a `PolicyResult`: the mean of its outcomes' values."""

    def __init__(self, value: Callable[[SloOutcome], float]) -> None:
        self._value = value

    def __get__(self, result: "PolicyResult", owner: type["PolicyResult"]) -> float:
        return fmean(map(self._value, result.outcomes))


@dataclass(frozen=True, slots=True, eq=False)
class PolicyResult:
    """What came of one setup in one table: means over its runs."""

    setup: PolicySetup
    outcomes: Sequence[SloOutcome]

    sla = _Mean(lambda one: one.sla)  # of the records in time, %
    minutes = _Mean(lambda one: one.minutes)  # of replicas, from each one's order to its end
    logged_minutes = _Mean(lambda one: one.logged_minutes)  # from first record to last
    ups = _Mean(lambda one: one.ups)  # replicas that were added
    downs = _Mean(lambda one: one.downs)  # replicas that were taken away
    longest_s = _Mean(lambda one: one.longest_s)  # the longest latency of a run

    @property
    def sla_deviation(self) -> float:
        """Return the standard deviation of the records in time over the runs, points."""
        return pstdev(one.sla for one in self.outcomes)

    @property
    def paper_minutes(self) -> float:
        """Return replica-minutes as the paper counts them, by the logs of replicas that scale."""
        if isinstance(self.setup.policy, Fixed):
            return self.minutes
        return self.logged_minutes

    @property
    def distribution(self) -> Floats:
        """Return the % of records at most as late as each latency of the grid."""
        mean: Floats = np.mean([one.distribution for one in self.outcomes], axis=0)
        return mean


@dataclass(frozen=True, slots=True, eq=False)
class TableResult:
    """A table with its results, in the order of its setups."""

    case: TableCase
    results: Sequence[PolicyResult]

    @property
    def by_name(self) -> Mapping[str, PolicyResult]:
        """Return the results by the setup's name."""
        return {one.setup.name: one for one in self.results}


def collect(tables: Sequence[TableCase], outcomes: Sequence[SloOutcome]) -> list[TableResult]:
    """Return the results of outcomes that come in the order of `runs_of` with equal seeds."""
    left = iter(outcomes)
    return [
        TableResult(
            table,
            [
                PolicyResult(setup, [next(left) for _ in range(table.seeds)])
                for setup in table.setups
            ],
        )
        for table in tables
    ]


def is_better(ours: PolicyResult, rival: PolicyResult) -> bool:
    """Whether a result has as many records in time as another one, for fewer replica-minutes."""
    return ours.sla >= rival.sla and ours.minutes < rival.minutes
