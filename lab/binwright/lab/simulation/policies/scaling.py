"""The rules of `core.scaling` over a Kafka consumer group, as an autoscaler runs them.

Every 15 seconds (the HorizontalPodAutoscaler's period) a rule sees measured rates and lags in
bytes. A change is a rebalance that stops the whole group, unless the rule moves partitions one by
one. Rules that only count consumers leave the assignment to the group: as many partitions each, of
which few move (the sticky assignor's rule).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from binwright.lab.simulation.policies.interface import Manner, Seen, Target
from binwright.lab.simulation.scenario import Scenario
from binwright.protocol.model import Slot
from binwright.scaler.decide import policy as core
from binwright.scaler.decide.bin_pack import Algorithm1, Algorithm2
from binwright.scaler.decide.policies.cpu_rule import CpuRule
from binwright.scaler.decide.policies.lag_rule import LagRule
from binwright.scaler.decide.policies.linear import Linear
from binwright.scaler.decide.policies.stabilised import Stabilised
from binwright.scaler.decide.policy import ReplicaCapacity
from binwright.scaler.decide.sla_packing import SlaPacking

DECIDE_S = 15.0
"""Seconds between decisions."""
REBALANCE_S = 3.0
"""How long a rebalance stops a group: the longest gap that was measured (docs/figures.md)."""
COMMIT_S = 5.0
"""Between two commits of a consumer's offsets: Kafka's `auto.commit.interval.ms`."""
CPU_TARGET = 0.8
"""Share of what a consumer sustains that the rule for CPU aims at: Kubernetes' default."""


@dataclass(slots=True)
class ScalingPolicy:
    """Runs a rule of the core; replica i is slot i, the newest replicas end first.

    Attributes:
        scenario: What it runs in.
        rule: What decides.
        steers: Whether the rule assigns partitions; else the group's own assignor does.
        commit_s: Between commits; bytes that are read and not committed count as lag.
        cpu: Whether the rule looks at the consumers' utilisation.
        stops_group: Whether a change stops all partitions, or only those that move.
    """

    scenario: Scenario
    rule: core.Policy
    steers: bool = False
    commit_s: float = 0.0
    cpu: bool = False
    stops_group: bool = True

    @property
    def manner(self) -> Manner:
        """See `Policy.manner`."""
        pause_s = _pause_s(self.scenario)
        return Manner(interval_s=DECIDE_S, stops_group=self.stops_group, pause_s=pause_s)

    def decide(self, seen: Seen) -> Target:
        """Return what the rule decides."""
        partitions, late_s = self.scenario.load.partitions, self.commit_s / 2
        lags = seen.lags()
        if late_s:
            lags = [lag + rate * late_s for rate, lag in zip(seen.rates, lags, strict=True)]
        loads = map(core.PartitionLoad, seen.rates, lags)
        observation = core.Observation(
            time_s=seen.now,
            loads=dict(zip(partitions, loads, strict=True)),
            replicas=max(1, len(seen.slots)),
            assignment={partitions[index]: slot for index, slot in seen.owners.items()},
            scaled_s=seen.changed_at,
            utilisation=seen.busy() if self.cpu else (),
        )
        decision, self.rule = self.rule.decide(observation)
        slots = [Slot(number) for number in range(decision.replicas)]
        if decision.assignment is not None:
            index = self.scenario.load.index
            owners: Mapping[int, Slot] = {index[p]: s for p, s in decision.assignment.items()}
        else:
            most = len(partitions) if self.steers else None
            owners = assigned(seen.owners, len(partitions), slots, most)
        return Target(owners, frozenset(slots))


