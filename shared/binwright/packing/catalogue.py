"""The packing algorithms by name."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from binwright.packing.any_fit.bins import BestFit, FirstFit, WorstFit
from binwright.packing.any_fit.classic import AnyFit, NextFit, RoundRobin
from binwright.packing.any_fit.modified import Modified
from binwright.packing.any_fit.order import Shuffled, descending
from binwright.packing.capacity import Capacity
from binwright.packing.sticky.policy import Sticky
from binwright.protocol.errors import PackingError
from binwright.protocol.model import Assignment, Rates, Slot, TopicPartition


class Packing(Protocol):
    """Assigns partitions to slots; the same input gives the same assignment."""

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        rate_variance: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Return the slot of each partition in `rates`, sorted by partition.

        A partition faster than its consumer's capacity has a consumer of its own. Equal rates are
        taken in the order of partitions.

        Args:
            rates: Bytes/s, each finite and >= 0.
            capacity: Of consumers, bytes/s, finite and > 0.
            current: Who reads each partition now; partitions without a rate are ignored.
            rate_variance: Mean square of a rate's expected change until the next decision,
                (bytes/s)^2, >= 0; None: unknown. The paper's algorithms ignore it.

        Raises:
            PackingError: A capacity or a rate is out of range.
        """


PAPER: tuple[str, ...] = (
    *("nf", "nfd", "ff", "ffd", "wf", "wfd", "bf", "bfd"),
    *("mwf", "mbf", "mwfp", "mbfp"),
)
"""The paper's twelve, in its order; CBS compares with the best of them."""

NAMES: tuple[str, ...] = ("sticky", *PAPER)

_ONLINE: Mapping[str, Callable[[Shuffled], Packing]] = MappingProxyType(
    {
        "nf": NextFit,
        "ff": lambda order: AnyFit(FirstFit, order),
        "wf": lambda order: AnyFit(WorstFit, order),
        "bf": lambda order: AnyFit(BestFit, order),
    }
)
_FIXED: Mapping[str, Packing] = MappingProxyType(
    {
        "nfd": NextFit(descending),
        "ffd": AnyFit(FirstFit, descending),
        "wfd": AnyFit(WorstFit, descending),
        "bfd": AnyFit(BestFit, descending),
        "mwf": Modified(WorstFit, sum),
        "mbf": Modified(BestFit, sum),
        "mwfp": Modified(WorstFit, max),
        "mbfp": Modified(BestFit, max),
    }
)
_ROUND_ROBIN = re.compile(r"kd_([1-9][0-9]{0,4})")
_STICKY = re.compile(r"sticky(?::([0-9]+(?:\.[0-9]+)?))?")


def algorithm(name: str, seed: int = 0) -> Packing:
    """Return the packing algorithm of that name.

    Args:
        name: One of `NAMES`; sticky:PRICE for a price other than the default, as in sticky:0.4; or
            kd_N for round robin over N > 0 consumers.
        seed: Of the order in which NF, FF, WF and BF take partitions.

    Raises:
        PackingError: The name is unknown; the message lists the known ones.
    """
    if name in _FIXED:
        return _FIXED[name]
    if name in _ONLINE:
        return _ONLINE[name](Shuffled(seed))
    if found := _ROUND_ROBIN.fullmatch(name):
        return RoundRobin(int(found[1]))
    if found := _STICKY.fullmatch(name):
        return Sticky(float(found[1])) if found[1] else Sticky()
    known = ", ".join(NAMES)
    raise PackingError(f"no packing is called {name!r}; there are: {known}, sticky:PRICE, kd_N")
