"""Groups for the tests of scaling policies."""

from collections.abc import Sequence

from binwright.protocol.model import Slot, TopicPartition
from binwright.scaler.decide.policy import Decision, Observation, PartitionLoad, ReplicaCapacity

PARTITIONS = [TopicPartition("orders", number) for number in range(40)]
PAPER = ReplicaCapacity(rate=200, sla_s=0.5)
"""The paper's replica: 200 records/s, 0.5 s; at 90 % it takes 180/s and a lag of 90."""
BURSTS = ReplicaCapacity(rate=200, sla_s=0.5, burst_s=1)
"""The same where records arrive once a second: it sustains 100/s."""


def observe(
    rates: Sequence[float],
    lags: Sequence[float] = (),
    *,
    replicas: int = 1,
    owners: Sequence[int] | None = None,
    time_s: float = 100,
    scaled_s: float | None = None,
    utilisation: Sequence[float] = (),
) -> Observation:
    """Return an observation of partitions 0, 1, ...; without owners they are dealt in turns."""
    slots = [n % replicas for n in range(len(rates))] if owners is None else owners
    lags = lags or [0] * len(rates)
    return Observation(
        time_s=time_s,
        loads={
            p: PartitionLoad(rate, lag)
            for p, rate, lag in zip(PARTITIONS, rates, lags, strict=False)
        },
        replicas=replicas,
        assignment={p: Slot(slot) for p, slot in zip(PARTITIONS, slots, strict=False)},
        scaled_s=scaled_s,
        utilisation=utilisation,
    )


def rates_of(observation: Observation, decision: Decision) -> list[float]:
    """Return the rate that each replica gets by a decision's assignment."""
    assert decision.assignment is not None
    rates = [0.0] * decision.replicas
    for partition, slot in decision.assignment.items():
        rates[slot] += observation.loads[partition].rate
    return rates
