"""A draft of an assignment, with cheap moves and undo."""

from array import array
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from itertools import compress
from operator import ne
from typing import cast

from binwright.packing.capacity import SlotCapacities
from binwright.packing.spare_capacity import ConsumersByRoom
from binwright.packing.sticky.room_value import RoomValue
from binwright.protocol.model import Slot

NO_SLOT = Slot(-1)
NO_PARTITION = -1


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of an assignment besides its moves, in bytes/s of moved rate."""

    price: float  # of a consumer
    value: RoomValue  # of a consumer's room


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
        self.room = array("d", [capacities.default - load for load in kept])
        for slot in filter(slots.__gt__, capacities.named):
            self.room[slot] = capacities.for_slot(slot) - self.kept[slot]
        self.offers = ConsumersByRoom((), self.room.__getitem__)
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
        return cast("Sequence[Slot]", range(len(self.room)))

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
        self.offers = ConsumersByRoom(slots, self.room.__getitem__)

    def offer(self, slot: Slot) -> None:
        """Allow moves to a consumer."""
        self.offered.add(slot)
        self.offers.add(self.room[slot], slot)

    def withdraw(self, slot: Slot) -> None:
        """Allow no more moves to a consumer."""
        self.offered.remove(slot)
        self.offers.remove(self.room[slot], slot)

    def open(self, number: int) -> None:
        """Open the lowest free consumer for an unassigned partition.

        Eq. 14 of the paper would prefer its home, but a home that evicted it is still open.
        """
        rate = self.rates[number]
        slot = self.free(rate)
        while slot >= len(self.room):
            self._first.append(NO_PARTITION)
            self.kept.append(0.0)
            self.room.append(0.0)
        self.room[slot] = self.capacities.for_slot(slot)
        self.move(number, slot)
        if rate <= self.capacities.for_slot(slot):
            self.offer(slot)

    def with_room(self, room: float) -> list[Slot]:
        """Return the open consumers with at least that much room, bytes/s."""
        every = zip(self.slots, self._first, self.room, strict=True)
        return [slot for slot, first, left in every if left >= room and first != NO_PARTITION]

    def holds(self, slot: Slot) -> bool:
        """Whether a consumer holds a partition."""
        return slot < len(self._first) and self._first[slot] != NO_PARTITION

    def free(self, rate: float) -> Slot:
        """Return the lowest free slot, or a named one if only that carries `rate`, bytes/s."""
        below = range(self._lowest, len(self.room))
        self._lowest = next((s for s in below if not self.holds(Slot(s))), len(self.room))
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
            self._set_room(source, self.room[source] + rate)
            if source == home:
                self.kept[home] -= rate
        if to != NO_SLOT:
            held = self.held(to)
            held.append(number)
            self._first[to] = held[0]
            self._set_room(to, self.room[to] - rate)
            if to == home:
                self.kept[home] += rate

    def release(self, slot: Slot, leaving: Sequence[int]) -> None:
        """Unassign partitions from their home, which is not offered; cannot be undone."""
        held, rates, at = self.held(slot), self.rates, self.owners
        room, kept = self.room[slot], self.kept[slot]
        for number in leaving:
            at[number] = NO_SLOT
            held.remove(number)
            room += rates[number]
            kept -= rates[number]
        self.room[slot], self.kept[slot] = room, kept
        self._first[slot] = held[0] if held else NO_PARTITION

    def assign_elsewhere(self, number: int, spare: float) -> bool:
        """Assign a partition that its home has no room for to another consumer; cannot be undone.

        The consumer is the fullest with room for `spare` more, or else that with the most room.

        Returns:
            False if the home has room, or no offered consumer does.
        """
        rate = self.rates[number]
        home = self.homes[number]
        if home in self.offered and self.room[home] >= rate:
            return False
        if (found := self.offers.take_best_fit(rate, spare)) is None:
            return False
        room, slot = found
        self.owners[number] = slot
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
