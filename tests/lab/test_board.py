"""The board tells who is written how fast, and how far that can be trusted."""

import re
from dataclasses import replace
from typing import Any

import pytest

from binwright.core.messages import Measurement, PartitionRate
from binwright.core.model import BytesPerSecond
from binwright.lab.board import HISTORY, Board, Key, sparkline


def partition(number: int, rate: float | None, **more: Any) -> PartitionRate:
    known = None if rate is None else BytesPerSecond(rate)
    return PartitionRate(number, known, 30, 10, 0, 10.0, records_per_s=1, size=100, **more)


def said(topic: str, *partitions: PartitionRate) -> Measurement:
    return Measurement(
        topic=topic,
        at_ms=0,
        monitor="m",
        number=1,
        interval_s=1,
        count=len(partitions),
        partitions=partitions,
    )


def board(*measurements: Measurement) -> Board:
    made = Board()
    for now, message in enumerate(measurements):
        made.measured(now, message)
    return made


def names(made: Board, sort: Key = "rate", pattern: str = "", *, topics: bool = False) -> list[str]:
    return [row.name for row in made.rows(sort, re.compile(pattern), topics=topics)]


TWO = board(
    said("orders", partition(0, 5.0, age_s=3), partition(1, 9.0, quality="stale")),
    said("clicks", partition(0, 7.0), partition(1, None)),
)


@pytest.mark.parametrize(
    ("sort", "first"), [("rate", "orders-1"), ("name", "clicks-0"), ("age", "orders-0")]
)
def test_what_is_asked_for_comes_first(sort: Key, first: str) -> None:
    assert names(TWO, sort)[0] == first
    assert len(names(TWO, sort)) == 4


def test_a_filter_leaves_what_holds_it() -> None:
    assert names(TWO, pattern="ers-") == ["orders-1", "orders-0"]


def test_a_topic_is_the_sum_of_its_partitions_and_as_good_as_its_worst() -> None:
    orders, clicks = TWO.rows("rate", None, topics=True)
    assert (orders.name, orders.rate, orders.quality, orders.age_s) == ("orders", 14, "stale", 3)
    assert (clicks.rate, clicks.history, clicks.size) == (7, (7.0,), 200)
    assert TWO.total() == 21


def test_the_past_is_kept_for_a_while() -> None:
    made = board(*(said("orders", partition(0, float(n))) for n in range(HISTORY + 5)))
    (row,) = made.rows("rate", None, topics=False)
    assert row.history == tuple(float(n) for n in range(5, HISTORY + 5))


def test_a_younger_partition_counts_from_when_it_came() -> None:
    made = board(
        said("orders", partition(0, 1.0)), said("orders", partition(0, 1.0), partition(1, 5.0))
    )
    (row,) = made.rows("rate", None, topics=True)
    assert row.history == (1, 6)


def test_what_is_gone_is_gone() -> None:
    made = board(said("orders", partition(0, 1.0), partition(1, 1.0)), said("orders"))
    assert names(made) == []
    made = board(
        said("orders", partition(0, 1.0), partition(1, 1.0)), said("orders", partition(0, 1.0))
    )
    assert names(made) == ["orders-0"]


def test_a_second_monitor_is_not_added() -> None:
    first = said("orders", partition(0, 1.0))
    made = board(first, replace(first, monitor="other", partitions=(partition(0, 9.0),)))
    assert made.total() == 1


def test_a_row_is_told_to_programs_field_by_field() -> None:
    facts = TWO.rows("rate", None, topics=False)[0].facts()
    assert (facts["name"], facts["rate"], facts["quality"]) == ("orders-1", 9, "stale")


@pytest.mark.parametrize(
    ("values", "shown"),
    [((), ""), ((0.0, 0.0), "▁▁"), ((0.0, 4.0, 8.0), "▁▅█"), ((9.0, 1.0, 1.0), "██")],
)
def test_a_sparkline_is_as_high_as_its_highest(values: tuple[float, ...], shown: str) -> None:
    assert sparkline(values, 2 if len(values) == 3 and values[0] == 9 else 3) == shown
