"""The paper's optimal autoscaler: it knows each second's events, and scales at once."""

from dataclasses import dataclass
from itertools import pairwise

from binwright.lab.slo.workloads.workload import Workload
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.bins import least_loaded
from binwright.scaler.decide.policy import Bin, PartitionLoad

EVENTS = 85
"""What a replica does of a burst within 500 ms, as the paper's authors measured; it stays below."""


@dataclass(frozen=True, slots=True)
class Optimal:
    """What an optimal autoscaler costs."""

    replica_minutes: float
    ups: int
    downs: int


def optimal(workload: Workload, events: float = EVENTS) -> Optimal:
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
