"""The controller: observes the group at intervals, and does what the policy decides."""

from collections.abc import Sequence

import numpy as np

from binwright.lab.slo.simulator.assignor import GroupAssignor, partition
from binwright.lab.slo.simulator.consumer import Phase
from binwright.lab.slo.simulator.group import Group
from binwright.protocol.model import Slot
from binwright.scaler.decide.policy import Decision, Observation, PartitionLoad, Policy

LOOP_SPREAD = 0.3


class Controller:
    """Knows the true rate of each second; lags are what is not committed when it looks."""

    def __init__(
        self, group: Group, assignor: GroupAssignor, policy: Policy, rng: np.random.Generator
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
        self.group.timeline.after(self._rng.uniform(0, self.group.settings.interval_s), self._tick)

    def _tick(self) -> None:
        timeline, settings = self.group.timeline, self.group.settings
        spread = self._rng.uniform(1 - LOOP_SPREAD, 1 + LOOP_SPREAD)
        pause_s = settings.interval_s + settings.overhead_s * spread
        utilisation = self._utilisation()
        if timeline.now >= settings.warm_up_s:
            decision, self.policy = self.policy.decide(self._observation(utilisation))
            if self._carry_out(decision):
                pause_s += settings.scaling_s
        if timeline.now + pause_s < self._until_s:
            timeline.after(pause_s, self._tick)

    def _observation(self, utilisation: Sequence[float]) -> Observation:
        loads = {
            partition(one.number): PartitionLoad(rate, one.lag)
            for one, rate in zip(self.group.partitions, self.rates, strict=True)
        }
        slots = {member.number: Slot(i) for i, member in enumerate(self.group.members())}
        owners = {partition(one.number): one.owner for one in self.group.partitions}
        return Observation(
            time_s=self.group.timeline.now,
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
        now = self.group.timeline.now
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
        self._scaled_s = self.group.timeline.now
        settings = self.group.settings
        for _ in range(more):
            self.group.start(settings.start_s + self._rng.uniform(0, settings.start_spread_s))
        if more < 0:
            self.group.stop(-more)
        return True
