"""The page of `binwright top`."""

import re

from tests.builders import measurement

from binwright.cli.terminal import Console
from binwright.look.commands.top import TopOptions, draw
from binwright.look.rates_view import RatesView
from binwright.protocol.metrics import PartitionRate
from binwright.protocol.model import BytesPerSecond


def drawn(
    view: RatesView, options: TopOptions, now: float, *, height: int = 10, width: int = 140
) -> str:
    console = Console(width=width)
    with console.capture() as captured:
        console.print(draw(view, options, height, now, width))
    return captured.get()


def filled() -> RatesView:
    view = RatesView()
    rates = tuple(
        PartitionRate(n, BytesPerSecond(n * 1e6), 30, 10, 0, 10.0, 100.0, 5, "measured", 0.1, 2)
        for n in range(3)
    )
    view.apply_measurement(0, measurement("orders", rates))
    return view


ALL = TopOptions("rate", None, topics=False, limit=None)


def test_the_fastest_partition_comes_first_with_quality_and_leader() -> None:
    page = drawn(filled(), ALL, 1).splitlines()
    assert "3.0 MB/s in all; 3 of 3 partitions, by rate" in page[0]
    assert re.match(r" ?orders-2 .*2\.0 MB/s .* 2 +measured +█", page[2])


def test_there_are_at_most_as_many_rows_as_fit() -> None:
    assert len(drawn(filled(), ALL, 1, height=1).splitlines()) == 3


def test_a_silent_monitor_is_shown() -> None:
    assert "no monitor for 60 s" in drawn(filled(), ALL, 60)
    assert "no measurement yet" in drawn(RatesView(), ALL, 60)
