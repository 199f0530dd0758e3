"""The inputs of packing algorithms: the capacities of consumers, and their validation."""

from math import isfinite

from binwright.protocol.errors import PackingError
from binwright.protocol.model import BytesPerSecond, PerSlot, Rates

SlotCapacities = PerSlot
"""A capacity per slot, bytes/s."""

Capacity = BytesPerSecond | SlotCapacities
"""One number, or one per slot."""


def slot_capacities(capacity: Capacity) -> SlotCapacities:
    """Return a capacity as `SlotCapacities`."""
    return capacity if isinstance(capacity, SlotCapacities) else SlotCapacities(capacity)


def check_inputs(rates: Rates, capacity: Capacity) -> SlotCapacities:
    """Raise if a rate or capacity is invalid; return the capacities by slot.

    Args:
        rates: Bytes/s, each finite and >= 0.
        capacity: Of consumers, bytes/s, finite and > 0.

    Raises:
        PackingError: A capacity or a rate is out of range; names every such slot or partition.
    """
    capacities = slot_capacities(capacity)
    if not _is_capacity(capacities.default):
        raise PackingError(f"capacity must be finite and > 0, got {capacities.default}")
    if slots := sorted(s for s, c in capacities.named.items() if not _is_capacity(c)):
        faults = ", ".join(f"slot {slot}: {capacities.named[slot]}" for slot in slots)
        raise PackingError(f"capacities must be finite and > 0, got {faults}")
    # NaN fails every comparison; for valid rates these are two passes at the speed of C.
    if not all(map(isfinite, rates.values())) or min(rates.values(), default=0) < 0:
        bad = sorted(p for p, rate in rates.items() if not (isfinite(rate) and rate >= 0))
        faults = ", ".join(f"{p}: {rates[p]}" for p in bad)
        raise PackingError(f"rates must be finite and >= 0, got {faults}")
    return capacities


def _is_capacity(value: float) -> bool:
    return isfinite(value) and value > 0
