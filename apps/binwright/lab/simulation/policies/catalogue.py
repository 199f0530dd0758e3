"""The policies by their names, each with how a simulated group carries out its decisions.

The paper's controller (Landau, Andrade, Barbosa, arXiv 2402.06085) has four states with MWF.
Sentinel compares each consumer's load with what it sustains, and gives way to Reassign at an
overload, and after 10 s in any case (their prototype's limit for the state). Reassign runs MWF over
rates clipped to what a consumer sustains; its result is carried out whatever it moves. Group
Management starts all consumers, then moves partitions by stop, acknowledgement and start, then ends
the empty ones. Their prototype keeps one spare consumer running, which neither the paper nor its
figures count: left out.

Autoscalers look every 15 seconds (the HorizontalPodAutoscaler's period) at measured rates and lags
in bytes. A change is a rebalance that stops the whole group, unless the rule moves partitions one
by one. Rules that only count consumers leave the assignment to the group.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType

import numpy as np

from binwright.lab.simulation.fluid.arrivals import Floats
from binwright.lab.simulation.fluid.group import Cadence, FluidPolicy
from binwright.lab.simulation.outcome import CountSteps
from binwright.lab.simulation.policies.rules import CpuRule, LagRule, Linear, Stabilised
from binwright.lab.simulation.policies.scaled_group import FluidScaledGroup
from binwright.lab.simulation.scenario import Scenario
from binwright.packing.catalogue import algorithm
from binwright.packing.inputs import Load
from binwright.protocol.errors import PackingError
from binwright.protocol.model import Assignment, BytesPerSecond, Slot, TopicPartition
from binwright.scaler.decide.config import ScaledGroupSettings
from binwright.scaler.decide.paper_algorithms import Algorithm1, Algorithm2
from binwright.scaler.decide.policy import Decision, Observation, ReplicaCapacity
from binwright.scaler.decide.sla_packing import SlaPacking
from binwright.scaler.settings import ScalerSettings

SENTINEL_S = 10.0
"""The longest that the state Sentinel of the paper's controller lasts."""
MOVE_S = 5.0
"""How long a moving partition is not read there: t_reb of the paper's latency model."""
DECIDE_S = 15.0
"""Seconds between the decisions of an autoscaler."""
REBALANCE_S = 3.0
"""How long a rebalance stops a group: the longest gap that was measured (docs/figures.md)."""
SEEN_S = 5.0
"""Between two looks at how many members a recorded group had."""
COMMIT_S = 5.0
"""Between two commits of a consumer's offsets: Kafka's `auto.commit.interval.ms`."""
CPU_TARGET = 0.8
"""Share of what a consumer sustains that the rule for CPU aims at: Kubernetes' default."""
FOR_EVER_S = 1e9


@dataclass(frozen=True, slots=True)
class MwfController:
    """Packs with MWF at each decision, and moves what differs."""

    limit: BytesPerSecond  # what a consumer sustains
    capacity: BytesPerSecond  # what it is packed to

    def decide(self, observation: Observation) -> "tuple[Decision, MwfController]":
        """Return MWF's assignment."""
        rates = {
            p: BytesPerSecond(min(load.rate, self.limit)) for p, load in observation.loads.items()
        }
        target = algorithm("mwf")(Load(rates, self.capacity, observation.assignment))
        consumers = len(set(target.values()))
        return Decision(consumers, f"MWF packs into {consumers} consumers", target), self


@dataclass(frozen=True, slots=True)
class PeakProvisioned:
    """A group that is provisioned for its peak, and never changes."""

    replicas: int
    assignment: Assignment

    def decide(self, observation: Observation) -> "tuple[Decision, PeakProvisioned]":
        """Return the same always."""
        del observation
        return Decision(self.replicas, "provisioned for the peak", self.assignment), self


def mwf(scenario: Scenario, _: float) -> FluidPolicy:
    """Return the paper's controller as its authors ran it."""
    cadence = Cadence(interval_s=SENTINEL_S, at_overload=True, pause_s=_pause_s(scenario, MOVE_S))
    policy = MwfController(scenario.config.limits.default, scenario.config.capacity)
    return FluidPolicy(policy=policy, cadence=cadence, sees_lags=False)


