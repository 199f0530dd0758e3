"""The capacity that each consumer is packed to: one number for all, or one per slot."""

from binwright.protocol.model import BytesPerSecond, PerSlot

SlotCapacities = PerSlot
"""A capacity per slot, bytes/s."""

Capacity = BytesPerSecond | SlotCapacities
"""One number, or one per slot."""


def slot_capacities(capacity: Capacity) -> SlotCapacities:
    """Return a capacity as `SlotCapacities`."""
    return capacity if isinstance(capacity, SlotCapacities) else SlotCapacities(capacity)
