"""A draft of an assignment, with cheap moves and undo, and what it costs."""

from array import array
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from itertools import compress
from math import erfc, exp, pi, sqrt
from operator import ne
from typing import cast

from binwright.packing.inputs import SlotCapacities
from binwright.packing.sticky.spare_index import ConsumersBySpare
from binwright.protocol.model import Slot

PENALTY = 0.1
"""The cost of any overload besides the rate that must leave, in capacities: more moves with it."""
NEGLIGIBLE = 0.0005
"""A cost that is too small to matter, in capacities."""
FAR = 4.0
"""With room for this many standard deviations the cost is taken to be 0."""
_ROOT_2 = sqrt(2)
_ROOT_2_PI = sqrt(2 * pi)
NO_SLOT = Slot(-1)
NO_PARTITION = -1


@dataclass(frozen=True, slots=True)
class SpareValue:
    """V of `docs/design/packing.md`, in bytes/s of moved rate.

    V(x) = E[(z - x)+] + PENALTY C P(z > x) at spare capacity x, where z, the change of a consumer's
    load, is normal with mean 0. V is decreasing and convex, so it favours an even spread.
    """

    deviation: float  # standard deviation of z, bytes/s, > 0
    penalty: float  # bytes/s
    ample_spare: float  # bytes/s, beyond which V is negligible

    @classmethod
    def for_deviation(cls, deviation: float, capacity: float) -> "SpareValue":
        """Return V for a capacity and a standard deviation of loads' changes, both bytes/s."""
        value = cls(deviation, PENALTY * capacity, 0.0)
        low, high = 0.0, FAR * deviation
        for _ in range(12):
            middle = (low + high) / 2
            if value(middle) > NEGLIGIBLE * capacity:
                low = middle
            else:
                high = middle
        return cls(deviation, PENALTY * capacity, high)

    def __call__(self, spare: float) -> float:
        """Return V at a spare capacity, bytes/s."""
        z = spare / self.deviation
        if z >= FAR:
            return 0.0
        tail = erfc(z / _ROOT_2) / 2
        density = exp(-z * z / 2) / _ROOT_2_PI
        return self.deviation * (density - z * tail) + self.penalty * tail

    def cost_of_taking(self, spare: float, rate: float) -> float:
        """Return the cost, bytes/s, of reducing a spare capacity by `rate`."""
        left = spare - rate
        return self(left) - self(spare) if left < FAR * self.deviation else 0.0


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of an assignment besides its moves, in bytes/s of moved rate."""

    price: float  # of a consumer
    value: SpareValue  # of a consumer's spare capacity


class Draft:
    """Partitions by number 0 to n - 1, and the consumers that hold them.

    Only partitions with a rate above 0 are in the draft. A partition's home is its current owner. A
    consumer is open while it holds a partition; it is offered while more may be moved to it.
    """

    def __init__(
        self,
        rates: Sequence[float],
        homes: Sequence[Slot],
        capacities: SlotCapacities,
        costs: Costs,
    ) -> None:
        # Arrays, for locality with a million partitions. Slots are few and dense.
        self.rates: Sequence[float] = array("d", rates)
        self.homes = cast("Sequence[Slot]", array("i", homes))
        self.owners = cast("MutableSequence[Slot]", self.homes[:])
        self.costs, self.capacities = costs, capacities
        slots = 1 + max(homes, default=NO_SLOT)
        # The rate of the partitions that are at home.
        kept = self.kept = array("d", [0.0]) * slots
        for slot, rate in zip(homes, rates, strict=True):
            if slot != NO_SLOT:
                kept[slot] += rate
        # Each consumer's partitions: linked lists in two arrays, made Python lists on demand. Most
        # are never needed, and lists for all took longest of all with a million partitions.
        first, after = array("i", [NO_PARTITION]) * slots, array("i", [NO_PARTITION]) * len(homes)
        for number in range(len(homes) - 1, -1, -1):
            if (slot := homes[number]) != NO_SLOT:
                after[number], first[slot] = first[slot], number
        self._first, self._after = first, after
        self._held: dict[Slot, list[int]] = {}
        self.spare = array("d", [capacities.default - load for load in kept])
        for slot in filter(slots.__gt__, capacities.named):
            self.spare[slot] = capacities.for_slot(slot) - self.kept[slot]
        self.offers = ConsumersBySpare((), self.spare.__getitem__)
        self.offered: set[Slot] = set()
        self._log: list[tuple[int, Slot]] = []
        self._lowest = 0
        self.search_steps = 0  # consumers that searches for room have visited

    # --- consumers -------------------------------------------------------------------------------

    @property
    def consumers(self) -> int:
        """Return the number of open consumers."""
        return len(self._first) - self._first.count(NO_PARTITION)

    @property
    def slots(self) -> Sequence[Slot]:
        """Return every slot up to the highest that is known, with free ones."""
        return cast("Sequence[Slot]", range(len(self.spare)))

    def held(self, slot: Slot) -> list[int]:
        """Return a consumer's partitions: those that are at home by number, then the others."""
        if (held := self._held.get(slot)) is None:
            held = self._held[slot] = []
            number, after = self._first[slot], self._after
            while number != NO_PARTITION:
                held.append(number)
                number = after[number]
        return held

    def offer_all(self, slots: Sequence[Slot]) -> None:
        """Offer these consumers, when none is offered yet."""
        self.offered = set(slots)
        self.offers = ConsumersBySpare(slots, self.spare.__getitem__)

    def offer(self, slot: Slot) -> None:
        """Allow moves to a consumer."""
        self.offered.add(slot)
        self.offers.add(self.spare[slot], slot)

    def withdraw(self, slot: Slot) -> None:
        """Allow no more moves to a consumer."""
        self.offered.remove(slot)
        self.offers.remove(self.spare[slot], slot)

    def open(self, number: int) -> None:
        """Open the lowest free consumer for an unassigned partition.

        Eq. 14 of the paper would prefer its home, but a home that evicted it is still open.
        """
        rate = self.rates[number]
        slot = self.free(rate)
        while slot >= len(self.spare):
            self._first.append(NO_PARTITION)
            self.kept.append(0.0)
            self.spare.append(0.0)
        self.spare[slot] = self.capacities.for_slot(slot)
        self.move(number, slot)
        if rate <= self.capacities.for_slot(slot):
            self.offer(slot)

    def with_spare(self, spare: float) -> list[Slot]:
        """Return the open consumers with at least that much room, bytes/s."""
        every = zip(self.slots, self._first, self.spare, strict=True)
        return [slot for slot, first, left in every if left >= spare and first != NO_PARTITION]

    def holds(self, slot: Slot) -> bool:
        """Whether a consumer holds a partition."""
        return slot < len(self._first) and self._first[slot] != NO_PARTITION

    def free(self, rate: float) -> Slot:
        """Return the lowest free slot, or a named one if only that carries `rate`, bytes/s."""
        below = range(self._lowest, len(self.spare))
        self._lowest = next((s for s in below if not self.holds(Slot(s))), len(self.spare))
        lowest, of = Slot(self._lowest), self.capacities.for_slot
        if rate <= of(lowest):
            return lowest
        free = (slot for slot in sorted(self.capacities.named) if not self.holds(slot))
        return next((slot for slot in free if rate <= of(slot)), lowest)

    # --- partitions ------------------------------------------------------------------------------

    def move(self, number: int, to: Slot) -> None:
        """Move a partition to a consumer, or to none (`NO_SLOT`)."""
        source, home, rate = self.owners[number], self.homes[number], self.rates[number]
        self._log.append((number, source))
        self.owners[number] = to
        if source != NO_SLOT:
            held = self.held(source)
            held.remove(number)
            self._first[source] = held[0] if held else NO_PARTITION
            self._set_spare(source, self.spare[source] + rate)
            if source == home:
                self.kept[home] -= rate
        if to != NO_SLOT:
            held = self.held(to)
            held.append(number)
            self._first[to] = held[0]
            self._set_spare(to, self.spare[to] - rate)
            if to == home:
                self.kept[home] += rate

    def release(self, slot: Slot, leaving: Sequence[int]) -> None:
        """Unassign partitions from their home, which is not offered; cannot be undone."""
        held, rates, at = self.held(slot), self.rates, self.owners
        spare, kept = self.spare[slot], self.kept[slot]
        for number in leaving:
            at[number] = NO_SLOT
            held.remove(number)
            spare += rates[number]
            kept -= rates[number]
        self.spare[slot], self.kept[slot] = spare, kept
        self._first[slot] = held[0] if held else NO_PARTITION

    def assign_elsewhere(self, number: int, margin: float) -> bool:
        """Assign a partition that its home has no room for to another consumer; cannot be undone.

        The consumer is the fullest with room for `margin` more, else the one with the most.

        Returns:
            False if the home has room, or no offered consumer does.
        """
        rate = self.rates[number]
        home = self.homes[number]
        if home in self.offered and self.spare[home] >= rate:
            return False
        if (offer := self.offers.take_best_fit(rate, margin)) is None:
            return False
        spare, slot = offer
        self.owners[number] = slot
        held = self.held(slot)
        held.append(number)
        self._first[slot] = held[0]
        self.spare[slot] = spare - rate
        self.offers.add(spare - rate, slot)
        return True

    def _set_spare(self, slot: Slot, spare: float) -> None:
        if slot in self.offered:
            self.offers.remove(self.spare[slot], slot)
            self.offers.add(spare, slot)
        self.spare[slot] = spare

    def moved(self, number: int) -> bool:
        """Whether a partition is not at home."""
        return self.owners[number] != self.homes[number]

    def move_cost(self, number: int, slot: Slot) -> float:
        """Return the cost, bytes/s, of a partition at a consumer: its rate, or 0 at home."""
        home = self.homes[number]
        return 0.0 if home in (slot, NO_SLOT) else self.rates[number]

    def displaced(self) -> list[int]:
        """Return, by number, the partitions that are not at home although the home is offered."""
        homes, every = self.homes, range(len(self.homes))
        moved = compress(every, map(ne, self.owners, homes))
        return [number for number in moved if homes[number] in self.offered]

    @property
    def checkpoint(self) -> int:
        """Return a mark for `undo_to`."""
        return len(self._log)

    def undo_to(self, mark: int) -> None:
        """Undo every move since a checkpoint."""
        while len(self._log) > mark:
            self.move(*self._log.pop())
            self._log.pop()

    def biggest_first(self, numbers: Sequence[int]) -> list[int]:
        """Return partitions by descending rate, equal ones by number."""
        return sorted(sorted(numbers), key=self.rates.__getitem__, reverse=True)
