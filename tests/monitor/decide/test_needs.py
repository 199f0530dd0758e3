"""The topics that groups need measured, added to those of the monitor's settings."""

from dataclasses import replace

from binwright.monitor.decide.needs import (
    NEEDS_EXPIRY_MS,
    current_needs,
    merge_needs,
    received,
    same_needs,
)
from binwright.protocol.metrics import Needs
from binwright.protocol.patterns import compile_pattern
from binwright.protocol.selection import Selection

ORDERS = Needs(group="a", at_ms=1_000, topics=("orders",), patterns=("cl.*",))
TEAS = Needs(group="b", at_ms=2_000, topics=("tea", "orders"), patterns=("cl.*", "tea.*"))
CLICKS, TEA = compile_pattern("cl.*"), compile_pattern("tea.*")


def test_the_needs_of_all_groups_are_added_to_the_settings() -> None:
    own = Selection(frozenset({"own"}), (compile_pattern("o.*"),), frozenset({"never"}))
    wanted, faults = merge_needs(own, [TEAS, ORDERS])
    assert wanted == Selection(
        frozenset({"own", "orders", "tea"}), (*own.patterns, CLICKS, TEA), own.excluded
    )
    assert faults == ()
    assert merge_needs(own, [ORDERS, TEAS]) == (wanted, ())
    assert merge_needs(own, []) == (own, ())


def test_an_invalid_pattern_is_reported_and_the_others_count() -> None:
    wanted, faults = merge_needs(Selection(), [replace(ORDERS, patterns=("(", "tea.*"))])
    assert wanted.patterns == (TEA,)
    assert len(faults) == 1
    assert faults[0].startswith("group a: not a regular expression: '('")


def test_a_group_has_a_limited_number_of_patterns_and_takes_none_from_others() -> None:
    many = replace(ORDERS, patterns=tuple(f"{'x' * 490}{n}" for n in range(100)))
    wanted, faults = merge_needs(Selection(), [many, TEAS])
    assert set(wanted.patterns) > {CLICKS, TEA}
    assert len(wanted.patterns) < 15
    assert len(faults) == 1
    assert faults[0].startswith("group a: too many patterns")


def test_needs_that_are_not_repeated_for_an_hour_expire() -> None:
    known = {"a": ORDERS, "b": TEAS}
    assert current_needs(known, 1_000 + NEEDS_EXPIRY_MS) == known
    assert current_needs(known, 1_001 + NEEDS_EXPIRY_MS) == {"b": TEAS}


def test_needs_of_the_future_expire_too() -> None:
    needs = received(replace(ORDERS, at_ms=2**62), 5_000)
    assert current_needs({"a": needs}, 5_000 + NEEDS_EXPIRY_MS) == {"a": needs}
    assert current_needs({"a": needs}, 5_001 + NEEDS_EXPIRY_MS) == {}
    assert received(ORDERS, 5_000) == ORDERS


def test_repeated_needs_are_the_same_needs() -> None:
    assert same_needs(replace(ORDERS, at_ms=5), ORDERS)
    assert not same_needs(ORDERS, None)
    assert not same_needs(ORDERS, replace(ORDERS, topics=("clicks",)))
    assert not same_needs(ORDERS, replace(ORDERS, patterns=()))
