"""The real core, state by state: all holds with every rule, and something breaks without one.

The whole table, and the way to each fault, is what `make model` prints.
"""

import pytest

from .explore import Explorer, Limits
from .left_out import LEFT_OUT, left_out
from .table import BROKEN, HOLDS, UNSEEN, Case

STATES = 250  # of those spaces that `make model` explores further


def explored(case: Case, limits: Limits) -> Explorer:
    explorer = Explorer(case.first(), limits)
    explorer.run()
    return explorer


@pytest.mark.parametrize("name", HOLDS)
def test_with_every_rule_kept_nothing_lands_twice_and_all_comes_to_rest(name: str) -> None:
    case = HOLDS[name]
    states = min(case.limits.states, STATES)
    found = explored(case, Limits(states=states, settle_every=50)).found
    assert not found.fault, "\n".join(found.trace)


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_left_out_breaks_something(name: str) -> None:
    case = BROKEN[name]
    with left_out(LEFT_OUT[name]):
        found = explored(case, case.limits).found
    assert found.fault, found.told()
    assert found.trace


def test_every_change_is_explored() -> None:
    assert LEFT_OUT.keys() == BROKEN.keys() | UNSEEN.keys()


def test_a_space_is_known_to_be_exhausted() -> None:
    found = explored(HOLDS["fault-free"], HOLDS["fault-free"].limits).found
    assert found.whole
