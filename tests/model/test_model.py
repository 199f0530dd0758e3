"""The product's own code, state by state: all holds with every rule, and something breaks without.

How far it goes here is bounded; `make model` goes further, and prints the way to each violation.
"""

import pytest
from tests.model.__main__ import BREAKS, HOLDS, MUTATIONS, UNSEEN, breaks, explored, fails
from tests.model.landing.by_test import BY_TEST

STATES = 700  # of those spaces that `make model` explores further


@pytest.mark.parametrize("name", HOLDS)
def test_with_every_rule_kept_nothing_breaks(name: str) -> None:
    found = explored(name, at_most=STATES)
    assert not found.violation, "\n".join([found.violation, *found.trace])


@pytest.mark.parametrize("name", BREAKS)
def test_each_rule_left_out_breaks_something(name: str) -> None:
    found = breaks(name)
    assert found.violation, found.summary()
    assert found.trace


@pytest.mark.parametrize("name", BY_TEST)
def test_each_rule_left_out_fails_a_test(name: str) -> None:
    assert fails(name)


def test_every_mutation_is_tried() -> None:
    assert MUTATIONS.keys() == BREAKS.keys() | UNSEEN.keys() | BY_TEST.keys()


def test_a_space_is_known_to_be_exhausted() -> None:
    assert explored("no fault").whole
