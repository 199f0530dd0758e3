"""Who holds what while a plan is being made: cheap to change, cheap to take back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from binwright.core.model import Slot
from binwright.core.packing.capacity import PerSlot
from binwright.core.packing.ordered import Ordered
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
        self.rates, self.homes, self.costs = rates, homes, costs
        self.capacities = capacities
        self.at: list[Slot] = list(homes)
        self.held: dict[Slot, list[int]] = {}
        for number, slot in enumerate(homes):
            if slot != NOWHERE:
                self.held.setdefault(slot, []).append(number)
        self.room: dict[Slot, float] = {
            slot: capacities.of(slot) - sum([rates[number] for number in held])
            for slot, held in self.held.items()
        }
        self.offers: Ordered[tuple[float, Slot]] = Ordered()
        self.offered: set[Slot] = set()
        self._log: list[tuple[int, Slot]] = []
        self._lowest = 0
        self.looks = 0  # how often a search for room has looked at a consumer

    # --- consumers -------------------------------------------------------------------------------

    @property
    def consumers(self) -> int:
        """Return how many hold something."""
        return sum(map(bool, self.held.values()))

    def offer_all(self, slots: Iterable[Slot]) -> None:
        """Offer many consumers at once; nobody was on offer before."""
        self.offered = set(slots)
        self.offers = Ordered((self.room[slot], slot) for slot in self.offered)

    def offer(self, slot: Slot) -> None:
        """Let others be given to a consumer."""
        self.offered.add(slot)
        self.offers.add((self.room[slot], slot))

    def withdraw(self, slot: Slot) -> None:
        """Let nothing more be given to a consumer."""
        self.offered.remove(slot)
        self.offers.remove((self.room[slot], slot))

    def open(self, number: int) -> None:
        """Give a partition that nobody holds a consumer of its own, the lowest that is free.

        Eq. 14 of the paper would prefer its home; but whoever had to give it up kept others.
        """
        rate = self.rates[number]
        slot = self.free(rate)
        self.held.setdefault(slot, [])
        self.room[slot] = self.capacities.of(slot)
        if rate <= self.room[slot]:
            self.offer(slot)
        self.shift(number, slot)

    def free(self, rate: float) -> Slot:
        """Return the lowest free slot; with capacities that differ, one that carries the rate."""
        while self.held.get(Slot(self._lowest)):
            self._lowest += 1
        free = (slot for slot in sorted(self.capacities.named) if not self.held.get(slot))
        lowest = Slot(self._lowest)
        if rate <= self.capacities.of(lowest):
            return lowest
        return next((slot for slot in free if rate <= self.capacities.of(slot)), lowest)

    # --- partitions ------------------------------------------------------------------------------

    def shift(self, number: int, to: Slot) -> None:
        """Put a partition elsewhere, or nowhere."""
        source, rate = self.at[number], self.rates[number]
        self._log.append((number, source))
        self.at[number] = to
        if source != NOWHERE:
            self.held[source].remove(number)
            self._make_room(source, rate)
        if to != NOWHERE:
            self.held[to].append(number)
            self._make_room(to, -rate)

    def _make_room(self, slot: Slot, more: float) -> None:
        room = self.room[slot]
        self.room[slot] = room + more
        if slot in self.offered:
            self.offers.remove((room, slot))
            self.offers.add((room + more, slot))

    def moved(self, number: int) -> bool:
        """Whether a partition is not where it was."""
        return self.at[number] != self.homes[number]

    def toll(self, number: int, slot: Slot) -> float:
        """Return what it costs a partition to be at a consumer: its rate, unless that is home."""
        home = self.homes[number]
        return 0.0 if home in (slot, NOWHERE) else self.rates[number]

    def kept(self, slot: Slot) -> float:
        """Return the speed of those that were here and still are."""
        return sum([self.rates[number] for number in self.held[slot] if not self.moved(number)])

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
