"""Rates of partitions and topics, their order, history and quality."""

import re
from dataclasses import replace
from typing import Any

import pytest

from binwright.look.rates_view import HISTORY, RatesView, SortKey
from binwright.protocol.metrics import Measurement, PartitionRate
from binwright.protocol.model import BytesPerSecond


def partition(number: int, rate: float | None, **more: Any) -> PartitionRate:
    known = None if rate is None else BytesPerSecond(rate)
    return PartitionRate(number, known, 30, 10, 0, 10.0, records_per_s=1, size=100, **more)


def measured(topic: str, *partitions: PartitionRate) -> Measurement:
    return Measurement(
        topic=topic,
        at_ms=0,
        monitor="m",
        number=1,
        interval_s=1,
        count=len(partitions),
        partitions=partitions,
    )


def view(*measurements: Measurement) -> RatesView:
    rates = RatesView()
    for now, message in enumerate(measurements):
        rates.apply_measurement(now, message)
    return rates


def names(
    rates: RatesView, sort: SortKey = "rate", pattern: str = "", *, topics: bool = False
) -> list[str]:
    return [row.name for row in rates.rows(sort, re.compile(pattern), topics=topics)]


TWO = view(
    measured("orders", partition(0, 5.0, age_s=3), partition(1, 9.0, quality="stale")),
    measured("clicks", partition(0, 7.0), partition(1, None)),
)


@pytest.mark.parametrize(
    ("sort", "first"), [("rate", "orders-1"), ("name", "clicks-0"), ("age", "orders-0")]
)
def test_rows_are_sorted_by_the_chosen_column(sort: SortKey, first: str) -> None:
    assert names(TWO, sort)[0] == first
    assert len(names(TWO, sort)) == 4


def test_a_filter_keeps_the_names_that_contain_it() -> None:
    assert names(TWO, pattern="ers-") == ["orders-1", "orders-0"]


def test_a_topic_is_the_sum_of_its_partitions_with_the_worst_quality() -> None:
    orders, clicks = TWO.rows("rate", None, topics=True)
    assert (orders.name, orders.rate, orders.quality, orders.age_s) == ("orders", 14, "stale", 3)
    assert (clicks.rate, clicks.history, clicks.size) == (7, (7.0,), 200)
    assert TWO.total() == 21


def test_the_history_is_limited() -> None:
    rates = view(*(measured("orders", partition(0, float(n))) for n in range(HISTORY + 5)))
    (row,) = rates.rows("rate", None, topics=False)
    assert row.history == tuple(float(n) for n in range(5, HISTORY + 5))


def test_a_new_partition_adds_to_the_end_of_its_topics_history() -> None:
    rates = view(
        measured("orders", partition(0, 1.0)),
        measured("orders", partition(0, 1.0), partition(1, 5.0)),
    )
    (row,) = rates.rows("rate", None, topics=True)
    assert row.history == (1, 6)


def test_removed_partitions_and_topics_have_no_row() -> None:
    rates = view(measured("orders", partition(0, 1.0), partition(1, 1.0)), measured("orders"))
    assert names(rates) == []
    rates = view(
        measured("orders", partition(0, 1.0), partition(1, 1.0)),
        measured("orders", partition(0, 1.0)),
    )
    assert names(rates) == ["orders-0"]


def test_a_second_monitor_does_not_count_twice() -> None:
    first = measured("orders", partition(0, 1.0))
    rates = view(first, replace(first, monitor="other", partitions=(partition(0, 9.0),)))
    assert rates.total() == 1


def test_the_json_of_a_row_holds_its_fields() -> None:
    fields = TWO.rows("rate", None, topics=False)[0].to_json()
    assert (fields["name"], fields["rate"], fields["quality"]) == ("orders-1", 9, "stale")
