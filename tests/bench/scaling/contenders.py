"""The policies that scale the groups, with every time of theirs as much shorter as the workload."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.integration.assignor.java_members import ASSIGNOR, COOPERATIVE

from binwright.core.model import TopicPartition
from binwright.core.scaling.capacity import Bin, ReplicaCapacity
from binwright.core.scaling.lag_rule import LagRule
from binwright.core.scaling.least_loaded import least_loaded
from binwright.core.scaling.policy import Fixed, PartitionLoad, Policy
from binwright.core.scaling.sla_packing import SlaPacking
from binwright.core.scaling.stabilised import Stabilised
from binwright.core.steering.publication import Publisher, Rebalance

SERVICE_US = 5000
SLA_S = 0.5
BURST_S = 1.0
REBALANCE_S = 0.5
"""What a rebalance of a cooperative group takes with heartbeats of 0.5 s."""
CATCH_UP_S = 5.0
CAPACITY = ReplicaCapacity(rate=1e6 / SERVICE_US, sla_s=SLA_S, burst_s=BURST_S)
PAPER = ReplicaCapacity(rate=1e6 / SERVICE_US, sla_s=SLA_S)
UP = 0.9
SHORTEST_S = 1.0
"""Groups are looked at once a second."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A group, how it is scaled, and how its partitions are assigned."""

    name: str
    policy: Policy
    interval_s: float
    assignor: str
    first: int = 1  # replicas before the load begins
    publisher: Publisher | None = None


def contenders(shares: Sequence[float], peak: float, speed: float) -> list[Contender]:
    """Return ours, KEDA's lag rule, and as many replicas as the peak needs.

    Args:
        shares: Of each partition.
        peak: Records of the largest second.
        speed: How many times as fast as the workload is it is played.
    """
    ours = SlaPacking(
        capacity=CAPACITY,
        catch_up_s=CATCH_UP_S,
        rebalance_s=REBALANCE_S,
        cooldown_up_s=10 / speed,
        cooldown_down_s=10 / speed,
        empty_within_s=max(30 / speed, 10.0),
    )
    keda = Stabilised(
        rule=LagRule(threshold=PAPER.bin(UP).lag),
        most=len(shares),
        down_window_s=300 / speed,
        period_s=15 / speed,
    )
    publisher = Publisher(capacity=CAPACITY, rebalance=Rebalance(pause_s=REBALANCE_S))
    loads = {
        TopicPartition("load", number): PartitionLoad(peak * share)
        for number, share in enumerate(shares)
    }
    fixed = len(least_loaded(loads, Bin(CAPACITY.bin(UP).lag, 1.0)))
    sync_s = max(15 / speed, SHORTEST_S)
    return [
        Contender("binwright", ours, SHORTEST_S, ASSIGNOR, publisher=publisher),
        Contender("keda-lag", keda, sync_s, COOPERATIVE),
        Contender("fixed", Fixed(fixed), sync_s, COOPERATIVE, first=fixed),
    ]
