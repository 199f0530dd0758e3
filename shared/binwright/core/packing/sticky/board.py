"""Who holds what while a plan is being made: cheap to change, cheap to take back."""

from array import array
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from typing import cast

from binwright.core.model import Slot
from binwright.core.packing.capacity import PerSlot
from binwright.core.packing.rooms import Rooms
from binwright.core.packing.sticky.value import Value

NOWHERE = Slot(-1)


@dataclass(frozen=True, slots=True)
class Costs:
    """What a plan is judged by, in bytes/s of moved speed."""

    price: float  # of a consumer
    value: Value  # of room


class Board:
    """Partitions by number 0 to n - 1, and the consumers that hold them.

    Only partitions with a rate above 0 are on the board. A consumer is open while it holds one; it
    is on offer while others may be given to it.
    """

    def __init__(
        self, rates: Sequence[float], homes: Sequence[Slot], capacities: PerSlot, costs: Costs
    ) -> None:
        # Arrays: of a million, what is looked at lies side by side. Slots are few and dense.
        self.rates: Sequence[float] = array("d", rates)
        self.homes = cast("Sequence[Slot]", array("i", homes))
        self.at = cast("MutableSequence[Slot]", self.homes[:])
        self.costs, self.capacities = costs, capacities
        slots = 1 + max(homes, default=NOWHERE)
        self.held: list[list[int]] = [[] for _ in range(slots)]
        for number, slot in enumerate(self.homes):
            if slot != NOWHERE:
                self.held[slot].append(number)
        self.kept = array("d", [0.0]) * slots  # the speed of those that were here and still are
        for slot, rate in zip(self.homes, self.rates, strict=True):
            if slot != NOWHERE:
                self.kept[slot] += rate
        self.room = array("d", [capacities.default - load for load in self.kept])
        for slot in filter(slots.__gt__, capacities.named):
            self.room[slot] = capacities.of(slot) - self.kept[slot]
        self.offers = Rooms((), self.room.__getitem__)
        self.offered: set[Slot] = set()
        self._log: list[tuple[int, Slot]] = []
        self._lowest = 0
        self.looks = 0  # how often a search for room has looked at a consumer

    # --- consumers -------------------------------------------------------------------------------

    @property
    def consumers(self) -> int:
        """Return how many hold something."""
        return sum(map(bool, self.held))

    @property
    def slots(self) -> Sequence[Slot]:
        """Return every slot up to the highest that is known, free ones too."""
        return cast("Sequence[Slot]", range(len(self.held)))

    def offer_all(self, slots: Sequence[Slot]) -> None:
        """Offer many consumers at once; nobody was on offer before."""
        self.offered = set(slots)
        self.offers = Rooms(slots, self.room.__getitem__)

    def offer(self, slot: Slot) -> None:
        """Let others be given to a consumer."""
        self.offered.add(slot)
        self.offers.add(self.room[slot], slot)

    def withdraw(self, slot: Slot) -> None:
        """Let nothing more be given to a consumer."""
        self.offered.remove(slot)
        self.offers.remove(self.room[slot], slot)

    def open(self, number: int) -> None:
        """Give a partition that nobody holds a consumer of its own, the lowest that is free.

        Eq. 14 of the paper would prefer its home; but whoever had to give it up kept others.
        """
        rate = self.rates[number]
        slot = self.free(rate)
        while slot >= len(self.held):
            self.held.append([])
            self.kept.append(0.0)
            self.room.append(0.0)
        self.room[slot] = self.capacities.of(slot)
        if rate <= self.room[slot]:
            self.offer(slot)
        self.shift(number, slot)

    def holds(self, slot: Slot) -> bool:
        """Whether a consumer holds anything."""
        return slot < len(self.held) and bool(self.held[slot])

    def free(self, rate: float) -> Slot:
        """Return the lowest free slot; with capacities that differ, one that carries the rate."""
        below = range(self._lowest, len(self.held))
        self._lowest = next((slot for slot in below if not self.held[slot]), len(self.held))
        lowest, of = Slot(self._lowest), self.capacities.of
        if rate <= of(lowest):
            return lowest
        free = (slot for slot in sorted(self.capacities.named) if not self.holds(slot))
        return next((slot for slot in free if rate <= of(slot)), lowest)

    # --- partitions ------------------------------------------------------------------------------

    def shift(self, number: int, to: Slot) -> None:
        """Put a partition elsewhere, or nowhere."""
        source, home, rate = self.at[number], self.homes[number], self.rates[number]
        self._log.append((number, source))
        self.at[number] = to
        if source != NOWHERE:
            self.held[source].remove(number)
            self._set_room(source, self.room[source] + rate)
            if source == home:
                self.kept[home] -= rate
        if to != NOWHERE:
            self.held[to].append(number)
            self._set_room(to, self.room[to] - rate)
            if to == home:
                self.kept[home] += rate

    def _set_room(self, slot: Slot, room: float) -> None:
        if slot in self.offered:
            self.offers.remove(self.room[slot], slot)
            self.offers.add(room, slot)
        self.room[slot] = room

    def moved(self, number: int) -> bool:
        """Whether a partition is not where it was."""
        return self.at[number] != self.homes[number]

    def toll(self, number: int, slot: Slot) -> float:
        """Return what it costs a partition to be at a consumer: its rate, unless that is home."""
        home = self.homes[number]
        return 0.0 if home in (slot, NOWHERE) else self.rates[number]

    @property
    def shifted(self) -> set[int]:
        """Return all that were put elsewhere at some time, and perhaps back again."""
        return {number for number, _ in self._log}

    @property
    def mark(self) -> int:
        """Return a point in time to go back to."""
        return len(self._log)

    def back(self, mark: int) -> None:
        """Undo every shift since then."""
        while len(self._log) > mark:
            self.shift(*self._log.pop())
            self._log.pop()

    # --- what others ask -------------------------------------------------------------------------

    def biggest_first(self, numbers: Sequence[int]) -> list[int]:
        """Return partitions by falling rate, equal ones by number."""
        return sorted(sorted(numbers), key=self.rates.__getitem__, reverse=True)
