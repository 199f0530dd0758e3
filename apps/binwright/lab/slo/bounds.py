"""What no policy can undercut: the paper's optimal autoscaler, and costs at the same SLA.

The optimal autoscaler knows each second's events, and scales at once. A policy with more records in
time for more replica-minutes is neither better nor worse than one that has fewer for less: they are
compared at the same share of records in time.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from binwright.lab.simulation.records.arrivals import RecordLoad
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.least_loaded import least_loaded
from binwright.scaler.decide.policy import Bin, PartitionLoad

EVENTS = 85
"""What a replica does of a burst within 500 ms, as the paper's authors measured; it stays below."""


@dataclass(frozen=True, slots=True)
class Optimal:
    """What an optimal autoscaler costs."""

    replica_minutes: float
    ups: int
    downs: int


def optimal(workload: RecordLoad, events: float = EVENTS) -> Optimal:
    """Return the cost of Least-Loaded in each second, without any delay.

    Args:
        workload: Its shares are taken as exact.
        events: A replica gets fewer in a second, unless a partition alone has more.
    """
    # Integers below 85 are those up to 84.99...: the bin is a little smaller than the bound.
    below = Bin(events * (1 - 1e-6), 1.0)
    known: dict[int, int] = {}
    replicas = [_replicas(many, workload.shares, below, known) for many in workload.events]
    steps = [after - before for before, after in pairwise(replicas)]
    ups, downs = sum(s for s in steps if s > 0), -sum(s for s in steps if s < 0)
    return Optimal(sum(replicas) / 60, ups, downs)


def _replicas(events: int, shares: tuple[float, ...], below: Bin, known: dict[int, int]) -> int:
    if events not in known:
        loads = {
            TopicPartition("events", number): PartitionLoad(events * share)
            for number, share in enumerate(shares)
        }
        known[events] = len(least_loaded(loads, below))
    return known[events]


Point = tuple[float, float]
"""% of records in time, and replica-minutes."""

PRICES = tuple(n / 10_000 for n in range(1, 101))
"""Replica-minutes for a record in time. A replica has some thousand of these in its minute."""


def minutes_at(sla: float, points: Sequence[Point]) -> float | None:
    """Return the replica-minutes at which a policy has this share in time, by its other settings.

    On straight lines between the settings that no other one beats in both. A share below all of
    them costs as much as the least of them.

    Args:
        sla: %.
        points: Of the policy's settings.

    Returns:
        None: no setting has that share.
    """
    front: list[Point] = []
    for share, minutes in sorted(points, key=lambda one: (one[1], -one[0])):
        if not front or share > front[-1][0]:
            front.append((share, minutes))
    if sla <= front[0][0]:
        return front[0][1]
    for (low, less), (high, more) in pairwise(front):
        if sla <= high:
            return less + (more - less) * (sla - low) / (high - low)
    return None


def least_minutes(workload: RecordLoad, in_time: float, sla: float) -> float:
    """Return replica-minutes below which no policy has this share in time, whatever it foresees.

    Each second's records arrive at once, are spread evenly, and a replica has the first ones of
    them in time; what is left over is late. The number of replicas is free in every second. The
    bound is that of Lagrange: the best of all prices for a record in time.

    Args:
        workload: Its partitions are taken as equal.
        in_time: Records of a second that one replica has in time.
        sla: %.
    """
    seconds = Counter(workload.events)
    records = sum(events * many for events, many in seconds.items())
    partitions = len(workload.shares)
    choices = {
        events: [
            (number / 60, _served(events, number, partitions, in_time))
            for number in range(1, partitions + 1)
        ]
        for events in seconds
    }
    return max(
        price * records * sla / 100
        + sum(
            many * min(minutes - price * served for minutes, served in choices[events])
            for events, many in seconds.items()
        )
        for price in PRICES
    )


def _served(events: int, replicas: int, partitions: int, in_time: float) -> float:
    """Return the records in time of a second's, with partitions spread as evenly as they can be."""
    each, more = divmod(partitions, replicas)
    share = events / partitions
    return more * min((each + 1) * share, in_time) + (replicas - more) * min(each * share, in_time)
