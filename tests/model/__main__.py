"""Explore what must hold, and each rule left out, and print the shortest way to what breaks."""

import argparse
import sys
from dataclasses import replace

from .explore import Explorer, Found
from .left_out import LEFT_OUT, left_out
from .table import BROKEN, HOLDS, UNSEEN


def breaks(name: str) -> Found:
    """Explore with this rule left out, and as far with it kept: then nothing may be found."""
    case = {**BROKEN, **UNSEEN}[name]
    with left_out(LEFT_OUT[name]):
        found = Explorer(case.first(), case.limits).run()
    try:
        first = case.first()
    except LookupError:  # with the rule kept it does not even come to where this begins
        return found
    kept = Explorer(first, replace(case.limits, states=found.states)).run()
    if kept.fault:
        raise SystemExit(f"{name}: {kept.fault} with every rule kept")
    return found


def main() -> int:
    """Print a line for each case; exit code 1 if something is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.model", description=__doc__)
    parser.add_argument("cases", nargs="*", help="holds, breaks, unseen, or names; else all")
    parser.add_argument("--states", type=int, default=0, help="of each that holds, if more")
    asked = parser.parse_args()
    wanted, wrong = set(asked.cases), 0
    for name, case in HOLDS.items():
        if not wanted or {name, "holds"} & wanted:
            limits = replace(case.limits, states=max(case.limits.states, asked.states))
            wrong += show(name, Explorer(case.first(), limits).run(), breaks=False)
    for name in (*BROKEN, *UNSEEN):
        group = "breaks" if name in BROKEN else "unseen"
        if not wanted or {name, group} & wanted:
            wrong += show(name, breaks(name), breaks=name in BROKEN)
    return int(wrong > 0)


def show(name: str, found: Found, *, breaks: bool) -> bool:
    """Print what was found; return whether it is not what must be found."""
    sys.stdout.write(f"{name:28}{found.told()}\n")
    for line in found.trace:
        sys.stdout.write(f"      {line}\n")
    sys.stdout.flush()
    return bool(found.fault) != breaks


if __name__ == "__main__":
    sys.exit(main())
