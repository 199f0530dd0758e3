"""Topics selected by name, and by patterns that match whole names."""

import re

import pytest

from binwright.protocol import selection
from binwright.protocol.selection import PatternMatcher, Selection

CLICKS = Selection(
    frozenset({"orders", "x.metadata"}),
    (re.compile("cl.*|__.*|x.*"), re.compile("tea")),
    frozenset({"clocks"}),
)


@pytest.mark.parametrize(
    ("topic", "matches"),
    [
        ("clicks", True),
        ("tea", True),
        ("my-clicks", False),  # the whole name
        ("teas", False),
        ("clocks", False),  # excluded
        ("__clicks", False),  # internal to Kafka
        ("x.metadata", False),  # internal to a group
        ("x.landing", False),
        ("x.landings", True),
        ("orders", False),  # by name, not by pattern
    ],
)
def test_a_pattern_matches_whole_names_but_no_internal_topics(topic: str, matches: bool) -> None:
    assert CLICKS.matches_pattern(topic) == matches
    assert CLICKS.includes(topic) == (matches or topic in CLICKS.topics)


def test_without_a_pattern_nothing_matches() -> None:
    assert not Selection(frozenset({"orders"})).matches_pattern("orders")


def test_a_selection_can_include_more_topics() -> None:
    assert CLICKS.including(["a", "orders"]).topics == {"a", "orders", "x.metadata"}


class Counted:
    """A pattern that counts how often it is tried."""

    def __init__(self) -> None:
        self.tries = 0

    def fullmatch(self, topic: str) -> bool:
        self.tries += 1
        return topic.startswith("cl")


def test_patterns_are_tried_once_per_topic() -> None:
    counted, other = Counted(), Counted()
    wanted = Selection(patterns=(counted,))  # type: ignore[arg-type]
    matcher = PatternMatcher()
    for _ in range(3):
        found = matcher.matching(wanted.including({"orders"}), ["clicks", "orders", "clocks"])
        assert found == {"clicks", "clocks"}
    assert counted.tries == 3
    changed = Selection(patterns=(counted, other), excluded=frozenset({"clocks"}))  # type: ignore[arg-type]
    assert matcher.matching(changed, ["clicks", "clocks", "tea"]) == {"clicks"}
    assert (counted.tries, other.tries) == (5, 1)


def test_the_cache_of_matched_topics_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selection, "REMEMBERED", 10)
    matcher = PatternMatcher()
    for day in range(100):
        assert matcher.matching(CLICKS, [f"clicks-{day}", "orders"]) == {f"clicks-{day}"}
    assert len(matcher._known) < 15
