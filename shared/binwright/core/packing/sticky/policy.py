"""The packing itself: settle what must move, then do without consumers where that pays."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from math import fsum, isfinite, sqrt
from typing import TypeVar

from binwright.core.errors import PackingError
from binwright.core.model import Assignment, Rates, Slot, TopicPartition
from binwright.core.packing.capacity import Capacity, PerSlot
from binwright.core.packing.inputs import check
from binwright.core.packing.sticky.board import NOWHERE, Board, Costs
from binwright.core.packing.sticky.chain import place
from binwright.core.packing.sticky.close import save
from binwright.core.packing.sticky.evict import relieve
from binwright.core.packing.sticky.tidy import tidy
from binwright.core.packing.sticky.value import Value
from binwright.core.score import lower_bound_of

T = TypeVar("T")

PRICE = 2.0
"""Beats the paper's four at 32 partitions, however fast rates change."""
UNKNOWN = 0.05
"""What a rate is taken to change by, in capacities, while nothing has been observed."""
LEAST = 1e-3
"""A standard deviation below this, in capacities, is taken for this; one above 1 for 1."""


@dataclass(frozen=True, slots=True)
class Sticky:
    """Everybody stays, but for what must move and for what pays. See `docs/packing.md`.

    Of all assignments it looks for the one of least price x consumers + V(room) + moved speed.

    Args:
        price: What one consumer less is worth, in capacities of moved speed per decision: a dial
            from calm (0.4) to thrifty (10). > 0.

    Raises:
        PackingError: The price is out of range.
    """

    price: float = PRICE

    def __post_init__(self) -> None:
        """Refuse a price that is none."""
        if not (isfinite(self.price) and self.price > 0):
            raise PackingError(f"a consumer's price must be finite and > 0, got {self.price}")

    def __call__(
        self,
        rates: Rates,
        capacity: Capacity,
        current: Assignment,
        *,
        change: float | None = None,
    ) -> dict[TopicPartition, Slot]:
        """Return the new owner of each of n partitions. See `catalogue.Packing`; O(n log n)."""
        capacities = check(rates, capacity)
        costs = self.costs(rates, capacities, change)
        names = sorted(rates)
        speeds = _in_order(names, rates, 0.0)
        homes = _in_order(names, current, NOWHERE)
        board = Board(
            list(compress(speeds, speeds)), list(compress(homes, speeds)), capacities, costs
        )
        solve(board)
        busy, idle = iter(board.at), iter(_accommodate(homes, speeds, board))
        owners = [next(busy if speed else idle) for speed in speeds]
        return dict(zip(names, owners, strict=True))

    def costs(self, rates: Rates, capacities: PerSlot, change: float | None) -> Costs:
        """Return what plans are judged by; arguments as of `catalogue.Packing`, and checked.

        Raises:
            PackingError: The change is out of range.
        """
        unit = capacities.default
        if change is None:
            change = (UNKNOWN * unit) ** 2
        if not (isfinite(change) and change >= 0):
            raise PackingError(f"a mean squared change must be finite and >= 0, got {change}")
        # A consumer's load changes by as much as all its partitions together.
        together = len(rates) / max(1.0, fsum(rates.values()) / unit)
        deviation = min(max(sqrt(change * together), LEAST * unit), unit)
        return Costs(self.price * unit, Value.of(deviation, unit))


def solve(board: Board) -> None:
    """Give every partition of the board a consumer."""
    value = board.costs.value
    # Where a consumer is dearer than all its room, whoever has room for a partition is cheaper.
    dear = value(0.0) < board.costs.price
    for number in relieve(board):
        if dear and board.settle(number, value.enough):
            continue
        if place(board, number, _alone(board, number)) is None:
            board.open(number)
    unit = board.capacities.largest
    least = lower_bound_of(sorted([rate / unit for rate in board.rates]))
    save(board, board.consumers - least)
    tidy(board)


def _in_order(names: list[TopicPartition], known: Mapping[TopicPartition, T], other: T) -> list[T]:
    """Return what is known of each name, or else `other`."""
    # Mostly they are in order already; comparing costs less than a million look-ups.
    if len(known) == len(names) and list(known) == names:
        return list(known.values())
    return [known.get(name, other) for name in names]


def _alone(board: Board, number: int) -> float:
    """Return what a consumer of its own costs a partition that nobody holds."""
    rate, costs = board.rates[number], board.costs
    own = 0.0 if board.homes[number] == NOWHERE else rate
    return costs.price + costs.value(max(0.0, board.capacities.default - rate)) + own


def _accommodate(homes: Sequence[Slot], speeds: Sequence[float], board: Board) -> list[Slot]:
    """Give partitions without load a consumer: at home if anybody is, else where others are."""
    idle = [home for home, speed in zip(homes, speeds, strict=True) if not speed]
    there = {home for home in idle if home in board.offered and board.holds(home)}
    present = (slot for slot in board.slots if slot in board.offered and board.holds(slot))
    common = next(present, NOWHERE)
    if common == NOWHERE:
        # The home of most, that nobody moves who need not; else the lowest that is free.
        most = Counter(home for home in idle if home != NOWHERE and not board.holds(home))
        common = min(most, key=lambda s: (-most[s], s)) if most else board.free(0.0)
        there = {common}
    return [home if home in there else common for home in idle]
