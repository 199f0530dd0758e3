"""The capacity that each consumer is packed to: one number for all, or one per slot."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from binwright.core.model import BytesPerSecond, Slot


@dataclass(frozen=True, slots=True)
class SlotCapacities:
    """A capacity per slot, bytes/s, each finite and > 0."""

    default: BytesPerSecond  # of every slot that is not in `named`
    named: Mapping[Slot, BytesPerSecond] = field(default_factory=dict)

    def for_slot(self, slot: Slot) -> BytesPerSecond:
        """Return the capacity of this slot, bytes/s."""
        return self.named.get(slot, self.default)

    @property
    def largest(self) -> BytesPerSecond:
        """Return the largest capacity of any slot, bytes/s."""
        return max(self.default, *self.named.values()) if self.named else self.default


Capacity = BytesPerSecond | SlotCapacities
"""One number, or one per slot."""


def slot_capacities(capacity: Capacity) -> SlotCapacities:
    """Return a capacity as `SlotCapacities`."""
    return capacity if isinstance(capacity, SlotCapacities) else SlotCapacities(capacity)