def algorithm_1(scenario: Scenario, sla_s: float) -> FluidPolicy:
    """Return Algorithm 1 of Ezzeddine, Baude and Huet, with the paper's f_up and f_down."""
    policy = Algorithm1(capacity=_capacity(scenario, sla_s))
    return FluidPolicy(policy=policy, cadence=_rebalancing(scenario), steers=True)


def algorithm_2(scenario: Scenario, sla_s: float) -> FluidPolicy:
    """Return Algorithm 2: it counts in the lag that its own rebalance adds."""
    cadence = _rebalancing(scenario)
    policy = Algorithm2(capacity=_capacity(scenario, sla_s), rebalance_s=cadence.pause_s)
    return FluidPolicy(policy=policy, cadence=cadence, steers=True)


def sla_packing(scenario: Scenario, sla_s: float) -> FluidPolicy:
    """Return the product's own policy for groups of ordinary consumers; only moved ones pause."""
    cadence = replace(_rebalancing(scenario), stops_group=False)
    policy = SlaPacking(capacity=_capacity(scenario, sla_s), rebalance_s=cadence.pause_s)
    return FluidPolicy(policy=policy, cadence=cadence, steers=True)


def scaled_group(scenario: Scenario, sla_s: float) -> FluidPolicy:
    """Return a ScaledGroup of ordinary consumers that share their partitions by number."""
    return _scaled_group(scenario, sla_s, assigns=False)


def assigned_group(scenario: Scenario, sla_s: float) -> FluidPolicy:
    """Return a ScaledGroup whose partitions the scaler assigns, too."""
    return _scaled_group(scenario, sla_s, assigns=True)


def _scaled_group(scenario: Scenario, sla_s: float, *, assigns: bool) -> FluidPolicy:
    partitions = len(scenario.load.partitions)
    config = ScaledGroupSettings(
        group="simulated",
        sla_s=sla_s,
        max_replicas=partitions,
        records_per_s=scenario.config.limits.default,
        start_s=scenario.timing.start_up_s,
        commit_interval_s=0.0,
        burst_s=0.0,
        assigns=assigns,
    )
    interval_s = config.period_s(ScalerSettings().period_s)
    cadence = replace(_rebalancing(scenario), interval_s=interval_s, stops_group=False)
    return FluidPolicy(policy=FluidScaledGroup(config=config), cadence=cadence, steers=assigns)


def linear(scenario: Scenario, _: float) -> FluidPolicy:
    """Return their baseline: the total rate over what the packing fills a consumer to."""
    policy = Linear(rate=scenario.config.capacity)
    return FluidPolicy(policy=policy, cadence=_rebalancing(scenario))


def lag_rule(scenario: Scenario, _: float, threshold: float | None = None) -> FluidPolicy:
    """Return KEDA's rule: total lag over a threshold, behind the HorizontalPodAutoscaler.

    Unless it is given, the threshold is the lag that a consumer at its packing's capacity shows
    because it commits only every `COMMIT_S`: as people set it who watch a group that keeps up.
    """
    rule = LagRule(threshold=threshold or scenario.config.capacity * COMMIT_S / 2)
    policy = Stabilised(rule=rule, most=len(scenario.load.partitions))
    return FluidPolicy(policy=policy, cadence=_rebalancing(scenario), commit_s=COMMIT_S)


def cpu_rule(scenario: Scenario, _: float) -> FluidPolicy:
    """Return the HorizontalPodAutoscaler on CPU: a consumer's is what it reads over its limit."""
    rule = CpuRule(target=CPU_TARGET)
    policy = Stabilised(rule=rule, most=len(scenario.load.partitions))
    return FluidPolicy(policy=policy, cadence=_rebalancing(scenario), sees_utilisation=True)


@dataclass(frozen=True, slots=True)
class RecordedMembers:
    """As many replicas as a group had members."""

    members: CountSteps
    start_up_s: float  # before a member is seen it was ordered

    def decide(self, observation: Observation) -> "tuple[Decision, RecordedMembers]":
        """Return the number that was seen, at least one: a simulated group has a replica."""
        seen = bisect_right(self.members.times, observation.time_s + self.start_up_s)
        number = self.members.values[max(0, seen - 1)]
        return Decision(max(1, number), f"{number} members were recorded"), self


