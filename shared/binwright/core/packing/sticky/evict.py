"""Which partitions leave a consumer that carries too much: the cheapest that make room enough."""

from collections.abc import Sequence

from binwright.core.model import Slot
from binwright.core.packing.sticky.board import NOWHERE, Board
from binwright.core.packing.sticky.value import Value

GRAIN = 1_024
"""Sums that differ by less than this part of a capacity count as equal."""
ROUNDING = 1e-9
"""What sums of floats may be off by, as a share of a capacity."""


def relieve(board: Board) -> list[int]:
    """Take from every overfull consumer what it must lose, and offer those that have room.

    A partition above capacity by itself stays alone, and its consumer is not on offer.

    Returns:
        The partitions that nobody holds now, newcomers too, biggest first.
    """
    homeless = [number for number, slot in enumerate(board.homes) if slot == NOWHERE]
    tolerated = -ROUNDING * board.capacities.default
    every = zip(board.slots, board.room, strict=True)
    for slot in [slot for slot, room in every if room < tolerated]:
        homeless += _relieve(board, slot)
    board.offer_all(board.holding(tolerated))
    return board.biggest_first(homeless)


def _relieve(board: Board, slot: Slot) -> list[int]:
    capacity, over, rates = board.capacities.of(slot), -board.room[slot], board.rates
    # By number so far: equal ones stay so.
    held = sorted(board.held(slot), key=rates.__getitem__, reverse=True)
    falling = [rates[number] for number in held]
    if falling[0] > capacity:
        leaving = held[1:]
    else:
        leaving = [held[index] for index in cheapest(falling, over, capacity, board.costs.value)]
    board.release(slot, leaving)
    return leaving


def cheapest(rates: Sequence[float], over: float, capacity: float, value: Value) -> tuple[int, ...]:
    """Return which of `rates`, falling, leave: their sum s >= over, least s + V(s - over).

    Exact to within a GRAINth of the capacity: of sums that are as good as equal one is followed.
    O(k min(2^k, GRAIN)) for k rates.
    """
    if len(rates) > 1 and rates[-2] >= over:  # no two together are below
        costs = [rate + value(rate - over) for rate in rates if rate >= over]
        return (costs.index(min(costs)),)
    best, chosen = float("inf"), tuple(range(len(rates)))
    sums: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for index, rate in enumerate(rates):
        for total, picks in list(sums.values()):
            reached = total + rate
            if reached >= best:
                continue
            if reached < over:
                sums.setdefault(int(reached * GRAIN / capacity), (reached, (*picks, index)))
            elif (cost := reached + value(reached - over)) < best:
                best, chosen = cost, (*picks, index)
    return chosen
