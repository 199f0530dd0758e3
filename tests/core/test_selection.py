"""Topics by name, and by patterns for whole names."""

import re

import pytest

from binwright.core import selection
from binwright.core.selection import Fitting, Selection

CLICKS = Selection(
    frozenset({"orders", "x.metadata"}),
    (re.compile("cl.*|__.*|x.*"), re.compile("tea")),
    frozenset({"clocks"}),
)


@pytest.mark.parametrize(
    ("topic", "fits"),
    [
        ("clicks", True),
        ("tea", True),
        ("my-clicks", False),  # the whole name
        ("teas", False),
        ("clocks", False),  # never
        ("__clicks", False),  # Kafka's own
        ("x.metadata", False),  # a group's own
        ("x.landing", False),
        ("x.landings", True),
        ("orders", False),  # by name, not by pattern
    ],
)
def test_a_pattern_takes_whole_names_but_not_everything(topic: str, fits: bool) -> None:
    assert CLICKS.fits(topic) == fits
    assert CLICKS.takes(topic) == (fits or topic in CLICKS.topics)


def test_without_a_pattern_nothing_fits() -> None:
    assert not Selection(frozenset({"orders"})).fits("orders")


def test_more_topics_may_be_named() -> None:
    assert CLICKS.including(["a", "orders"]).topics == {"a", "orders", "x.metadata"}


class Counted:
    """A pattern that counts how often it is tried."""

    def __init__(self) -> None:
        self.tried = 0

    def fullmatch(self, topic: str) -> bool:
        self.tried += 1
        return topic.startswith("cl")


def test_of_a_topic_that_was_asked_about_no_pattern_is_tried_again() -> None:
    counted, other = Counted(), Counted()
    wanted = Selection(patterns=(counted,))  # type: ignore[arg-type]
    fitting = Fitting()
    for _ in range(3):
        found = fitting.among(wanted.including({"orders"}), ["clicks", "orders", "clocks"])
        assert found == {"clicks", "clocks"}
    assert counted.tried == 3
    changed = Selection(patterns=(counted, other), never=frozenset({"clocks"}))  # type: ignore[arg-type]
    assert fitting.among(changed, ["clicks", "clocks", "tea"]) == {"clicks"}
    assert (counted.tried, other.tried) == (5, 1)


def test_topics_that_came_and_went_are_not_remembered_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "REMEMBERED", 10)
    fitting = Fitting()
    for day in range(100):
        assert fitting.among(CLICKS, [f"clicks-{day}", "orders"]) == {f"clicks-{day}"}
    assert len(fitting._known) < 15
