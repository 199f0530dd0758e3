"""What a group does with a policy's decisions, and what it shows the policy."""

from dataclasses import dataclass, field

import pytest
from tests.lab.simulation.builders import scenario

from binwright.lab.simulation.clock import Clock
from binwright.lab.simulation.fluid.data_path import DataPath
from binwright.lab.simulation.fluid.group import Cadence, FluidGroup, FluidPolicy
from binwright.lab.simulation.outcome import ConsumerCounts
from binwright.lab.simulation.policies.catalogue import POLICIES
from binwright.lab.simulation.scenario import Scenario
from binwright.protocol.model import Assignment, Slot
from binwright.scaler.decide.policy import Decision, Observation

CADENCE = Cadence(interval_s=15.0)


@dataclass(frozen=True)
class Scripted:
    """Decides on so many replicas, and keeps what it sees; the first decision assigns."""

    replicas: int
    assignment: Assignment | None = None
    observations: list[Observation] = field(default_factory=list)

    def decide(self, observation: Observation) -> "tuple[Decision, Scripted]":
        self.observations.append(observation)
        first = len(self.observations) == 1
        return Decision(self.replicas, "as written", self.assignment if first else None), self


def run(found: Scenario, policy: FluidPolicy) -> FluidGroup:
    clock = Clock(found.begin)
    group = FluidGroup(found, policy, clock, DataPath(found.load, found.begin), ConsumerCounts())
    clock.run_until(found.load.ends_at)
    return group


def test_what_is_not_committed_counts_as_lag_for_the_rule_on_lag() -> None:
    """A group of three that keeps up with 300 bytes/s, at 100 a consumer, stays as it is."""
    found, policy = scenario([[100.0] * 3]), Scripted(3)
    rule = POLICIES["lag"](found, 5.0)

    run(found, FluidPolicy(policy=policy, cadence=CADENCE, commit_s=rule.commit_s))

    last = policy.observations[-1]
    assert [load.lag for load in last.loads.values()] == [250.0] * 3
    assert rule.policy.decide(last)[0].replicas == 3


@pytest.mark.parametrize(("steers", "changes"), [(True, 1), (False, 2)])
def test_a_policy_that_steers_and_assigns_nothing_leaves_owners_alone(
    steers: bool, changes: int
) -> None:
    """One consumer has one partition and the other five: the group's assignor evens that out."""
    found = scenario([[90.0, 17.0, 17.0, 17.0, 17.0, 17.0]])
    owners = {p: Slot(min(n, 1)) for n, p in enumerate(found.load.partitions)}

    group = run(found, FluidPolicy(policy=Scripted(2, owners), cadence=CADENCE, steers=steers))

    assert len(group.changes) == changes
    assert POLICIES["algorithm-1"](found, 5.0).steers


def test_replicas_that_read_nothing_run_beside_those_that_were_assigned() -> None:
    found, policy = scenario([[10.0, 10.0]]), Scripted(3)
    owners = {p: Slot(1) for p in found.load.partitions}

    run(found, FluidPolicy(policy=Scripted(3, owners, policy.observations), cadence=CADENCE))

    assert policy.observations[1].replicas == 3
