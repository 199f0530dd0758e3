"""What every packing refuses."""

from math import isfinite

from binwright.core.errors import PackingError
from binwright.core.model import BytesPerSecond, Rates


def check(rates: Rates, capacity: BytesPerSecond) -> None:
    """Refuse what no packing can answer.

    Args:
        rates: Bytes/s, each finite and >= 0.
        capacity: What one consumer is packed to, bytes/s, finite and > 0.

    Raises:
        PackingError: `capacity` or a rate is out of range; names every such partition.
    """
    if not (isfinite(capacity) and capacity > 0):
        raise PackingError(f"capacity must be finite and > 0, got {capacity}")
    if bad := sorted(p for p, rate in rates.items() if not (isfinite(rate) and rate >= 0)):
        faults = ", ".join(f"{p}: {rates[p]}" for p in bad)
        raise PackingError(f"rates must be finite and >= 0, got {faults}")
