"""A ScaledGroup as a policy over a fluid load: the scaler's own decisions, in bytes.

Where it assigns, the fluid group carries a change out in the scaler's order: new consumers start,
then the partitions of its plan move, then consumers that read nothing any more end. The highest
slots end, as a StatefulSet's pods do.
"""

from dataclasses import dataclass, field, replace

from binwright.protocol.model import Assignment, Slot, TopicPartition
from binwright.scaler.decide.assigning import (
    Planner,
    Replica,
    choose_leaving,
    with_assignment,
)
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.lags import Work
from binwright.scaler.decide.mapping import target
from binwright.scaler.decide.members import COOPERATIVE, STABLE, GroupDescription, GroupMember
from binwright.scaler.decide.policy import Decision, Observation
from binwright.scaler.decide.sizing import (
    GroupSnapshot,
    ScalingState,
    Verdict,
    WorkloadStatus,
    decide,
    ordered,
)

VALID_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FluidScaledGroup:
    """Scales a group of this configuration, and assigns its partitions if that says so."""

    config: ScaledGroupSettings
    state: ScalingState = field(default_factory=ScalingState)

    def decide(self, observation: Observation) -> "tuple[Decision, FluidScaledGroup]":
        """Return the decision; an assignment only where a plan moves partitions."""
        replicas, now_s = observation.replicas, observation.time_s
        snapshot = GroupSnapshot(
            work=Work(loads=observation.loads),
            workload=WorkloadStatus(replicas=replicas, ready=replicas),
            now_s=now_s,
            wall_s=now_s,
        )
        state, verdict = decide(self.config, self.state, snapshot)
        assignment: Assignment | None = None
        if self.config.assigns:
            seen = _described(observation, replicas if observation.assignment else 0)
            state, verdict = with_assignment(self.config, state, snapshot, verdict, seen)
            state, assignment = self._assigned(state, snapshot, verdict, observation, seen)
        if verdict.order is not None:
            state = ordered(state, verdict.order, now_s, before=replicas)
            replicas = verdict.order
        decision = Decision(replicas, "; ".join(verdict.reasons), assignment, verdict.hot)
        return decision, replace(self, state=state)

    def _assigned(
        self,
        state: ScalingState,
        snapshot: GroupSnapshot,
        verdict: Verdict,
        observation: Observation,
        seen: GroupDescription,
    ) -> tuple[ScalingState, Assignment | None]:
        if (step := verdict.step) is None or verdict.capacity is None:
            return state, None
        loads = snapshot.work.loads
        leaving: tuple[str, ...] = ()
        if step.empties:
            every = {name: Replica(name, int(name)) for name in seen.members}
            leaving = choose_leaving(seen.members, loads, every, step.members)
        planner = Planner(config=self.config, records_per_s=verdict.capacity, valid_s=VALID_S)
        state, done = planner.plan(state, snapshot, seen, step, leaving)
        if done.plan is None or not (done.rebalances or verdict.order is not None):
            return state, None
        members = _described(observation, max(step.members, len(seen.members))).members
        readers = target(done.plan.bins, members, loads, leaving)
        return state, {partition: Slot(int(name)) for partition, name in readers.items()}


def _described(observation: Observation, replicas: int) -> GroupDescription:
    """Return the group with a member for each slot, by whose number it is called."""
    owned: dict[str, set[TopicPartition]] = {str(number): set() for number in range(replicas)}
    for partition, slot in observation.assignment.items():
        owned.setdefault(str(slot), set()).add(partition)
    topics = frozenset(partition.topic for partition in observation.loads)
    members = {
        name: GroupMember(topics=topics, owned=frozenset(inside), generation=1)
        for name, inside in owned.items()
    }
    return GroupDescription(STABLE, COOPERATIVE, members)
