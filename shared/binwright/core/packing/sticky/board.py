"""Who holds what while a plan is being made: cheap to change, cheap to take back."""

from array import array
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import ne
from typing import cast

from binwright.core.model import Slot
from binwright.core.packing.capacity import PerSlot
from binwright.core.packing.rooms import Rooms
from binwright.core.packing.sticky.value import Value

NOWHERE = Slot(-1)
NOBODY = -1  # no partition's number


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
        # The speed of those that were here and still are.
        kept = self.kept = array("d", [0.0]) * slots
        for slot, rate in zip(homes, rates, strict=True):
            if slot != NOWHERE:
                kept[slot] += rate
        # What each consumer holds: chains of numbers in two arrays, until its list is asked for.
        # Nobody does of most, and lists for all are what took longest of a million partitions.
        first, after = array("i", [NOBODY]) * slots, array("i", [NOBODY]) * len(homes)
        for number in range(len(homes) - 1, -1, -1):
            if (slot := homes[number]) != NOWHERE:
                after[number], first[slot] = first[slot], number
        self._first, self._after = first, after
        self._held: dict[Slot, list[int]] = {}
        self.room = array("d", [capacities.default - load for load in kept])
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
        return len(self._first) - self._first.count(NOBODY)

    @property
    def slots(self) -> Sequence[Slot]:
        """Return every slot up to the highest that is known, free ones too."""
        return cast("Sequence[Slot]", range(len(self.room)))

    def held(self, slot: Slot) -> list[int]:
        """Return what a consumer holds: first, by number, what it always did, then what came."""
        if (held := self._held.get(slot)) is None:
            held = self._held[slot] = []
            number, after = self._first[slot], self._after
            while number != NOBODY:
                held.append(number)
                number = after[number]
        return held

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
        while slot >= len(self.room):
            self._first.append(NOBODY)
            self.kept.append(0.0)
            self.room.append(0.0)
        self.room[slot] = self.capacities.of(slot)
        self.shift(number, slot)
        if rate <= self.capacities.of(slot):
            self.offer(slot)

    def holding(self, room: float) -> list[Slot]:
        """Return who holds something and has at least that much room."""
        every = zip(self.slots, self._first, self.room, strict=True)
        return [slot for slot, first, left in every if left >= room and first != NOBODY]

    def holds(self, slot: Slot) -> bool:
        """Whether a consumer holds anything."""
        return slot < len(self._first) and self._first[slot] != NOBODY

    def free(self, rate: float) -> Slot:
        """Return the lowest free slot; with capacities that differ, one that carries the rate."""
        below = range(self._lowest, len(self.room))
        self._lowest = next((s for s in below if not self.holds(Slot(s))), len(self.room))
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
            held = self.held(source)
            held.remove(number)
            self._first[source] = held[0] if held else NOBODY
            self._set_room(source, self.room[source] + rate)
            if source == home:
                self.kept[home] -= rate
        if to != NOWHERE:
            held = self.held(to)
            held.append(number)
            self._first[to] = held[0]
            self._set_room(to, self.room[to] - rate)
            if to == home:
                self.kept[home] += rate

    def release(self, slot: Slot, leaving: Sequence[int]) -> None:
        """Take from a consumer that is not on offer what it was always holding, for good."""
        held, rates, at = self.held(slot), self.rates, self.at
        room, kept = self.room[slot], self.kept[slot]
        for number in leaving:
            at[number] = NOWHERE
            held.remove(number)
            room += rates[number]
            kept -= rates[number]
        self.room[slot], self.kept[slot] = room, kept
        self._first[slot] = held[0] if held else NOBODY

    def settle(self, number: int, spare: float) -> bool:
        """Give a partition that nobody holds, and that home has no room for, to another for good.

        Whether one is on offer that has room for it. The fullest with so much to spare gets it, or
        else the roomiest.
        """
        rate = self.rates[number]
        home = self.homes[number]
        if home in self.offered and self.room[home] >= rate:
            return False
        if (found := self.offers.take(rate, spare)) is None:
            return False
        room, slot = found
        self.at[number] = slot
        held = self.held(slot)
        held.append(number)
        self._first[slot] = held[0]
        self.room[slot] = room - rate
        self.offers.add(room - rate, slot)
        return True

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

    def away(self) -> list[int]:
        """Return, by number, all that are not where they were, though that is on offer."""
        homes, every = self.homes, range(len(self.homes))
        moved = compress(every, map(ne, self.at, homes))
        return [number for number in moved if homes[number] in self.offered]

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
