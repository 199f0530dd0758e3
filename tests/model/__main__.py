"""Explores correct scenarios and mutations, and prints the shortest trace of each violation."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace

from tests.model.explore import ExplorationResult, Explorer
from tests.model.handover import mutations as handover_mutations
from tests.model.handover import scenarios as handover
from tests.model.landing import mutations as landing_mutations
from tests.model.landing import scenarios as landing
from tests.model.landing.mutations import Patch, mutated
from tests.model.landing.unit_test_mutations import DETECTED_BY_TEST

Scenario = landing.Scenario | handover.Scenario
CORRECT_SCENARIOS: Mapping[str, Scenario] = {
    **landing.CORRECT_SCENARIOS,
    **handover.CORRECT_SCENARIOS,
}
DETECTED_MUTATIONS: Mapping[str, Scenario] = {
    **landing.DETECTED_MUTATIONS,
    **handover.DETECTED_MUTATIONS,
}
UNDETECTED_MUTATIONS: Mapping[str, Scenario] = landing.UNDETECTED_MUTATIONS
MUTATIONS: Mapping[str, tuple[Patch, ...]] = {
    **landing_mutations.MUTATIONS,
    **handover_mutations.MUTATIONS,
}


def explore_scenario(name: str, states: int = 0, at_most: int | None = None) -> ExplorationResult:
    """Explore a correct scenario, up to its own limit, `states` if that is more, or `at_most`."""
    case = CORRECT_SCENARIOS[name]
    wanted = max(case.limits.states, states) if at_most is None else at_most
    return _explore(case, wanted)


def _explore(case: Scenario, states: int) -> ExplorationResult:
    limits = replace(case.limits, states=states)
    if isinstance(case, landing.Scenario):
        return Explorer(case.system(), limits).run()
    return Explorer(case.system(), limits).run()


def explore_mutation(name: str) -> ExplorationResult:
    """Explore a scenario with a mutation."""
    case = DETECTED_MUTATIONS.get(name) or UNDETECTED_MUTATIONS[name]
    if isinstance(case, landing.Scenario):
        world = None if case.mutated_setup else case.system()
        with mutated(MUTATIONS[name]):
            return Explorer(world or case.system(), case.limits).run()
    group = case.system()
    with mutated(MUTATIONS[name]):
        return Explorer(group, case.limits).run()


def unit_test_failure(name: str) -> str:
    """Run a unit test with a mutation; return how it fails, or an empty string."""
    test = DETECTED_BY_TEST[name]
    with mutated(MUTATIONS[name]):
        try:
            test()
        except (AssertionError, ValueError):
            return f"fails: {test.__module__.rpartition('.')[2]}.{test.__name__}"
    return ""


def show(name: str, found: ExplorationResult, *, broken: bool) -> bool:
    """Print a result; return whether it is unexpected."""
    sys.stdout.write(f"{name:38}{found.summary()}\n")
    for number, line in enumerate(found.trace, 1):
        sys.stdout.write(f"      {number:>2} {line}\n")
    sys.stdout.flush()
    return bool(found.violation) != broken


def main() -> int:
    """Print a line for each scenario; return exit code 1 if any result is unexpected."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("cases", nargs="*", help="holds, breaks, unseen, or names; else all")
    parser.add_argument("--states", type=int, default=0, help="of each that holds, if more")
    options = parser.parse_args()
    wanted, wrong = set(options.cases) or {"holds", "breaks", "unseen"}, 0
    for name in CORRECT_SCENARIOS:
        if {name, "holds"} & wanted:
            wrong += show(name, explore_scenario(name, options.states), broken=False)
    for name in (*DETECTED_MUTATIONS, *UNDETECTED_MUTATIONS):
        if {name, "breaks" if name in DETECTED_MUTATIONS else "unseen"} & wanted:
            wrong += show(name, explore_mutation(name), broken=name in DETECTED_MUTATIONS)
    for name in DETECTED_BY_TEST:
        if {name, "breaks"} & wanted:
            how = unit_test_failure(name)
            sys.stdout.write(f"{name:38}{how or 'holds'}\n")
            wrong += not how
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
