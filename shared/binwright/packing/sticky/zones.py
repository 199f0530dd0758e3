"""Exchanges partitions between open consumers so that fewer bytes cross zones.

Runs after everything else: it opens no consumer, and fills none above its capacity. Each step
lowers price x crossing bytes/s by more than the bytes/s that it moves, so a group whose rates and
zones stay as they are comes to rest.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, islice
from operator import ne

from binwright.packing.sticky.draft import Draft
from binwright.packing.sticky.spare_index import ConsumersBySpare
from binwright.packing.zones import crosses
from binwright.protocol.model import Slot

MATES = 8
"""Partitions that want to go the other way, of about the same rate, that a swap is tried with."""
WIDE = 12
"""Consumers with the most room whose partitions are tried when none wants to go the other way."""
MAX_STEPS = 30_000
"""Partitions that are tried so in one decision; a large group has enough that want to swap."""
ROUNDING = 1e-9
"""A gain below this share of a capacity counts as none."""

Near = Sequence[frozenset[str]]
"""By partition, the zones in which it can be read; none: not known."""
Changes = tuple[tuple[int, Slot], ...]
"""Partitions and the consumers that they go to."""


def avoid_crossing(draft: Draft, near: Near, zone_of: Mapping[Slot, str], price: float) -> None:
    """Move and swap partitions where that pays.

    Args:
        draft: Solved; changed where that pays.
        near: Of the draft's partitions.
        zone_of: Slot -> its consumer's zone, if that is known.
        price: What a byte/s that crosses costs, in bytes/s that move; > 0. Up to 1, nothing moves
            for its zone alone: what moves anyway goes to a near consumer.
    """
    every = range(len(near))
    moved = compress(every, map(ne, draft.owners, draft.homes))
    # Once: what makes room for others later is seen by the next decision.
    _Search(draft, near, zone_of, price).run(every if price > 1 else moved)


class _Search:
    """The consumers of each zone by their room, and what crosses between which zones."""

    def __init__(self, draft: Draft, near: Near, zone_of: Mapping[Slot, str], price: float) -> None:
        self._draft, self._near, self._zone_of, self._price = draft, near, zone_of, price
        self._least_gain = ROUNDING * draft.capacities.default
        self._steps = 0
        self._mates: Mapping[tuple[str, str], Sequence[int]] = {}  # the slowest first
        of_zone: defaultdict[str, list[Slot]] = defaultdict(list)
        for slot in sorted(draft.offered & zone_of.keys()):
            of_zone[zone_of[slot]].append(slot)
        spare = draft.spare.__getitem__
        self._offers = {zone: ConsumersBySpare(some, spare) for zone, some in of_zone.items()}

    def run(self, numbers: Iterable[int]) -> None:
        """Try those of these partitions that cross, the fastest first."""
        draft, owners = self._draft, self._draft.owners
        crossing = draft.biggest_first([n for n in numbers if self._crosses(n, owners[n])])
        mates: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for number in reversed(crossing):
            here = self._zone_of[draft.owners[number]]
            for wanted in self._near[number]:
                mates[here, wanted].append(number)
        self._mates = mates
        for number in crossing:
            self._improve(number)

    def _crosses(self, number: int, slot: Slot) -> bool:
        return crosses(self._near[number], self._zone_of.get(slot))

    def _improve(self, number: int) -> None:
        """Move a partition to where it does not cross, if that pays."""
        if not self._crosses(number, self._draft.owners[number]):
            return  # it has taken part in a swap
        for ways in (self._room, self._swaps):
            gain, changes = max(ways(number), default=(0.0, ()))
            if gain > self._least_gain:
                self._apply(changes)
                return

    # --- ways ------------------------------------------------------------------------------------

    def _room(self, number: int) -> Iterator[tuple[float, Changes]]:
        """Yield the near consumers with room, one of each zone, with what it gains to go there."""
        draft, rate = self._draft, self._draft.rates[number]
        for offers in self._near_offers(number):
            # The fullest with ample room afterwards; without one, that with the most room.
            offer = offers.least(rate + draft.costs.value.ample_spare) or offers.last
            if offer is not None and offer[0] >= rate:
                changes = ((number, offer[1]),)
                yield self._gain(changes), changes

    def _swaps(self, number: int) -> Iterator[tuple[float, Changes]]:
        """Yield the swaps to be tried, with what each gains."""
        draft = self._draft
        here, rate = draft.owners[number], draft.rates[number]
        for other in chain(self._opposite(number), self._any_near(number)):
            there, smaller = draft.owners[other], draft.rates[other]
            if there != here and -draft.spare[here] <= rate - smaller <= draft.spare[there]:
                changes = (number, there), (other, here)
                yield self._gain(changes), changes

    def _opposite(self, number: int) -> Iterator[int]:
        """Yield partitions that cross the other way, of about the same rate."""
        draft = self._draft
        here, rate = self._zone_of[draft.owners[number]], draft.rates[number]
        for zone in sorted(self._near[number]):
            mates = self._mates.get((zone, here), ())
            middle = bisect_left(mates, rate, key=draft.rates.__getitem__)
            for other in mates[max(0, middle - MATES) : middle + MATES]:
                if self._zone_of.get(draft.owners[other]) == zone:  # still
                    yield other

    def _any_near(self, number: int) -> Iterator[int]:
        """Yield partitions of the near consumers that have the most room."""
        for offers in self._near_offers(number):
            for _, slot in islice(offers.descending(), WIDE):
                held = self._draft.held(slot)
                if self._steps + len(held) > MAX_STEPS:
                    return
                self._steps += len(held)
                yield from held

    def _near_offers(self, number: int) -> Iterator[ConsumersBySpare]:
        return (self._offers[zone] for zone in sorted(self._near[number]) if zone in self._offers)

    # --- what they gain --------------------------------------------------------------------------

    def _gain(self, changes: Changes) -> float:
        """Return what a partition's move gains, bytes/s, or with a second one's in exchange.

        Room that is better spread pays for no move: crossing bytes alone do. A partition that has
        moved anyway (or had no reader) moves no other, and undoes no move that such bytes pay for.
        """
        draft, first = self._draft, changes[0][0]
        uncrossed = moved = 0.0
        spare: defaultdict[Slot, float] = defaultdict(float)
        for number, to in changes:
            here, rate = draft.owners[number], draft.rates[number]
            change = self._crosses(number, here) - self._crosses(number, to)
            if change < 0 and draft.moved(first) and self._crosses(number, draft.homes[number]):
                return 0.0
            uncrossed += rate * change
            moved += draft.move_cost(number, to) - draft.move_cost(number, here)
            spare[here] += rate
            spare[to] -= rate
        if moved > 0 and draft.moved(first):
            return 0.0
        return self._price * uncrossed - moved - max(0.0, self._value_lost(spare.items()))

    def _value_lost(self, changed: Iterable[tuple[Slot, float]]) -> float:
        value, spare = self._draft.costs.value, self._draft.spare
        return sum([value(spare[slot] + more) - value(spare[slot]) for slot, more in changed])

    # --- carrying out ----------------------------------------------------------------------------

    def _apply(self, changes: Changes) -> None:
        draft = self._draft
        slots = {slot for number, to in changes for slot in (to, draft.owners[number])}
        indexed = sorted(slots & draft.offered)
        for slot in indexed:
            self._offers[self._zone_of[slot]].remove(draft.spare[slot], slot)
        for number, to in changes:
            draft.move(number, to)
        for slot in indexed:
            self._offers[self._zone_of[slot]].add(draft.spare[slot], slot)
