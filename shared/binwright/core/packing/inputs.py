"""What every packing refuses, and how all of them speak of capacities."""

from math import isfinite

from binwright.core.errors import PackingError
from binwright.core.model import Rates
from binwright.core.packing.capacity import Capacity, PerSlot, per_slot


def check(rates: Rates, capacity: Capacity) -> PerSlot:
    """Refuse what no packing can answer; return the capacities slot by slot.

    Args:
        rates: Bytes/s, each finite and >= 0.
        capacity: What consumers are packed to, bytes/s, finite and > 0.

    Raises:
        PackingError: A capacity or a rate is out of range; names every such slot or partition.
    """
    capacities = per_slot(capacity)
    if not _is_capacity(capacities.default):
        raise PackingError(f"capacity must be finite and > 0, got {capacities.default}")
    if slots := sorted(s for s, c in capacities.named.items() if not _is_capacity(c)):
        faults = ", ".join(f"slot {slot}: {capacities.named[slot]}" for slot in slots)
        raise PackingError(f"capacities must be finite and > 0, got {faults}")
    # Not a number is not above or below anything: the usual case is two passes at C's speed.
    if not all(map(isfinite, rates.values())) or min(rates.values(), default=0) < 0:
        bad = sorted(p for p, rate in rates.items() if not (isfinite(rate) and rate >= 0))
        faults = ", ".join(f"{p}: {rates[p]}" for p in bad)
        raise PackingError(f"rates must be finite and >= 0, got {faults}")
    return capacities


def _is_capacity(value: float) -> bool:
    return isfinite(value) and value > 0
