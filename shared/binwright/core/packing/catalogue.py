"""Packings by name."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from binwright.core.errors import PackingError
from binwright.core.model import Assignment, Rates, Slot, TopicPartition
from binwright.core.packing.bins import BestFit, FirstFit, WorstFit
from binwright.core.packing.capacity import Capacity
from binwright.core.packing.classic import AnyFit, NextFit, RoundRobin
from binwright.core.packing.modified import Modified
from binwright.core.packing.order import Shuffled, descending
from binwright.core.packing.sticky.policy import Sticky


class Packing(Protocol):
    """Decides who should read what; the same input gives the same answer."""

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        change: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Give each partition in `rates` an owner.

        A partition faster than its consumer's capacity sits alone. Equal rates are taken in the
        order of partitions, and the answer is sorted by partition.

        Args:
            rates: Bytes/s, each finite and >= 0.
            capacity: What consumers are packed to, bytes/s, finite and > 0.
            current: Who reads what now; partitions without a rate are ignored.
            change: By how much a rate is expected to change until the next decision: the mean of
                the squares, (bytes/s)^2, >= 0; None: not known. The paper's algorithms do not ask.

        Raises:
            PackingError: A capacity or a rate is out of range.
        """


PAPER: tuple[str, ...] = (
    *("nf", "nfd", "ff", "ffd", "wf", "wfd", "bf", "bfd"),
    *("mwf", "mbf", "mwfp", "mbfp"),
)
"""The paper's twelve, in its order; CBS compares with the best of these."""

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
    """Return the packing of that name.

    Args:
        name: One of `NAMES`; sticky with a price other than the default, as in sticky:0.4; or
            kd_n with a number n > 0.
        seed: Draws the order in which partitions come to NF, FF, WF and BF.

    Raises:
        PackingError: There is none; lists those that there are.
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
