"""Which groups save most: each as it is, by KEDA's rule, as a ScaledGroup, and assigned.

A rule counts if it reads as much in time as the group as it is does in the same simulation; of
KEDA's the threshold that then costs least.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from binwright.lab.commands.conditions import Circumstances
from binwright.lab.shadow.capacity import Capacity
from binwright.lab.shadow.costs import cheapest, cost_of, saves
from binwright.lab.shadow.past import GroupPast, NotComparable
from binwright.lab.simulation.outcome import MINUTE_S
from binwright.lab.simulation.policies.catalogue import AS_IS
from binwright.lab.simulation.run import run
from binwright.lab.simulation.scenario import Timing
from binwright.protocol.model import BytesPerSecond, PerSlot
from binwright.protocol.orders import SimulatedCost
from binwright.runtime.settings.group import Settings

LAG, SCALED, ASSIGNED = "lag", "scaled-group", "assigned-group"
LAG_S = (1.0, 5.0, 15.0, 60.0)
"""Lag thresholds of KEDA's rule that are tried, as seconds of a member's work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One group under each rule.

    Attributes:
        past: What it did.
        capacity: What a member is taken to sustain.
        own: As it is: the members that were recorded, and how timely so many would have read.
        rules: KEDA's rule, ScaledGroup, assigned -> what it costs; None: it reads less in time.
    """

    past: GroupPast
    capacity: Capacity
    own: SimulatedCost
    rules: Mapping[str, SimulatedCost | None]

    @property
    def best(self) -> SimulatedCost | None:
        """Return what is best of a ScaledGroup; None: neither form saves anything."""
        scaled, assigned = self.rules[SCALED], self.rules[ASSIGNED]
        every = [cost for cost in (scaled, assigned) if cost is not None and saves(cost, self.own)]
        return min(every, key=lambda cost: cost.replica_minutes, default=None)

    @property
    def saved(self) -> float:
        """Return the replica-minutes that the best saves."""
        return self.own.replica_minutes - self.best.replica_minutes if self.best else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What a comparison takes for granted.

    Attributes:
        settings: Of a simulation: intervals and windows.
        timing: How long things take.
        sla_s: Within which a record is to be read, seconds.
        target: Share of the records that is to be in time; None: as much as with the members that
            there were.
        capacities: Records/s of a member, by the group's name; "" is of all others.
        thresholds: KEDA's lagThreshold, by the group's name, where one is in use.
    """

    settings: Settings
    timing: Timing
    sla_s: float
    target: float | None = None
    capacities: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)

    def capacity(self, past: GroupPast) -> Capacity | None:
        """Return what a member sustains: as it is given, else as the recording shows it."""
        given = self.capacities.get(past.group, self.capacities.get(""))
        return past.capacity if given is None else Capacity(given, "given")

    def policies(self, past: GroupPast, capacity: Capacity) -> list[str]:
        """Return what is simulated for a group: as it is, then each rule with each setting."""
        threshold = self.thresholds.get(past.group)
        tried = [capacity.records_per_s * lag_s for lag_s in LAG_S]
        lags = tried if threshold is None else [threshold]
        return [
            AS_IS,
            *(f"{LAG}:{lag:g}" for lag in lags),
            *(SCALED, ASSIGNED),
        ]

    def run(self, past: GroupPast, capacity: Capacity) -> list[SimulatedCost]:
        """Return what `policies` cost the group's load, in their order."""
        circumstances = Circumstances(
            source=past.recorded,
            timing=self.timing,
            sla_s=self.sla_s,
            limits=PerSlot(BytesPerSecond(capacity.records_per_s)),  # records: see `Recorded`
            members=past.members,
        )
        policies = self.policies(past, capacity)
        runs = [circumstances.run(policy, "", self.settings) for policy in policies]
        return [cost_of(run(one), self.sla_s) for one in runs]

    def compare(
        self, past: GroupPast, capacity: Capacity, costs: Sequence[SimulatedCost]
    ) -> Comparison:
        """Return what came of `run`."""
        first, *others = costs
        # The members are known: not simulated is how long each took to come and go.
        own = replace(first, replica_minutes=past.members.seconds / MINUTE_S)
        within = own.within_sla if self.target is None else self.target
        rules = {
            rule: cheapest([cost for cost in others if cost.rule == rule], within)
            for rule in (LAG, SCALED, ASSIGNED)
        }
        return Comparison(past=past, capacity=capacity, own=own, rules=rules)


@dataclass(frozen=True, slots=True)
class GroupJob:
    """The simulations of one group, for a process of its own."""

    past: GroupPast
    capacity: Capacity
    assumptions: Assumptions

    def run(self) -> list[SimulatedCost]:
        """See `Assumptions.run`."""
        return self.assumptions.run(self.past, self.capacity)


def jobs_of(
    pasts: Iterable[GroupPast | NotComparable], assumptions: Assumptions
) -> tuple[list[GroupJob], list[NotComparable]]:
    """Return the groups that are simulated, and why the others are not."""
    jobs: list[GroupJob] = []
    others: list[NotComparable] = []
    for past in pasts:
        if isinstance(past, NotComparable):
            others.append(past)
        elif (capacity := assumptions.capacity(past)) is None:
            others.append(NotComparable(past.group, "it has read nothing"))
        elif max(past.members.values) == 1:
            others.append(NotComparable(past.group, "it never had more than one member"))
        else:
            jobs.append(GroupJob(past, capacity, assumptions))
    return jobs, others


def ranked(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Return those first whose best saves most replica-minutes in the same time."""
    return sorted(comparisons, key=lambda one: (-one.saved / one.past.members.end, one.past.group))
