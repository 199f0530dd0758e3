"""Closes a consumer that cannot be emptied alone, by repacking it with those of most room."""

from bisect import bisect_left, insort

from binwright.packing.sticky.draft import NO_SLOT, Draft
from binwright.protocol.model import Slot

FIRST = 4
"""How many other consumers the group has at first."""
GROWTH = 1.5
"""The factor by which the group grows when its partitions do not fit without the consumer."""


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


def repack(draft: Draft, slot: Slot, effort: Effort) -> dict[int, Slot] | None:
    """Repack a growing group of consumers until it carries everything without this one.

    With all consumers in the group this is best fit decreasing.

    Returns:
        Partition -> consumer for the whole group; None if no group fits.
    """
    lacking = draft.capacities.for_slot(slot) - draft.room[slot]
    group: list[Slot] = []
    numbers = list(draft.held(slot))
    size = FIRST
    for room, other in draft.offers.descending():
        if other == slot:
            continue
        group.append(other)
        numbers += draft.held(other)
        lacking -= room
        if len(group) >= size and lacking <= 0:
            if not effort.spend(len(numbers)):
                return None
            if (found := HomeFirst(draft, group, numbers).pack(lazy=False)) is not None:
                return found
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
        rooms: dict[Slot, float] = {other: of(other) for other in self._group}
        self._room = rooms
        closed = self._closed = dict.fromkeys(reversed(self._group)) if lazy else {}
        # `Effort` keeps groups small, for which a plain list is fastest.
        open_ = () if lazy else rooms.items()
        offers = self._offers = sorted([(room, slot) for slot, room in open_])
        rates, homes = self._draft.rates, self._draft.homes
        target: dict[int, Slot] = {}
        for number in self._draft.biggest_first(self._numbers):
            rate, slot = rates[number], homes[number]
            if slot in closed or rooms.get(slot, -1.0) < rate:
                if (other := self._host(slot, rate)) is None:
                    return None
                slot = other
            room = rooms[slot]
            left = rooms[slot] = room - rate
            del offers[bisect_left(offers, (room, slot))]
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
        if self._room[slot] < rate:
            return None
        del self._closed[slot]
        insort(self._offers, (self._room[slot], slot))
        return slot
