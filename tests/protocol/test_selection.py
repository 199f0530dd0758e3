"""Topics selected by name, and by patterns that match whole names."""

from functools import partial

import pytest

from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import PatternMatcher, Selection

CLICKS = Selection(
    frozenset({"orders", "x.metadata"}),
    (compile_pattern("cl.*|__.*|x.*"), compile_pattern("tea")),
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
        ("x.commands", False),
        ("x.landing", False),
        ("x.group-orders", False),
        ("x.orders", True),
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

    def matches(self, topic: str) -> bool:
        self.tries += 1
        return topic.startswith("cl")


def test_patterns_are_tried_once_per_topic() -> None:
    counted, other = Counted(), Counted()
    wanted = Selection(patterns=(counted,))  # type: ignore[arg-type]
    matcher = PatternMatcher()
    for _ in range(3):
        found = matcher.matching(
            wanted.including({"orders"}), ["clicks", "orders", "clocks"], lambda: True
        )
        assert found == {"clicks", "clocks"}
    assert counted.tries == 3
    changed = Selection(patterns=(counted, other), excluded=frozenset({"clocks"}))  # type: ignore[arg-type]
    assert matcher.matching(changed, ["clicks", "clocks", "tea"], lambda: True) == {"clicks"}
    assert (counted.tries, other.tries) == (5, 1)


def test_topics_for_which_there_is_no_time_are_matched_in_later_calls() -> None:
    matcher, names = PatternMatcher(), [f"clicks-{n}" for n in range(7)]
    found = []
    for _ in range(3):
        times = iter((True, True, True, False))
        found.append(matcher.matching(CLICKS, names, lambda times=times: next(times)))  # type: ignore[misc]
    assert found == [set(names[:3]), set(names[:6]), set(names)]
    assert matcher.complete


def test_what_is_excluded_by_a_pattern_may_still_be_named() -> None:
    wanted = Selection(
        frozenset({"test-orders"}),
        (compile_pattern(".*"),),
        excluded_patterns=(compile_pattern("test-.*"), compile_pattern("tmp.*")),
    )
    assert [t for t in ("orders", "test-orders", "test-clicks", "tmp") if wanted.includes(t)] == [
        "orders",
        "test-orders",
    ]


def test_of_however_many_topics_each_is_matched_at_last() -> None:
    """What was matched before is kept while time runs out, pass after pass."""
    matcher, names = PatternMatcher(), [f"clicks-{n:06}" for n in range(150_000)]
    for _ in range(3):
        tried = iter([True] * 60_000)
        matched = matcher.matching(CLICKS, names, partial(next, tried, False))  # noqa: FBT003
    assert matcher.complete
    assert matched == {*names}


def test_the_cache_of_matched_topics_is_bounded() -> None:
    matcher = PatternMatcher()
    for day in range(100):
        assert matcher.matching(CLICKS, [f"clicks-{day}", "orders"], lambda: True) == {
            f"clicks-{day}"
        }
    assert len(matcher._known) < 15
