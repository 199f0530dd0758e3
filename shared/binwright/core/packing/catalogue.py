"""Packings by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from binwright.core.errors import PackingError
from binwright.core.model import Assignment, BytesPerSecond, Rates, Slot, TopicPartition
from binwright.core.packing.bins import BestFit, WorstFit
from binwright.core.packing.modified import Modified


class Packing(Protocol):
    """Decides who should read what; the same input gives the same answer."""

    def __call__(
        self, rates: Rates, capacity: BytesPerSecond, current: Assignment
    ) -> dict[TopicPartition, Slot]:
        """Give each partition in `rates` an owner.

        Args:
            rates: Bytes/s, each finite and >= 0.
            capacity: What one consumer is packed to, bytes/s, finite and > 0.
            current: Who reads what now; partitions without a rate are ignored.

        Raises:
            PackingError: `capacity` or a rate is out of range.
        """


ALGORITHMS: Mapping[str, Packing] = MappingProxyType(
    {
        "mwf": Modified(WorstFit, sum),
        "mbf": Modified(BestFit, sum),
        "mwfp": Modified(WorstFit, max),
        "mbfp": Modified(BestFit, max),
    }
)


def algorithm(name: str) -> Packing:
    """Return the packing of that name; raise `PackingError` that lists them for any other."""
    try:
        return ALGORITHMS[name]
    except KeyError:
        known = ", ".join(sorted(ALGORITHMS))
        raise PackingError(f"no packing is called {name!r}; there are: {known}") from None
