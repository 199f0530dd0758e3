"""The page of `top`."""

import re

from rich.console import Console
from tests.core.builders import measurement

from binwright.cli.top import Wish, draw
from binwright.core.messages import PartitionRate
from binwright.core.model import BytesPerSecond
from binwright.lab.board import Board


def drawn(board: Board, wish: Wish, now: float, height: int = 10) -> str:
    console = Console(width=140, record=True, quiet=False, file=None)
    with console.capture() as captured:
        console.print(draw(board, wish, height, now))
    return captured.get()


def filled() -> Board:
    board = Board()
    rates = tuple(
        PartitionRate(n, BytesPerSecond(n * 1e6), 30, 10, 0, 10.0, 100.0, 5, "measured", 0.1, 2)
        for n in range(3)
    )
    board.measured(0, measurement("orders", rates))
    return board


ALL = Wish("rate", None, topics=False, limit=None)


def test_it_shows_the_fastest_first_with_quality_and_leader() -> None:
    page = drawn(filled(), ALL, 1).splitlines()
    assert "3.00 MB/s in all; 3 of 3" in page[0]
    assert re.match(r" ?orders-2 .*2\.00 MB/s .* 2 +measured +█", page[2])


def test_there_are_no_more_rows_than_room() -> None:
    assert len(drawn(filled(), ALL, 1, height=1).splitlines()) == 3


def test_a_silent_monitor_is_told() -> None:
    assert "no monitor for 60 s" in drawn(filled(), ALL, 60)
    assert "nothing heard yet" in drawn(Board(), ALL, 60)
