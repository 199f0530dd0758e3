"""Availability zones: where consumers run, where partitions can be read, which bytes cross."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum

from binwright.protocol.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition


@dataclass(frozen=True, slots=True)
class Zones:
    """Zones of consumers and partitions; where one is not known, nothing counts as crossing.

    Attributes:
        of_slot: The zone in which a slot's consumer runs.
        of_partition: The zones in which a partition can be read.
        price: What a byte/s that crosses zones costs until the next decision, in bytes/s that
            move once; >= 0, and 0 if crossing costs nothing.
    """

    of_slot: Mapping[Slot, str]
    of_partition: Mapping[TopicPartition, frozenset[str]]
    price: float = 0.0

    def crosses(self, partition: TopicPartition, slot: Slot) -> bool:
        """Whether a partition's bytes cross zones when this slot reads it."""
        return crosses(self.of_partition.get(partition), self.of_slot.get(slot))

    def crossing(self, rates: Rates, owners: Assignment) -> BytesPerSecond:
        """Return how much of what `owners` read crosses zones, bytes/s."""
        if not self.of_slot:
            return BytesPerSecond(0.0)  # without a look at a hundred thousand partitions
        return total(rates, (p for p, slot in owners.items() if self.crosses(p, slot)))


NO_ZONES = Zones({}, {})


def crosses(near: frozenset[str] | None, zone: str | None) -> bool:
    """Whether bytes that can be read in `near` cross zones to reach `zone`."""
    return near is not None and zone is not None and bool(near) and zone not in near


def total(rates: Rates, partitions: Iterable[TopicPartition]) -> BytesPerSecond:
    """Return the sum of rates, 0 for one that is not known; it does not depend on the order."""
    return BytesPerSecond(fsum(rates.get(p, 0.0) for p in partitions))
