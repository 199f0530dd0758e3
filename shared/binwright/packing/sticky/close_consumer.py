"""Closes consumers where that costs less than their price."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from binwright.packing.sticky.draft import Draft
from binwright.packing.sticky.ejection_chain import place
from binwright.packing.sticky.repack import Effort, repack
from binwright.protocol.model import Slot

FAILURES = 5
"""The search for a consumer to empty ends after at most this many failures in a row."""
REPACKED = 4
"""How many consumers are tried by repacking at a time; the best result is taken."""
EFFORT = 6_000
"""How many partitions may be repacked in one decision, with failed tries."""
SMALL = 150
"""One more failure is allowed per this many consumers, and the effort for repacking is divided by
the same number: in a large group one consumer less matters less."""


@dataclass(frozen=True, slots=True)
class Saving:
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
    while saved < surplus and (found := _repacking(draft, cheapest, effort)) is not None:
        draft.withdraw(found.slot)
        for number, slot in found.changes.items():
            draft.move(number, slot)
        saved += 1
    return saved


def _worth(draft: Draft, slot: Slot) -> float:
    """Return the value of closing a consumer, bytes/s: its price, and the cost of its room."""
    return draft.costs.price + draft.costs.value(draft.room[slot])


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


def _repacking(draft: Draft, cheapest: list[Slot], effort: Effort) -> Saving | None:
    """Return the best way to close one of the first few consumers by repacking; None: no way."""
    tried = islice(filter(draft.offered.__contains__, cheapest), REPACKED)
    savings = [_repacked(draft, slot, effort) for slot in tried]
    return max(filter(None, savings), key=lambda saving: saving.gain, default=None)


def _repacked(draft: Draft, slot: Slot, effort: Effort) -> Saving | None:
    if (changes := repack(draft, slot, effort)) is None:
        return None
    spent = sum(
        [draft.move_cost(n, to) - draft.move_cost(n, draft.owners[n]) for n, to in changes.items()]
    )
    gain = _worth(draft, slot) - spent
    return Saving(gain, slot, changes) if gain > 0 else None
