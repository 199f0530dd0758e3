"""Topics by name, and by a pattern for whole names."""

import re

import pytest

from binwright.core.ports import Selection

CLICKS = Selection(frozenset({"orders"}), re.compile("cl.*|__.*"), frozenset({"clocks"}))


@pytest.mark.parametrize(
    ("topic", "fits"),
    [
        ("clicks", True),
        ("my-clicks", False),  # the whole name
        ("clocks", False),  # never
        ("__clicks", False),  # Kafka's own
        ("orders", False),  # by name, not by pattern
    ],
)
def test_a_pattern_takes_whole_names_but_not_everything(topic: str, fits: bool) -> None:
    assert CLICKS.fits(topic) == fits


def test_without_a_pattern_nothing_fits() -> None:
    assert not Selection(frozenset({"orders"})).fits("orders")


def test_more_topics_may_be_named() -> None:
    assert CLICKS.including(["a", "orders"]).topics == {"a", "orders"}
