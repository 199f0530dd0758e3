"""What a packing takes: the load, and the capacities of consumers."""

from dataclasses import dataclass
from math import isfinite

from binwright.packing.zones import NO_ZONES, Zones
from binwright.protocol.errors import PackingError
from binwright.protocol.model import Assignment, BytesPerSecond, PerSlot, Rates

SlotCapacities = PerSlot
"""A capacity per slot, bytes/s."""

Capacity = BytesPerSecond | SlotCapacities
"""One number, or one per slot."""


def slot_capacities(capacity: Capacity) -> SlotCapacities:
    """Return a capacity as `SlotCapacities`."""
    return capacity if isinstance(capacity, SlotCapacities) else SlotCapacities(capacity)


@dataclass(frozen=True, slots=True)
class Load:
    """What a packing assigns, and to which consumers.

    Attributes:
        rates: Of each partition that it assigns, bytes/s, each finite and >= 0.
        capacity: Of consumers, bytes/s, finite and > 0.
        current: Who reads each partition now; partitions without a rate are ignored.
        variance: Mean square of a rate's expected change until the next decision, (bytes/s)^2,
            >= 0; None: unknown. The paper's algorithms ignore it.
        zones: Where consumers run, and partitions can be read. `sticky` alone regards it.
    """

    rates: Rates
    capacity: Capacity
    current: Assignment
    variance: float | None = None
    zones: Zones = NO_ZONES

    @property
    def capacities(self) -> SlotCapacities:
        """The capacity by slot."""
        return slot_capacities(self.capacity)

    def checked(self) -> SlotCapacities:
        """Return the capacities by slot.

        Raises:
            PackingError: A capacity or a rate is out of range; names every such slot or partition.
        """
        rates, capacities = self.rates, self.capacities
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
