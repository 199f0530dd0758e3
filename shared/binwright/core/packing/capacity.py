"""What each consumer is packed to: one number for all, or slot by slot."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from binwright.core.model import BytesPerSecond, Slot


@dataclass(frozen=True, slots=True)
class PerSlot:
    """Capacities that differ, bytes/s, each finite and > 0."""

    default: BytesPerSecond  # of every slot that is not named
    named: Mapping[Slot, BytesPerSecond] = field(default_factory=dict)

    def of(self, slot: Slot) -> BytesPerSecond:
        """Return what this slot is packed to."""
        return self.named.get(slot, self.default)

    @property
    def largest(self) -> BytesPerSecond:
        """Return the most that any consumer can be packed to."""
        return max(self.default, *self.named.values()) if self.named else self.default


Capacity = BytesPerSecond | PerSlot
"""One number, or one per slot."""


def per_slot(capacity: Capacity) -> PerSlot:
    """Return a capacity slot by slot."""
    return capacity if isinstance(capacity, PerSlot) else PerSlot(capacity)
