"""Bring home again what moved, where others can make room for less."""

from heapq import nlargest
from itertools import combinations, islice

from binwright.core.packing.sticky.board import NOWHERE, Board
from binwright.core.packing.sticky.chain import place

EFFORT = 400
"""How many partitions, the biggest first, are thought of."""
EXCHANGES = 8
"""How many ways to make room at home are tried for one of them."""
HELD = 12
"""Of how many partitions at home, the biggest first, one or two may make room."""
ROUNDING = 1e-9
"""A gain below this share of a capacity is none."""


def tidy(board: Board) -> None:
    """Let every partition that moved try to go home, biggest first."""
    # As `biggest_first` would begin, without sorting all of them.
    for number in nlargest(EFFORT, board.away(), key=board.rates.__getitem__):
        # Another's way home may have led through here.
        if board.moved(number) and board.homes[number] in board.offered:
            _go_home(board, number)


def _go_home(board: Board, number: int) -> None:
    source, mark = board.at[number], board.mark
    saved = board.rates[number] + _worth_of_leaving(board, number)
    board.shift(number, NOWHERE)
    for leaving in islice(_exchanges(board, number), EXCHANGES):
        here = board.mark
        spent = _swap_in(board, number, leaving, saved)
        if spent is not None and saved - spent > ROUNDING * board.capacities.default:
            if source in board.offered and not board.held(source):
                board.withdraw(source)
            return
        board.back(here)
    board.back(mark)


def _worth_of_leaving(board: Board, number: int) -> float:
    source, value = board.at[number], board.costs.value
    if source not in board.offered:
        return 0.0
    return value(board.room[source]) - value(board.room[source] + board.rates[number])


def _swap_in(board: Board, number: int, leaving: tuple[int, ...], budget: float) -> float | None:
    """Put a partition home and others elsewhere; return what that costs; None: no room."""
    home, value = board.homes[number], board.costs.value
    before = value(board.room[home])
    sunk = sum([board.toll(other, home) for other in leaving])
    for other in leaving:
        board.shift(other, NOWHERE)
    board.shift(number, home)
    spent = value(board.room[home]) - before - sunk
    for other in leaving:
        if (cost := place(board, other, budget - spent)) is None:
            return None
        spent += cost
    return spent


def _exchanges(board: Board, number: int) -> list[tuple[int, ...]]:
    """Return who could make room for a partition at home, what is cheapest to move first."""
    home, rates = board.homes[number], board.rates
    lacking = rates[number] - board.room[home]
    if lacking <= 0:
        return [()]
    held = board.biggest_first(board.held(home))[:HELD]
    found = []
    for leaving in (*combinations(held, 1), *combinations(held, 2)):
        if sum([rates[other] for other in leaving]) >= lacking:
            kept = sum([rates[other] for other in leaving if not board.moved(other)])
            if kept < rates[number]:
                found.append((kept, leaving))
    return [leaving for _, leaving in sorted(found)]