def as_it_was(scenario: Scenario) -> FluidPolicy:
    """Return a group with the members that it had; its assignor evens out their partitions."""
    if scenario.members is None:
        raise PackingError(f"the load has no members of a group, which {AS_IS} needs")
    policy = RecordedMembers(scenario.members, scenario.timing.start_up_s)
    cadence = replace(_rebalancing(scenario), interval_s=SEEN_S)
    return FluidPolicy(policy=policy, cadence=cadence, sees_lags=False)


def peak(scenario: Scenario, _: float) -> FluidPolicy:
    """Return the fewest consumers of which none is ever overloaded, although no partition moves.

    A group that is provisioned for its peak knows it, so the whole load is looked at. Partitions
    are spread by their own highest rates, the largest first, each to the consumer with the least
    so far. A partition that is faster than a consumer is alone, as nothing helps it.
    """
    load, limit = scenario.load, scenario.config.limits.default
    rates = np.minimum(load.rates, limit)
    peaks = dict(zip(load.partitions, rates.max(axis=0).tolist(), strict=True))
    least = max(1, int(np.ceil(rates.sum(axis=1).max() / limit)))
    for consumers in range(least, len(peaks) + 1):
        policy = PeakProvisioned(consumers, _spread(peaks, consumers))
        if _highest_load(policy, scenario, rates) <= limit:
            break
    return FluidPolicy(policy=policy, cadence=Cadence(interval_s=FOR_EVER_S), sees_lags=False)


def _spread(peaks: Mapping[TopicPartition, float], consumers: int) -> dict[TopicPartition, Slot]:
    loads = [(0.0, Slot(slot)) for slot in range(consumers)]
    owners: dict[TopicPartition, Slot] = {}
    for partition in sorted(peaks, key=lambda p: (-peaks[p], p)):
        load, slot = min(loads)
        owners[partition] = slot
        loads[slot] = (load + peaks[partition], slot)
    return owners


def _highest_load(policy: PeakProvisioned, scenario: Scenario, rates: Floats) -> float:
    """Return the highest load of any consumer in any row, bytes/s."""
    highest = 0.0
    for slot in range(policy.replicas):
        owned = [scenario.load.index[p] for p, owner in policy.assignment.items() if owner == slot]
        highest = max(highest, float(rates[:, owned].sum(axis=1).max()))
    return highest


def _capacity(scenario: Scenario, sla_s: float) -> ReplicaCapacity:
    return ReplicaCapacity(rate=scenario.config.limits.default, sla_s=sla_s)


def _pause_s(scenario: Scenario, default_s: float) -> float:
    wanted = scenario.timing.rebalance_s
    return default_s if wanted is None else wanted


def _rebalancing(scenario: Scenario) -> Cadence:
    """Return an autoscaler's cadence over a group that a rebalance stops."""
    pause_s = _pause_s(scenario, REBALANCE_S)
    return Cadence(interval_s=DECIDE_S, stops_group=True, pause_s=pause_s)


POLICIES: Mapping[str, Callable[[Scenario, float], FluidPolicy]] = MappingProxyType(
    {
        "mwf": mwf,
        "algorithm-1": algorithm_1,
        "algorithm-2": algorithm_2,
        "sla-packing": sla_packing,
        "scaled-group": scaled_group,
        "assigned-group": assigned_group,
        "linear": linear,
        "lag": lag_rule,
        "cpu": cpu_rule,
        "peak": peak,
    }
)
"""Name -> how the policy is made from the scenario and the SLA in seconds."""


AS_IS = "as-is"
"""A recorded group with the members that it had; other loads have none."""


def lag_threshold(name: str) -> float | None:
    """Return KEDA's lagThreshold in a policy's name, as `lag:5000`; None: it has none."""
    rule, _, value = name.partition(":")
    try:
        threshold = float(value)
    except ValueError:
        return None
    return threshold if rule == "lag" and 0 < threshold < inf else None


def policy(name: str, scenario: Scenario, sla_s: float) -> FluidPolicy:
    """Return the policy of that name; raise `PackingError` if there is none."""
    if name == AS_IS:
        return as_it_was(scenario)
    if threshold := lag_threshold(name):
        return lag_rule(scenario, sla_s, threshold)
    if name not in POLICIES:
        raise PackingError(f"no policy is called {name!r}; there are: {', '.join(POLICIES)}")
    return POLICIES[name](scenario, sla_s)
