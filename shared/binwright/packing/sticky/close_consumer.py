"""Closes consumers where that costs less than their price."""

from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from binwright.packing.sticky.draft import NO_SLOT, Draft
from binwright.packing.sticky.place import place
from binwright.protocol.model import Slot

FIRST = 4
"""How many other consumers the group has at first."""
GROWTH = 1.5
"""The factor by which the group grows when its partitions do not fit without the consumer."""
FAILURES = 5
"""The search for a consumer to empty ends after at most this many failures in a row."""
REPACKED = 4
"""How many consumers are tried by repacking at a time; the best result is taken."""
EFFORT = 6_000
"""How many partitions may be repacked in one decision, with failed tries."""
SMALL = 150
"""One more failure is allowed per this many consumers, and the effort for repacking is divided by
the same number: in a large group one consumer less matters less."""


class Effort:
    """A budget of partitions to repack."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, amount: int) -> bool:
        """Subtract `amount` if that much is left; whether it was."""
        if amount > self.left:
            return False
        self.left -= amount
        return True


@dataclass(frozen=True, slots=True)
class Closing:
    """A way to close one consumer."""

    gain: float  # its value less the cost of the moves, bytes/s
    slot: Slot  # the consumer to close
    changes: Mapping[int, Slot]  # partition -> consumer


def close_consumers(draft: Draft, surplus: int) -> int:
    """Close consumers while that pays; return how many.

    Args:
        draft: Updated for every closed consumer.
        surplus: How many consumers there are above the lower bound: no more can be closed.
    """
    if surplus <= 0:
        return 0
    # Sorted once: the moves made meanwhile change the order little.
    cheapest = sorted(sorted(draft.offered), key=draft.kept.__getitem__)
    times = 1 + len(cheapest) // SMALL
    # In a small group, repacking costs less than emptying the next best consumer.
    saved = _sweep(draft, cheapest, surplus, min(FAILURES, times))
    effort = Effort(EFFORT // times)
    while saved < surplus and (closing := _repacking(draft, cheapest, effort)) is not None:
        draft.withdraw(closing.slot)
        for number, slot in closing.changes.items():
            draft.move(number, slot)
        saved += 1
    return saved


def _worth(draft: Draft, slot: Slot) -> float:
    """Return the value of closing a consumer, bytes/s: its price, and the cost of its room."""
    return draft.costs.price + draft.costs.value(draft.spare[slot])


def _sweep(draft: Draft, cheapest: list[Slot], surplus: int, patience: int) -> int:
    """Empty one consumer after another until `patience` fail in a row; return how many."""
    saved = failures = 0
    for slot in filter(draft.offered.__contains__, cheapest):
        if saved == surplus or failures == patience:
            break
        if _empty(draft, slot):
            saved, failures = saved + 1, 0
        else:
            failures += 1
    return saved


def _empty(draft: Draft, slot: Slot) -> bool:
    """Move all partitions of a consumer elsewhere if that costs less than closing it is worth."""
    mark, left = draft.checkpoint, _worth(draft, slot)
    draft.withdraw(slot)
    for number in draft.biggest_first(draft.held(slot)):
        cost = place(draft, number, left)
        if cost is None:
            draft.undo_to(mark)
            draft.offer(slot)
            return False
        left -= cost
    return True


def _repacking(draft: Draft, cheapest: list[Slot], effort: Effort) -> Closing | None:
    """Return the best way to close one of the first few consumers by repacking; None: no way."""
    tried = islice(filter(draft.offered.__contains__, cheapest), REPACKED)
    closings = [_repacked(draft, slot, effort) for slot in tried]
    return max(filter(None, closings), key=lambda closing: closing.gain, default=None)


def _repacked(draft: Draft, slot: Slot, effort: Effort) -> Closing | None:
    if (changes := repack(draft, slot, effort)) is None:
        return None
    spent = sum(
        [draft.move_cost(n, to) - draft.move_cost(n, draft.owners[n]) for n, to in changes.items()]
    )
    gain = _worth(draft, slot) - spent
    return Closing(gain, slot, changes) if gain > 0 else None


# --- closing one that cannot be emptied alone, by repacking it with those of most room ----------


def repack(draft: Draft, slot: Slot, effort: Effort) -> dict[int, Slot] | None:
    """Repack a growing group of consumers until it carries everything without this one.

    With all consumers in the group this is best fit decreasing.

    Returns:
        Partition -> consumer for the whole group; None if no group fits.
    """
    lacking = draft.capacities.for_slot(slot) - draft.spare[slot]
    group: list[Slot] = []
    numbers = list(draft.held(slot))
    size = FIRST
    for spare, other in draft.offers.descending():
        if other == slot:
            continue
        group.append(other)
        numbers += draft.held(other)
        lacking -= spare
        if len(group) >= size and lacking <= 0:
            if not effort.spend(len(numbers)):
                return None
            if (target := HomeFirst(draft, group, numbers).pack(lazy=False)) is not None:
                return target
            size = max(size + 1, int(size * GROWTH))
    if lacking > 0 or not effort.spend(len(numbers)):
        return None
    return HomeFirst(draft, group, numbers).pack(lazy=True)


class HomeFirst:
    """Best fit decreasing that puts a partition into its home first, if it fits there.

    Lazy: a consumer is opened only for a partition that fits into no open one, preferably its home.
    That packs tighter and moves more.
    """

    def __init__(self, draft: Draft, group: list[Slot], numbers: list[int]) -> None:
        """Prepare to pack partitions, by number, into a group of consumers."""
        self._draft, self._group, self._numbers = draft, group, numbers

    def pack(self, *, lazy: bool) -> dict[int, Slot] | None:
        """Return partition -> consumer; None if they do not fit."""
        of = self._draft.capacities.for_slot
        spares: dict[Slot, float] = {other: of(other) for other in self._group}
        self._spare = spares
        closed = self._closed = dict.fromkeys(reversed(self._group)) if lazy else {}
        # `Effort` keeps groups small, for which a plain list is fastest.
        open_ = () if lazy else spares.items()
        offers = self._offers = sorted([(spare, slot) for slot, spare in open_])
        rates, homes = self._draft.rates, self._draft.homes
        target: dict[int, Slot] = {}
        for number in self._draft.biggest_first(self._numbers):
            rate, slot = rates[number], homes[number]
            if slot in closed or spares.get(slot, -1.0) < rate:
                if (other := self._host(slot, rate)) is None:
                    return None
                slot = other
            spare = spares[slot]
            left = spares[slot] = spare - rate
            del offers[bisect_left(offers, (spare, slot))]
            insort(offers, (left, slot))
            target[number] = slot
        return target

    def _host(self, home: Slot, rate: float) -> Slot | None:
        """Return another consumer than an open home, if there is one with room."""
        if (least := bisect_left(self._offers, (rate, NO_SLOT))) < len(self._offers):
            return self._offers[least][1]
        if not self._closed:
            return None
        slot = home if home in self._closed else next(reversed(self._closed))
        if self._spare[slot] < rate:
            return None
        del self._closed[slot]
        insort(self._offers, (self._spare[slot], slot))
        return slot
