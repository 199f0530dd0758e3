"""What the simulator expects of a group, by which both sides' settings are chosen beforehand.

A policy that has more records in time for more replica-minutes is neither better nor worse than
one that has fewer for less. So each side is played at two points: KEDA's lag rule as it is usually
set, with binwright at the same share of records in time; and binwright where almost all are to be,
with the lag rule's threshold for the same share.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from bench.scaling.policies import REBALANCE_S, LivePolicy, assigned, lag_rule, ours
from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.lab.simulation.records.group import GroupSettings
from binwright.lab.simulation.records.run import simulate

SEEDS = 6
SHARES = tuple(n / 100 for n in range(60, 100, 5))
"""`sla_share` of binwright, from few replicas to many."""
THRESHOLDS = tuple(range(200, 5, -5))
"""Lag for each replica, from few replicas to many."""


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A setup, and what the simulator expects of it."""

    setup: LivePolicy
    sla: float  # % of records in time
    minutes: float  # replica-minutes


def foresee(setup: LivePolicy, workload: RecordLoad) -> Foreseen:
    """Simulate a setup on a workload, as it is played: means over `SEEDS` runs.

    The simulated group is a cooperative one with the bench's heartbeats, whose replicas start as
    soon as its Java processes do on an idle machine.
    """
    group = GroupSettings(
        protocol="incremental",
        heartbeat_s=0.5,
        start_s=1.8,
        start_spread_s=0.6,
        sync_s=REBALANCE_S,
        warm_up_s=4.0,
        scaling_s=0.0,
        interval_s=setup.interval_s,
        first_replicas=setup.first,
    )
    runs = [simulate(workload, setup.policy, group, seed) for seed in range(SEEDS)]
    sla = fmean(float(100 * np.mean(one.latencies_s <= group.sla_s)) for one in runs)
    return Foreseen(setup, sla, fmean(one.replica_minutes for one in runs))


def chosen(workload: RecordLoad, speed: float, usual: float, share: float) -> list[Foreseen]:
    """Return binwright twice and the lag rule twice: two pairs of about equal SLA.

    Beside the usual threshold binwright is the one with the fewest replicas that has no fewer
    records in time. Beside `share` the lag rule is the one whose records in time are the nearest;
    there may be no threshold at which it has as many.

    Args:
        workload: As it is played.
        speed: How many times as fast as the workload is it is played.
        usual: The lag rule's threshold as it is usually set.
        share: `sla_share` of binwright where almost all records are to be in time.
    """
    partitions = len(workload.shares)
    theirs = foresee(lag_rule(usual, partitions, speed), workload)
    most = foresee(ours(share, partitions, speed), workload)
    fewer = (foresee(ours(one, partitions, speed), workload) for one in SHARES if one < share)
    least = next((one for one in fewer if one.sla >= theirs.sla), most)
    tuned = min(
        (foresee(lag_rule(one, partitions, speed), workload) for one in THRESHOLDS),
        key=lambda one: abs(one.sla - most.sla),
    )
    found = {one.setup.name: one for one in (most, tuned, least, theirs)}
    return list(found.values())


def assigned_beside(
    workload: RecordLoad, speed: float, share: float, thresholds: Sequence[float]
) -> list[Foreseen]:
    """Return binwright sizing and assigning, and the lag rule at these thresholds.

    Without any, the lag rule is tuned: its threshold is the one whose foreseen replica-minutes are
    the nearest.
    """
    partitions = len(workload.shares)
    mine = foresee(assigned(share, partitions, speed), workload)
    rules = [foresee(lag_rule(n, partitions, speed), workload) for n in thresholds or THRESHOLDS]
    if thresholds:
        return [mine, *rules]
    return [mine, min(rules, key=lambda one: abs(one.minutes - mine.minutes))]
