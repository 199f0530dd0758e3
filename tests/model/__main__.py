"""Explore what holds, and each rule left out, and print the shortest trace of what breaks."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace

from tests.model.explore import Explorer, Found
from tests.model.handover import mutations as handover_mutations
from tests.model.handover import scenarios as handover
from tests.model.landing import mutations as landing_mutations
from tests.model.landing import scenarios as landing
from tests.model.landing.by_test import BY_TEST
from tests.model.landing.mutations import Patch, mutated

Scenario = landing.Scenario | handover.Scenario
HOLDS: Mapping[str, Scenario] = {**landing.HOLDS, **handover.HOLDS}
BREAKS: Mapping[str, Scenario] = {**landing.BREAKS, **handover.BREAKS}
UNSEEN: Mapping[str, Scenario] = landing.UNSEEN
MUTATIONS: Mapping[str, tuple[Patch, ...]] = {
    **landing_mutations.MUTATIONS,
    **handover_mutations.MUTATIONS,
}


def explored(name: str, states: int = 0, at_most: int | None = None) -> Found:
    """Explore a scenario that holds, further or less far if asked."""
    case = HOLDS[name]
    wanted = max(case.limits.states, states) if at_most is None else at_most
    return _explore(case, wanted)


def _explore(case: Scenario, states: int) -> Found:
    limits = replace(case.limits, states=states)
    if isinstance(case, landing.Scenario):
        return Explorer(case.system(), limits).run()
    return Explorer(case.system(), limits).run()


def breaks(name: str) -> Found:
    """Explore with a rule left out."""
    case = BREAKS.get(name) or UNSEEN[name]
    if isinstance(case, landing.Scenario):
        world = None if case.broken_first else case.system()
        with mutated(MUTATIONS[name]):
            return Explorer(world or case.system(), case.limits).run()
    group = case.system()
    with mutated(MUTATIONS[name]):
        return Explorer(group, case.limits).run()


def fails(name: str) -> str:
    """Run a unit test with a rule left out; return how it fails."""
    test = BY_TEST[name]
    with mutated(MUTATIONS[name]):
        try:
            test()
        except (AssertionError, ValueError):
            return f"fails: {test.__module__.rpartition('.')[2]}.{test.__name__}"
    return ""


def show(name: str, found: Found, *, broken: bool) -> bool:
    """Print what was found; return whether it is not what must be found."""
    sys.stdout.write(f"{name:38}{found.summary()}\n")
    for number, line in enumerate(found.trace, 1):
        sys.stdout.write(f"      {number:>2} {line}\n")
    sys.stdout.flush()
    return bool(found.violation) != broken


def main() -> int:
    """Print a line for each scenario; exit code 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("cases", nargs="*", help="holds, breaks, unseen, or names; else all")
    parser.add_argument("--states", type=int, default=0, help="of each that holds, if more")
    asked = parser.parse_args()
    wanted, wrong = set(asked.cases) or {"holds", "breaks", "unseen"}, 0
    for name in HOLDS:
        if {name, "holds"} & wanted:
            wrong += show(name, explored(name, asked.states), broken=False)
    for name in (*BREAKS, *UNSEEN):
        if {name, "breaks" if name in BREAKS else "unseen"} & wanted:
            wrong += show(name, breaks(name), broken=name in BREAKS)
    for name in BY_TEST:
        if {name, "breaks"} & wanted:
            how = fails(name)
            sys.stdout.write(f"{name:38}{how or 'holds'}\n")
            wrong += not how
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
