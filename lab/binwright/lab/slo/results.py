"""Means over seeds, and how they compare with the paper and with Algorithm 2."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

import numpy as np

from binwright.lab.slo.cases import TableCase
from binwright.lab.slo.contenders import Contender
from binwright.lab.slo.paper import SLA_POINTS, STEPS, Published
from binwright.lab.slo.runs import Outcome
from binwright.lab.slo.simulator.latencies import Floats
from binwright.scaler.decide.policy import Fixed

RIVAL = "Algorithm 2"
BETTER = "better in both"


class _Mean:
    """A figure of a `Result`: the mean of its outcomes' values."""

    def __init__(self, value: Callable[[Outcome], float]) -> None:
        self._value = value

    def __get__(self, result: "Result", owner: type["Result"]) -> float:
        return fmean(map(self._value, result.outcomes))


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What came of one contender in one table: means over its runs."""

    contender: Contender
    outcomes: Sequence[Outcome]

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
        if isinstance(self.contender.policy, Fixed):
            return self.minutes
        return self.logged_minutes

    @property
    def distribution(self) -> Floats:
        """Return the % of records at most as late as each latency of the grid."""
        found: Floats = np.mean([one.distribution for one in self.outcomes], axis=0)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class TableResult:
    """A table with its results, in the order of its contenders."""

    case: TableCase
    results: Sequence[Result]

    @property
    def by_name(self) -> Mapping[str, Result]:
        """Return the results by the contender's name."""
        return {one.contender.name: one for one in self.results}


def collect(tables: Sequence[TableCase], outcomes: Sequence[Outcome]) -> list[TableResult]:
    """Return the results of outcomes that come in the order of `runs_of` with equal seeds."""
    left = iter(outcomes)
    return [
        TableResult(
            table,
            [
                Result(contender, [next(left) for _ in range(table.seeds)])
                for contender in table.contenders
            ],
        )
        for table in tables
    ]


def deviations(published: Published, sla: float, minutes: float, steps: Sequence[float]) -> str:
    """Return what exceeds the tolerance for a published row, in words; empty: nothing.

    Args:
        published: The row.
        sla: Simulated, %.
        minutes: Simulated, as the paper counts.
        steps: Replicas added, and taken away.
    """
    found = []
    if abs(sla - published.sla) > SLA_POINTS:
        found.append("SLA")
    if published.minutes is not None:
        share = abs(minutes / published.minutes - 1)
        if share > published.minutes_share:
            found.append("replica-minutes")
    wanted = (published.ups, published.downs)
    if any(w is not None and abs(s - w) > STEPS for s, w in zip(steps, wanted, strict=True)):
        found.append("steps")
    return ", ".join(found)


def verdict(ours: Result, rival: Result) -> str:
    """Return how a result compares with another one, in words."""
    points, minutes = ours.sla - rival.sla, 100 * (ours.minutes / rival.minutes - 1)
    if points >= 0 and minutes < 0:
        return BETTER
    if points >= 0:
        return f"better SLA, {minutes:+.1f} % minutes"
    if minutes < 0:
        return f"fewer minutes, SLA {points:+.2f} points"
    return f"worse: SLA {points:+.2f} points, {minutes:+.1f} % minutes"
