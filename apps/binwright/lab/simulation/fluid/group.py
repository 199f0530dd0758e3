"""A group of consumers of a fluid load under a policy: starts, ends and moves take their time.

Consumers of a decision start first, all of them, while the others go on reading. Then partitions
change their owners: those that move, or all of them where a change stops the group. Consumers that
are not needed end after that, or before it in a group that stops: the rebalance is what moves their
partitions. Until all is done there is no further decision.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from math import floor

from binwright.lab.simulation.assignors import sticky_assignment
from binwright.lab.simulation.clock import TICKS, Clock
from binwright.lab.simulation.fluid.data_path import DataPath
from binwright.lab.simulation.outcome import ConsumerCounts, GroupChange
from binwright.lab.simulation.scenario import TICK_S, Scenario, first_overload
from binwright.protocol.model import Slot
from binwright.scaler.decide.policy import Decision, Observation, PartitionLoad, Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Cadence:
    """When a policy decides, and how its decisions are carried out."""

    interval_s: float  # from a decision (or the end of its change) to the next
    at_overload: bool = False  # decide at once when a consumer's measured load exceeds its limit
    stops_group: bool = False  # a change stops all partitions, as a rebalance does
    pause_s: float = 0.0  # how long partitions have no reader then: all of them, or moved ones


@dataclass(frozen=True, slots=True, kw_only=True)
class FluidPolicy:
    """A policy over a fluid load; what it does not look at is not computed.

    Attributes:
        policy: Replica i is slot i, the newest replicas end first; rates and lags are in bytes.
        cadence: When it decides, and how that is carried out.
        steers: Whether partitions that it does not assign stay with their consumers; else the
            group's own assignor spreads them evenly.
        sees_lags: Whether it looks at lags.
        sees_utilisation: Whether it looks at what consumers read over what they sustain.
        commit_s: Between commits; bytes that are read and not committed count as lag.
    """

    policy: Policy
    cadence: Cadence
    steers: bool = False
    sees_lags: bool = True
    sees_utilisation: bool = False
    commit_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Change:
    """The consumers that are to run, and who reads what."""

    owners: Mapping[int, Slot]  # of all partitions, by index
    slots: frozenset[Slot]  # also those that read nothing


class FluidGroup:
    """Carries out what a policy decides.

    Attributes:
        changes: Decisions that changed something, in order.
    """

    def __init__(
        self,
        scenario: Scenario,
        scaled: FluidPolicy,
        clock: Clock,
        data: DataPath,
        counts: ConsumerCounts,
    ) -> None:
        """Begin now, without consumers."""
        self.changes: list[GroupChange] = []
        self._scenario, self._clock = scenario, clock
        self._scaled, self._policy, self._cadence = scaled, scaled.policy, scaled.cadence
        self._data, self._counts = data, counts
        self._slots: frozenset[Slot] = frozenset()
        self._owners: dict[int, Slot] = {}
        self._changed_at: float | None = None
        self._read: dict[Slot, float] = {}  # bytes, when a policy looked last
        self._looked_at = clock.now
        clock.at(clock.now, self._decide, TICKS)

    # --- decisions -------------------------------------------------------------------------------

    def _decide(self) -> None:
        decision, self._policy = self._policy.decide(self._observation())
        wanted = self._wanted(decision)
        if wanted.owners == self._owners and wanted.slots == self._slots:
            self._plan_decision()
            return
        moves = sum(self._owners.get(i, slot) != slot for i, slot in wanted.owners.items())
        self.changes.append(GroupChange(self._clock.now, len(wanted.slots), moves, ""))
        self._start(wanted)

    def _observation(self) -> Observation:
        now, scaled, partitions = self._clock.now, self._scaled, self._scenario.load.partitions
        rates = self._scenario.measured_at(now)
        lags = self._data.lags(now) if scaled.sees_lags else [0.0] * len(rates)
        if late_s := scaled.commit_s / 2:
            lags = [lag + rate * late_s for rate, lag in zip(rates, lags, strict=True)]
        loads = map(PartitionLoad, rates, lags)
        return Observation(
            time_s=now,
            loads=dict(zip(partitions, loads, strict=True)),
            replicas=max(1, len(self._slots)),
            assignment={partitions[index]: slot for index, slot in self._owners.items()},
            scaled_s=self._changed_at,
            utilisation=self._utilisation(now) if scaled.sees_utilisation else (),
        )

    def _wanted(self, decision: Decision) -> _Change:
        """Return what a decision comes to: its consumers are those that own, then new ones."""
        load = self._scenario.load
        if decision.assignment is not None:
            owners = {load.index[p]: slot for p, slot in decision.assignment.items()}
        else:
            slots = [Slot(number) for number in range(decision.replicas)]
            most = len(load.partitions) if self._scaled.steers else None
            owners = sticky_assignment(self._owners, len(load.partitions), slots, most)
        owning = set(owners.values())
        unused = (Slot(number) for number in count() if Slot(number) not in owning)
        return _Change(
            owners, frozenset({*owning, *islice(unused, decision.replicas - len(owning))})
        )

    def _plan_decision(self) -> None:
        """Decide again after the interval, on the grid of ticks, or at an overload before that."""
        cadence, now, origin = self._cadence, self._clock.now, self._scenario.begin
        tick = origin + floor((now - origin) / TICK_S) * TICK_S
        due = tick + max(1, round(cadence.interval_s / TICK_S)) * TICK_S
        if cadence.at_overload:
            owned: dict[Slot, list[int]] = {}
            for index, slot in self._owners.items():
                owned.setdefault(slot, []).append(index)
            # A single partition above the limit is no reason: it cannot be placed better.
            shared = {slot: indices for slot, indices in owned.items() if len(indices) > 1}
            limits = {slot: self._scenario.config.limits.for_slot(slot) for slot in shared}
            due = first_overload(self._scenario, shared, limits, tick, due)
        self._clock.at(due, self._decide, TICKS)

    def _utilisation(self, now: float) -> list[float]:
        """Return each consumer's share of what it sustains, since a policy looked last."""
        passed, shares = now - self._looked_at, list[float]()
        self._looked_at = now
        for slot in sorted(self._slots):
            read = self._data.read_by(slot, now)
            if passed > 0:
                speed = (read - self._read.get(slot, 0.0)) / passed
                shares.append(speed / self._scenario.capacity(slot))
            self._read[slot] = read
        return shares

    # --- changes ---------------------------------------------------------------------------------

    def _start(self, wanted: _Change) -> None:
        new = sorted(wanted.slots - self._slots)
        for slot in new:
            self._counts.started(slot, self._clock.now)
        if wanted.slots != self._slots:
            self._changed_at = self._clock.now
        if self._cadence.stops_group:
            self._end(self._slots - wanted.slots)
        starts_s = self._scenario.timing.start_up_s if new else 0.0
        self._clock.at(self._clock.now + starts_s, partial(self._stop_reading, wanted, new))

    def _stop_reading(self, wanted: _Change, new: list[Slot]) -> None:
        now, cadence = self._clock.now, self._cadence
        for slot in new:
            self._counts.ready(slot, now)
            self._data.add_consumer(slot, self._scenario.capacity(slot), now)
            self._read[slot] = 0.0
        self._slots |= wanted.slots
        moving = [
            index
            for index, slot in wanted.owners.items()
            if cadence.stops_group or self._owners.get(index) != slot
        ]
        for index in moving:
            if index in self._owners:
                self._data.stop_reading(index, self._owners[index], now)
        self._clock.at(now + cadence.pause_s, partial(self._start_reading, wanted, moving))

    def _start_reading(self, wanted: _Change, moving: list[int]) -> None:
        for index in moving:
            self._data.start_reading(index, wanted.owners[index], self._clock.now)
        self._owners = dict(wanted.owners)
        self._end(self._slots - wanted.slots)
        self._slots = wanted.slots
        self._plan_decision()

    def _end(self, slots: frozenset[Slot]) -> None:
        for slot in sorted(slots):
            self._data.remove_consumer(slot, self._clock.now)
            self._counts.ended(slot, self._clock.now)
            self._read.pop(slot, None)
        self._slots -= slots
