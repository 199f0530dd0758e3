"""The order in which an algorithm takes the partitions, and the slot that a new consumer gets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from binwright.protocol.model import Rates, Slot, TopicPartition


class Order(Protocol):
    """A total order of partitions; the same rates give the same order."""

    def __call__(self, rates: Rates, /) -> Sequence[TopicPartition]:
        """Return the partitions of `rates` in order."""


def descending(rates: Rates, among: Iterable[TopicPartition] | None = None) -> list[TopicPartition]:
    """Return partitions by falling rate, equal ones by partition: all, or those in `among`."""
    chosen = rates if among is None else among
    # Two stable sorts of a nearly sorted list are faster than one by pairs.
    return sorted(sorted(chosen), key=rates.__getitem__, reverse=True)


@dataclass(frozen=True, slots=True)
class Shuffled:
    """A random order given by a seed, for the paper's online algorithms.

    The paper shuffles for each measurement: use a seed for each.
    """

    seed: int

    def __call__(self, rates: Rates) -> list[TopicPartition]:
        """Return the partitions of `rates` in an order that depends only on the seed."""
        return sorted(sorted(rates), key=self._digest)

    def _digest(self, partition: TopicPartition) -> bytes:
        return blake2b(f"{self.seed}/{partition}".encode(), digest_size=8).digest()


class OpenSlots:
    """The slots that are open (eq. 14 of the paper, f and h)."""

    def __init__(self) -> None:
        self.taken: set[Slot] = set()
        self._lowest = 0

    def open(self, preferred: Slot | None) -> Slot:
        """Open `preferred` unless it is open already, else the lowest free slot; return it."""
        slot = self._free() if preferred is None or preferred in self.taken else preferred
        self.taken.add(slot)
        return slot

    def _free(self) -> Slot:
        while self._lowest in self.taken:
            self._lowest += 1
        return Slot(self._lowest)
