"""In which order a packing takes the partitions, and which slot a new consumer gets."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

from binwright.core.model import Rates, Slot, TopicPartition


class Order(Protocol):
    """Puts partitions into a total order; the same rates give the same one."""

    def __call__(self, rates: Rates, /) -> Sequence[TopicPartition]:
        """Return the partitions of `rates`, first come first."""


def descending(rates: Rates, among: Iterable[TopicPartition] | None = None) -> list[TopicPartition]:
    """Return the fastest partition first, equal ones by partition; all, or those `among` them."""
    chosen = rates if among is None else among
    # Two stable sorts of what is nearly sorted cost less than one by pairs.
    return sorted(sorted(chosen), key=rates.__getitem__, reverse=True)


@dataclass(frozen=True, slots=True)
class Shuffled:
    """An order drawn by a seed: what comes to the paper's online algorithms.

    The paper shuffles anew for each measurement: give each its own seed.
    """

    seed: int

    def __call__(self, rates: Rates) -> list[TopicPartition]:
        """Return the partitions of `rates` in an order that depends on nothing but the seed."""
        return sorted(sorted(rates), key=self._lot)

    def _lot(self, partition: TopicPartition) -> bytes:
        return blake2b(f"{self.seed}/{partition}".encode(), digest_size=8).digest()


class Numbers:
    """Which slots are open (eq. 14 of the paper, f and h)."""

    def __init__(self) -> None:
        self.taken: set[Slot] = set()
        self._lowest = 0

    def open(self, wish: Slot | None) -> Slot:
        """Open the partition's own consumer unless it is open already, else the lowest free."""
        slot = self._free() if wish is None or wish in self.taken else wish
        self.taken.add(slot)
        return slot

    def _free(self) -> Slot:
        while self._lowest in self.taken:
            self._lowest += 1
        return Slot(self._lowest)
