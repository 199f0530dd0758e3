"""What the scaler does, as a policy: its look-ups, its rates, and the machine of a scaled group."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from binwright.protocol.model import TopicPartition
from binwright.scaler.decide.config import ScaledGroup
from binwright.scaler.decide.lags import EndHistory, work_of
from binwright.scaler.decide.machine import (
    GroupSnapshot,
    ScalingState,
    WorkloadStatus,
    decide,
    ordered,
)
from binwright.scaler.decide.policy import Decision, Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledGroupPolicy:
    """Scales a simulated group of one topic as the scaler scales a real one.

    What it sees are the ends of the logs and the committed offsets, from which it takes its rates;
    orders are carried out at once.
    """

    config: ScaledGroup
    state: ScalingState = field(default_factory=ScalingState)
    history: EndHistory = field(default_factory=EndHistory)  # has the window of rates
    ends: Mapping[TopicPartition, float] = field(default_factory=dict)
    looked_s: float = 0.0

    def decide(self, observation: Observation) -> "tuple[Decision, ScaledGroupPolicy]":
        """Return the decision; there is no assignment, as Kafka's own assignor assigns."""
        now_s, loads = observation.time_s, observation.loads
        passed_s = now_s - self.looked_s
        ends = {p: self.ends.get(p, 0.0) + load.rate * passed_s for p, load in loads.items()}
        history = self.history.with_ends(now_s, {p.partition: int(end) for p, end in ends.items()})
        topic = next(iter(loads)).topic
        work, baseline = work_of(
            {p: int(ends[p]) - round(load.lag) for p, load in loads.items()},
            [topic],
            {topic: history.latest(len(loads))},
            self.state.baseline,
            now_s,
        )
        seen = GroupSnapshot(
            work=work,
            workload=WorkloadStatus(replicas=observation.replicas, ready=observation.replicas),
            now_s=now_s,
            wall_s=0.0,
        )
        state, verdict = decide(self.config, replace(self.state, baseline=baseline), seen)
        replicas = observation.replicas
        if verdict.order is not None:
            replicas = verdict.order
            state = ordered(state, replicas, now_s)
        after = replace(self, state=state, history=history, ends=ends, looked_s=now_s)
        return Decision(replicas, "; ".join(verdict.reasons)), after