def assigned(
    owners: Mapping[int, Slot], partitions: int, slots: Sequence[Slot], most: int | None = None
) -> dict[int, Slot]:
    """Return an assignment in which owners keep what they have, up to their share.

    What is left goes to the slots with the fewest.

    Args:
        owners: Of the partitions so far, by index.
        partitions: Their number.
        slots: The consumers, at least one.
        most: Partitions that an owner keeps; None: as many as any other, or one more.
    """
    least, more = divmod(partitions, len(slots))
    if len(owners) == partitions and _is_even(owners, slots):
        return dict(sorted(owners.items()))  # which is what the rest would find
    kept: dict[int, Slot] = {}
    count = dict.fromkeys(slots, 0)
    for index in sorted(owners):
        slot = owners[index]
        if slot not in count or (most is None and count[slot] >= least + (more > 0)):
            continue
        more -= count[slot] == least
        kept[index] = slot
        count[slot] += 1
    for index in range(partitions):
        if index not in kept:
            slot = min(slots, key=lambda slot: (count[slot], slot))
            kept[index] = slot
            count[slot] += 1
    return dict(sorted(kept.items()))


def _is_even(owners: Mapping[int, Slot], slots: Sequence[Slot]) -> bool:
    """Return whether these slots, and no other ones, have equal numbers to within one."""
    shares = Counter(owners.values())
    return shares.keys() == set(slots) and max(shares.values()) - min(shares.values()) <= 1


def _capacity(scenario: Scenario, sla_s: float) -> ReplicaCapacity:
    return ReplicaCapacity(rate=scenario.config.limits.default, sla_s=sla_s)


def _pause_s(scenario: Scenario) -> float:
    given = scenario.timing.rebalance_s
    return REBALANCE_S if given is None else given


def algorithm_1(scenario: Scenario, sla_s: float) -> ScalingPolicy:
    """Return Algorithm 1 of Ezzeddine, Baude and Huet, with the paper's f_up and f_down."""
    return ScalingPolicy(scenario, Algorithm1(capacity=_capacity(scenario, sla_s)), steers=True)


def algorithm_2(scenario: Scenario, sla_s: float) -> ScalingPolicy:
    """Return Algorithm 2: it counts in the lag that its own rebalance adds."""
    capacity, pause_s = _capacity(scenario, sla_s), _pause_s(scenario)
    return ScalingPolicy(scenario, Algorithm2(capacity=capacity, rebalance_s=pause_s), steers=True)


def sla_packing(scenario: Scenario, sla_s: float) -> ScalingPolicy:
    """Return the product's own policy for groups of ordinary consumers; only moved ones pause."""
    capacity, pause_s = _capacity(scenario, sla_s), _pause_s(scenario)
    rule = SlaPacking(capacity=capacity, rebalance_s=pause_s)
    return ScalingPolicy(scenario, rule, steers=True, stops_group=False)


def linear(scenario: Scenario, _: float) -> ScalingPolicy:
    """Return their baseline: the total rate over what the packing fills a consumer to."""
    return ScalingPolicy(scenario, Linear(rate=scenario.config.capacity))


def lag_rule(scenario: Scenario, _: float) -> ScalingPolicy:
    """Return KEDA's rule: total lag over a threshold, behind the HorizontalPodAutoscaler.

    The threshold is the lag that a consumer at its packing's capacity shows because it commits
    only every `COMMIT_S`: as people set it who watch a group that keeps up.
    """
    threshold = scenario.config.capacity * COMMIT_S / 2
    rule = Stabilised(rule=LagRule(threshold=threshold), most=len(scenario.load.partitions))
    return ScalingPolicy(scenario, rule, commit_s=COMMIT_S)


def cpu_rule(scenario: Scenario, _: float) -> ScalingPolicy:
    """Return the HorizontalPodAutoscaler on CPU: a consumer's is what it reads over its limit."""
    rule = Stabilised(rule=CpuRule(target=CPU_TARGET), most=len(scenario.load.partitions))
    return ScalingPolicy(scenario, rule, cpu=True)


SCALING: Mapping[str, Callable[[Scenario, float], ScalingPolicy]] = {
    "algorithm-1": algorithm_1,
    "algorithm-2": algorithm_2,
    "sla-packing": sla_packing,
    "linear": linear,
    "lag": lag_rule,
    "cpu": cpu_rule,
}
"""Name -> how the policy is made from the scenario and the SLA in seconds."""
