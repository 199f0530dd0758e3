"""Runs one workload of records through one group under one policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from binwright.lab.simulation.assignors import GroupAssignor, partition
from binwright.lab.simulation.clock import Clock
from binwright.lab.simulation.outcome import MINUTE_S, ConsumerCounts, CountSteps
from binwright.lab.simulation.records.arrivals import RecordLoad, bursts
from binwright.lab.simulation.records.consumers import Floats, Phase
from binwright.lab.simulation.records.group import GroupSettings, RecordGroup
from binwright.lab.simulation.records.rebalancing import EagerGroup, IncrementalGroup
from binwright.protocol.model import Slot
from binwright.scaler.decide.policy import Decision, Observation, PartitionLoad, Policy

LOOP_SPREAD = 0.3


class GroupScaler:
    """Looks at the group at intervals, and does what the policy decides.

    It knows the true rate of each second; lags are what is not committed when it looks.
    """

    def __init__(
        self, group: RecordGroup, assignor: GroupAssignor, policy: Policy, rng: np.random.Generator
    ) -> None:
        self.group, self.assignor, self.policy = group, assignor, policy
        self.rates: Sequence[float] = ()
        self.replicas = group.settings.first_replicas
        self.ups = self.downs = 0
        self._rng = rng
        self._scaled_s: float | None = None
        self._worked: dict[int, float] = {}
        self._looked_s = 0.0

    def start(self, until_s: float) -> None:
        """Begin, somewhere between two bursts, and go on until the end of the workload."""
        self._until_s = until_s
        self.group.clock.after(self._rng.uniform(0, self.group.settings.interval_s), self._tick)

    def _tick(self) -> None:
        clock, settings = self.group.clock, self.group.settings
        spread = self._rng.uniform(1 - LOOP_SPREAD, 1 + LOOP_SPREAD)
        pause_s = settings.interval_s + settings.overhead_s * spread
        utilisation = self._utilisation()
        if clock.now >= settings.warm_up_s:
            decision, self.policy = self.policy.decide(self._observation(utilisation))
            if self._carry_out(decision):
                pause_s += settings.scaling_s
        if clock.now + pause_s < self._until_s:
            clock.after(pause_s, self._tick)

    def _observation(self, utilisation: Sequence[float]) -> Observation:
        loads = {
            partition(one.number): PartitionLoad(rate, one.lag)
            for one, rate in zip(self.group.partitions, self.rates, strict=True)
        }
        slots = {member.number: Slot(i) for i, member in enumerate(self.group.members())}
        owners = {partition(one.number): one.owner for one in self.group.partitions}
        return Observation(
            time_s=self.group.clock.now,
            loads=loads,
            replicas=self.replicas,
            assignment={
                name: slots[owner.number]
                for name, owner in owners.items()
                if owner is not None and owner.number in slots
            },
            scaled_s=self._scaled_s,
            utilisation=utilisation,
        )

    def _utilisation(self) -> list[float]:
        """Return the share of the time since the last look that each reading member worked."""
        now = self.group.clock.now
        elapsed_s, self._looked_s = now - self._looked_s, now
        shares = []
        for consumer in self.group.members():
            worked_s = consumer.worked_s - max(0.0, consumer.batch_ends_s - now)
            before_s = self._worked.get(consumer.number)
            self._worked[consumer.number] = worked_s
            if consumer.phase is Phase.READING and before_s is not None and elapsed_s > 0:
                shares.append((worked_s - before_s) / elapsed_s)
        return shares

    def _carry_out(self, decision: Decision) -> bool:
        """Scale or reassign as decided; return whether the number of replicas changed."""
        self.assignor.rates = self.rates
        more = decision.replicas - self.replicas
        if decision.assignment is not None:
            self.assignor.plan = decision.assignment
            if not more:
                self.group.reassign()
        if not more:
            return False
        self.ups += max(0, more)
        self.downs += max(0, -more)
        self.replicas = decision.replicas
        self._scaled_s = self.group.clock.now
        settings = self.group.settings
        for _ in range(more):
            self.group.start(settings.start_s + self._rng.uniform(0, settings.start_spread_s))
        if more < 0:
            self.group.stop(-more)
        return True


DRAIN_S = 120.0
"""How long records are worked off after the last one arrived."""


@dataclass(frozen=True, slots=True)
class RecordOutcome:
    """What came of a run."""

    latencies_s: Floats  # of each record
    running: CountSteps  # replicas, from the order to the end
    group: RecordGroup
    scaler: GroupScaler
    duration_s: float

    @property
    def replica_minutes(self) -> float:
        """Return the time from each replica's order to its end, within the workload."""
        return self.running.seconds / MINUTE_S

    @property
    def logged_minutes(self) -> float:
        """Return the time from each replica's first record to its last, as the paper counts."""
        return (
            sum(
                max(0.0, min(c.last_s, self.duration_s) - c.first_s)
                for c in self.group.consumers
                if c.first_s is not None
            )
            / MINUTE_S
        )


def simulate(
    workload: RecordLoad, policy: Policy, settings: GroupSettings, seed: int
) -> RecordOutcome:
    """Run a workload to its end; the same arguments give the same result.

    Arrivals depend on the seed alone, so policies are compared on the same records.
    """
    arrivals, control = (np.random.default_rng([seed, stream]) for stream in range(2))
    clock, counts = Clock(0.0), ConsumerCounts()
    partitions = len(workload.shares)
    assignor = GroupAssignor(settings.assignor, partitions)
    kind = EagerGroup if settings.protocol == "eager" else IncrementalGroup
    group = kind(clock, counts, settings, partitions, assignor)
    scaler = GroupScaler(group, assignor, policy, control)
    shares = np.array(workload.shares)
    chunks = max(1, round(1 / settings.burst_s))

    def send(second: int) -> None:
        events = workload.events[second]
        scaler.rates = [events * share for share in workload.shares]
        parts = bursts(events, shares, chunks, arrivals, random=workload.random)
        for chunk, burst in enumerate(parts):
            clock.at(second + chunk / chunks, partial(group.arrive, burst))
        if second + 1 < len(workload.events):
            clock.at(second + 1, partial(send, second + 1))

    send(0)
    scaler.start(workload.duration_s)
    clock.run_until(workload.duration_s + DRAIN_S)
    end = workload.duration_s
    running = counts.running(0.0, end)
    return RecordOutcome(group.latencies.every(), running, group, scaler, end)
