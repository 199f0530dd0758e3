"""The packing algorithms by name."""

import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Protocol

from binwright.packing.any_fit import AnyFit, Modified, NextFit, RoundRobin, Shuffled, descending
from binwright.packing.bins import BestFit, FirstFit, WorstFit
from binwright.packing.inputs import Load
from binwright.packing.sticky.policy import PRICE, Sticky
from binwright.protocol.errors import PackingError
from binwright.protocol.model import Slot, TopicPartition


class Packing(Protocol):
    """Assigns partitions to slots; the same input gives the same assignment."""

    def __call__(self, load: Load) -> dict[TopicPartition, Slot]:
        """Return the slot of each partition of the load, sorted by partition.

        A partition faster than its consumer's capacity has a consumer of its own. Equal rates are
        taken in the order of partitions.

        Raises:
            PackingError: A capacity, a rate or the variance is out of range.
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
_PRICED = re.compile(r"(sticky|exact)(?::([0-9]+(?:\.[0-9]+)?))?")


def algorithm(name: str, seed: int = 0) -> Packing:
    """Return the packing algorithm of that name.

    Args:
        name: One of `NAMES`; exact; sticky:PRICE or exact:PRICE for a price other than the default,
            as in sticky:0.4; or kd_N for round robin over N > 0 consumers.
        seed: Of the order in which NF, FF, WF and BF take partitions.

    Raises:
        PackingError: The name is unknown (lists the known ones), or scipy is missing for `exact`
            (says what to install or to use instead).
    """
    if name in _FIXED:
        return _FIXED[name]
    if name in _ONLINE:
        return _ONLINE[name](Shuffled(seed))
    if numbered := _ROUND_ROBIN.fullmatch(name):
        return RoundRobin(int(numbered[1]))
    if priced := _PRICED.fullmatch(name):
        price = float(priced[2]) if priced[2] else PRICE
        return Sticky(price) if priced[1] == "sticky" else _exact(name, price)
    known = ", ".join(NAMES)
    raise PackingError(
        f"no packing is called {name!r}; there are: {known}, sticky:PRICE, kd_N, exact"
    )


def _exact(name: str, price: float) -> Packing:
    if find_spec("scipy") is None:
        raise PackingError(
            f"packing {name!r} needs scipy, which is not installed here: "
            "pip install 'binwright[exact]', or use sticky"
        )
    from binwright.packing.exact import Exact  # noqa: PLC0415 - only where scipy is

    return Exact(price)
