"""What groups need measured, joined to what the monitor's settings select."""

import re
from dataclasses import replace

from binwright.core.messages import Needs
from binwright.core.needs import FORGOTTEN_MS, current, joined, same
from binwright.core.selection import Selection

ORDERS = Needs(group="a", at_ms=1_000, topics=("orders",), patterns=("cl.*",))
TEAS = Needs(group="b", at_ms=2_000, topics=("tea", "orders"), patterns=("cl.*", "tea.*"))
CLICKS, TEA = re.compile("cl.*"), re.compile("tea.*")


def test_what_any_group_needs_is_measured_beside_the_settings_own() -> None:
    own = Selection(frozenset({"own"}), (re.compile("o.*"),), frozenset({"never"}))
    wanted, faults = joined(own, [TEAS, ORDERS])
    assert wanted == Selection(
        frozenset({"own", "orders", "tea"}), (*own.patterns, CLICKS, TEA), own.never
    )
    assert faults == ()
    assert joined(own, [ORDERS, TEAS]) == (wanted, ())
    assert joined(own, []) == (own, ())


def test_a_pattern_that_is_none_here_is_told_and_the_others_count() -> None:
    wanted, faults = joined(Selection(), [replace(ORDERS, patterns=("(", "tea.*"))])
    assert wanted.patterns == (TEA,)
    assert faults == ("group a: '(': missing ), unterminated subpattern at position 0",)


def test_a_group_that_has_not_repeated_its_needs_for_an_hour_is_forgotten() -> None:
    known = {"a": ORDERS, "b": TEAS}
    assert current(known, 1_000 + FORGOTTEN_MS) == known
    assert current(known, 1_001 + FORGOTTEN_MS) == {"b": TEAS}


def test_needs_that_are_repeated_are_nothing_new() -> None:
    assert same(replace(ORDERS, at_ms=5), ORDERS)
    assert not same(ORDERS, None)
    assert not same(ORDERS, replace(ORDERS, topics=("clicks",)))
    assert not same(ORDERS, replace(ORDERS, patterns=()))
