"""The product's own code, state by state: correct scenarios hold, and each mutation is detected.

The searches here are bounded; `make model` explores further, and prints each trace.
"""

import pytest
from tests.model.__main__ import (
    CORRECT_SCENARIOS,
    DETECTED_MUTATIONS,
    MUTATIONS,
    UNDETECTED_MUTATIONS,
    explore_mutation,
    explore_scenario,
    unit_test_failure,
)
from tests.model.handover.canonical_form import field_names, listed_names
from tests.model.landing.unit_test_mutations import DETECTED_BY_TEST

STATES = 700  # of correct scenarios; `make model` explores more


@pytest.mark.parametrize("name", CORRECT_SCENARIOS)
def test_a_correct_scenario_has_no_violation(name: str) -> None:
    found = explore_scenario(name, at_most=STATES)
    assert not found.violation, "\n".join([found.violation, *found.trace])


@pytest.mark.parametrize("name", DETECTED_MUTATIONS)
def test_each_mutation_leads_to_a_violation(name: str) -> None:
    found = explore_mutation(name)
    assert found.violation, found.summary()
    assert found.trace


@pytest.mark.parametrize("name", DETECTED_BY_TEST)
def test_each_other_mutation_fails_a_unit_test(name: str) -> None:
    assert unit_test_failure(name)


def test_every_mutation_is_tried() -> None:
    assert (
        MUTATIONS.keys()
        == DETECTED_MUTATIONS.keys() | UNDETECTED_MUTATIONS.keys() | DETECTED_BY_TEST.keys()
    )


def test_a_small_scenario_is_explored_completely() -> None:
    assert explore_scenario("no fault").exhausted


def test_every_name_in_the_canonical_form_is_a_field() -> None:
    """A stale name would no longer omit or rank its field, and silently grow the state space."""
    assert listed_names() - field_names() == set()
