"""Runs cases, each with several seeds, on the cores of this machine."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from binwright.lab import processes
from binwright.lab.slo.cases import TableCase
from binwright.lab.slo.contenders import Contender
from binwright.lab.slo.simulator.latencies import Floats
from binwright.lab.slo.simulator.run import simulate
from binwright.lab.slo.workloads.workload import Workload

GRID_S: Floats = np.concatenate([np.arange(0.005, 1, 0.005), np.geomspace(1, 60, 180)])
"""The latencies at which distributions are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Runs of records that were worked off one after the other: the last of each."""

    done_s: Floats
    latency_s: Floats
    consumer: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
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
class Run:
    """One simulation."""

    table: str
    contender: Contender
    workload: Workload
    seed: int
    is_traced: bool


def runs_of(tables: Sequence[TableCase]) -> list[Run]:
    """Return all runs of these tables."""
    return [
        Run(table.name, contender, table.workload, seed, table.is_traced and seed == 0)
        for table in tables
        for contender in table.contenders
        for seed in range(table.seeds)
    ]


def run(one: Run) -> Outcome:
    """Simulate, and measure what came of it."""
    settings = one.contender.settings
    done = simulate(one.workload, one.contender.policy, settings, one.seed)
    latencies = np.sort(done.latencies_s)
    trace = Trace(*done.group.latencies.last_of_runs()) if one.is_traced else None
    return Outcome(
        records=len(latencies),
        sla=float(100 * np.mean(latencies <= settings.sla_s)),
        minutes=done.replica_minutes,
        logged_minutes=done.logged_minutes,
        ups=done.controller.ups,
        downs=done.controller.downs,
        longest_s=float(latencies[-1]),
        distribution=100 * np.searchsorted(latencies, GRID_S, "right") / len(latencies),
        trace=trace,
    )


def run_all(runs: Sequence[Run], jobs: int, on_progress: Callable[[int], None]) -> list[Outcome]:
    """Run all; return their outcomes in the same order.

    Args:
        runs: Each runs independently.
        jobs: Processes; 1: only this one.
        on_progress: Called with the events of each workload that was run to its end.
    """
    return processes.run_all(
        run, runs, lambda one: on_progress(_duration_s(one)), jobs, cost=_duration_s
    )


def _duration_s(one: Run) -> int:
    return one.workload.duration_s
