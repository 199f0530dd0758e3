"""The policies that scale the groups.

What a workload's own changes ask of a policy's times, cooldowns and windows of minutes, is shorter
by the factor by which it is played faster. Looks at the group, and what a process takes to start,
are not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.integration.assignor.java_members import ASSIGNOR, COOPERATIVE

from binwright.lab.simulation.policies.rules import LagRule, Stabilised
from binwright.lab.slo.policies import ScaledGroupPolicy
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.lags import EndHistory
from binwright.scaler.decide.least_loaded import least_loaded
from binwright.scaler.decide.policy import Bin, Fixed, PartitionLoad, Policy, ReplicaCapacity

SERVICE_US = 5000
SLA_S = 0.5
BURST_S = 1.0
REBALANCE_S = 0.5
"""What a rebalance of a cooperative group takes with heartbeats of 0.5 s."""
START_S = 2.0
"""About what a Java process takes until it reads."""
WINDOW_S = 5.0
"""Of rates."""
CAPACITY = ReplicaCapacity(rate=1e6 / SERVICE_US, sla_s=SLA_S, burst_s=BURST_S)
PAPER = ReplicaCapacity(rate=1e6 / SERVICE_US, sla_s=SLA_S)
UP = 0.9
USUAL = PAPER.bin(UP).lag
"""The lag that a replica works off within the SLA, with headroom. KEDA's own default, 10, has all
replicas run at these rates: it is the fixed group again."""
SHORTEST_S = 1.0
"""Groups are looked at once a second."""


@dataclass(frozen=True, slots=True)
class LivePolicy:
    """A group, how it is scaled, and how its partitions are assigned."""

    name: str
    policy: Policy
    interval_s: float
    assignor: str = COOPERATIVE
    first: int = 1  # replicas before the load begins


def ours(share: float, partitions: int, speed: float) -> LivePolicy:
    """Return a scaled group as the scaler runs it, for a group that Kafka assigns.

    Args:
        share: Of the records that are to be in time at any moment.
        partitions: Of the topic.
        speed: How many times as fast as the workload is it is played.
    """
    name = f"binwright-{100 * share:g}"
    config = ScaledGroupSettings(
        group=name,
        min_replicas=1,
        max_replicas=partitions,
        records_per_s=CAPACITY.rate,
        sla_s=SLA_S,
        sla_share=share,
        burst_s=BURST_S,
        start_s=START_S,
        rebalance_s=REBALANCE_S,
        commit_interval_s=0.0,  # after each batch
        cooldown_up_s=10 / speed,
        cooldown_down_s=10 / speed,
    )
    policy = ScaledGroupPolicy(config=config, history=EndHistory(window_s=WINDOW_S))
    return LivePolicy(name, policy, SHORTEST_S)


def lag_rule(threshold: float, partitions: int, speed: float) -> LivePolicy:
    """Return KEDA's lag rule at a threshold, behind the HorizontalPodAutoscaler."""
    policy = Stabilised(
        rule=LagRule(threshold=threshold),
        most=partitions,
        down_window_s=300 / speed,
        period_s=15 / speed,
    )
    return LivePolicy(f"lag-{threshold:g}", policy, max(15 / speed, SHORTEST_S))


def fixed(shares: Sequence[float], peak: float) -> LivePolicy:
    """Return as many replicas as the largest second needs."""
    loads = {
        TopicPartition("load", number): PartitionLoad(peak * share)
        for number, share in enumerate(shares)
    }
    replicas = len(least_loaded(loads, Bin(CAPACITY.bin(UP).lag, 1.0)))
    return LivePolicy("fixed", Fixed(replicas), SHORTEST_S, first=replicas)


def assigned(share: float, partitions: int, speed: float) -> LivePolicy:
    """Return a scaled group as `ours`, whose partitions the scaler assigns, too."""
    one = ours(share, partitions, speed)
    assert isinstance(one.policy, ScaledGroupPolicy)
    name = f"assigned-{100 * share:g}"
    config = one.policy.config.model_copy(update={"group": name, "assigns": True})
    policy = replace(one.policy, config=config)
    return replace(one, name=name, policy=policy, assignor=ASSIGNOR)
