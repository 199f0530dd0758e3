"""A group of consumers under a policy: starts, ends and moves take their time.

Consumers of a decision start first, all of them, while the others go on reading. Then partitions
change their owners: those that move, or all of them where a change stops the group. Consumers that
are not needed end after that, or before it in a group that stops: the rebalance is what moves their
partitions. Until all is done there is no further decision.
"""

from functools import partial
from math import floor

from binwright.lab.simulation.clock import TICKS, Clock
from binwright.lab.simulation.costs import Costs
from binwright.lab.simulation.flow.data_path import DataPath
from binwright.lab.simulation.outcome import Change
from binwright.lab.simulation.overload import first_overload
from binwright.lab.simulation.policies.interface import Policy, Seen, Target
from binwright.lab.simulation.scenario import TICK_S, Scenario
from binwright.protocol.model import Slot


class PolicyGroup:
    """Carries out what a policy decides.

    Attributes:
        changes: Decisions that changed something, in order.
    """

    def __init__(
        self, scenario: Scenario, policy: Policy, clock: Clock, data: DataPath, costs: Costs
    ) -> None:
        """Begin now, without consumers."""
        self.changes: list[Change] = []
        self._scenario, self._policy, self._clock = scenario, policy, clock
        self._data, self._costs = data, costs
        self._slots: frozenset[Slot] = frozenset()
        self._owners: dict[int, Slot] = {}
        self._changed_at: float | None = None
        self._read: dict[Slot, float] = {}  # bytes, when a policy looked last
        self._looked_at = clock.now
        clock.at(clock.now, self._decide, TICKS)

    # --- decisions -------------------------------------------------------------------------------

    def _decide(self) -> None:
        now = self._clock.now
        rates = self._scenario.measured_at(now)
        seen = Seen(
            now=now,
            rates=rates,
            lags=partial(self._data.lags, now),
            busy=partial(self._busy, now),
            owners=self._owners,
            slots=sorted(self._slots),
            changed_at=self._changed_at,
        )
        target = self._policy.decide(seen)
        if target is None or (target.owners == self._owners and target.slots == self._slots):
            self._plan_decision()
            return
        moves = sum(self._owners.get(i, slot) != slot for i, slot in target.owners.items())
        self.changes.append(Change(now, len(target.slots), moves, ""))
        self._start(target)

    def _plan_decision(self) -> None:
        """Decide again after the interval, on the grid of ticks, or at an overload before that."""
        manner, now, origin = self._policy.manner, self._clock.now, self._scenario.begin
        tick = origin + floor((now - origin) / TICK_S) * TICK_S
        due = tick + max(1, round(manner.interval_s / TICK_S)) * TICK_S
        if manner.at_overload:
            owned: dict[Slot, list[int]] = {}
            for index, slot in self._owners.items():
                owned.setdefault(slot, []).append(index)
            # A single partition above the limit is no reason: it cannot be placed better.
            shared = {slot: indices for slot, indices in owned.items() if len(indices) > 1}
            limits = {slot: self._scenario.config.limits.for_slot(slot) for slot in shared}
            due = first_overload(self._scenario, shared, limits, tick, due)
        self._clock.at(due, self._decide, TICKS)

    def _busy(self, now: float) -> list[float]:
        """Return each consumer's share of what it sustains, since a policy looked last."""
        passed, found = now - self._looked_at, list[float]()
        self._looked_at = now
        for slot in sorted(self._slots):
            read = self._data.read_by(slot, now)
            if passed > 0:
                speed = (read - self._read.get(slot, 0.0)) / passed
                found.append(speed / self._scenario.capacity(slot))
            self._read[slot] = read
        return found

    # --- changes ---------------------------------------------------------------------------------

    def _start(self, target: Target) -> None:
        new = sorted(target.slots - self._slots)
        for slot in new:
            self._costs.started(slot, self._clock.now)
        if target.slots != self._slots:
            self._changed_at = self._clock.now
        if self._policy.manner.stops_group:
            self._end(self._slots - target.slots)
        starts_s = self._scenario.timing.start_up_s if new else 0.0
        self._clock.at(self._clock.now + starts_s, partial(self._stop_reading, target, new))

    def _stop_reading(self, target: Target, new: list[Slot]) -> None:
        now, manner = self._clock.now, self._policy.manner
        for slot in new:
            self._costs.ready(slot, now)
            self._data.add_consumer(slot, self._scenario.capacity(slot), now)
            self._read[slot] = 0.0
        self._slots |= target.slots
        moving = [
            index
            for index, slot in target.owners.items()
            if manner.stops_group or self._owners.get(index) != slot
        ]
        for index in moving:
            if index in self._owners:
                self._data.stop_reading(index, self._owners[index], now)
        self._clock.at(now + manner.pause_s, partial(self._start_reading, target, moving))

    def _start_reading(self, target: Target, moving: list[int]) -> None:
        for index in moving:
            self._data.start_reading(index, target.owners[index], self._clock.now)
        self._owners = dict(target.owners)
        self._end(self._slots - target.slots)
        self._slots = target.slots
        self._plan_decision()

    def _end(self, slots: frozenset[Slot]) -> None:
        for slot in sorted(slots):
            self._data.remove_consumer(slot, self._clock.now)
            self._costs.ended(slot, self._clock.now)
            self._read.pop(slot, None)
        self._slots -= slots
