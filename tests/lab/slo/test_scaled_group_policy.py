"""The scaler's own decisions on a simulated group."""

from binwright.lab.slo.policies import ScaledGroupPolicy
from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.policy import Observation, PartitionLoad


def test_lag_from_before_the_simulation_counts() -> None:
    config = ScaledGroupSettings(
        group="orders", min_replicas=1, max_replicas=10, records_per_s=100.0, commit_interval_s=0.0
    )
    loads = {TopicPartition("orders", n): PartitionLoad(10.0, 5_000) for n in range(4)}
    policy = ScaledGroupPolicy(config=config)
    decision, _ = policy.decide(Observation(time_s=0.0, loads=loads, replicas=1))

    assert decision.replicas == 4
