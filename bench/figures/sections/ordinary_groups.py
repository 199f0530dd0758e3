"""Figures of ordinary consumer groups."""

from collections.abc import Mapping

from bench.figures.markdown import table
from bench.figures.sections.bench import Bench, Facts, Sections


def _groups_scaled(facts: Facts) -> Sections:
    """Return the section of groups in memory, or that of objects: a run has either."""
    has_objects = any("status writes a second" in row for row in facts)
    return {"scaled-objects" if has_objects else "scaled-groups": table(facts)}


def _scaling(facts: Facts) -> Sections:
    """Return a section for each workload that was played, and one for the assignors."""
    found = {f"scaling-{name}": _played(one) for name, one in facts.items() if "groups" in one}
    if "skew" in facts:
        found["scaling-assignors"] = table(facts["skew"]["rows"])
    return found


def _played(facts: Facts) -> str:
    what = (
        f"{facts['sent']:,} records in {facts['seconds']} s, at most {facts['peak']:g} in one; "
        f"{facts['speed']:g} times as fast as the workload"
    )
    rows = [
        {k: v for k, v in row.items() if not k.startswith("minutes / ")} for row in facts["groups"]
    ]
    return f"{table(rows)}\n\n{what}."


BENCHES: Mapping[str, Bench] = {
    "scaled-groups": Bench(
        "make bench-scaled-groups",
        {
            "scaled-groups": "Passes over scaled groups",
            "scaled-objects": "Passes over ScaledGroup objects",
        },
        _groups_scaled,
    ),
    "scaling": Bench(
        "make bench-scaling",
        {
            "scaling-w1": "Workload 1 in ordinary groups",
            "scaling-w2": "Workload 2 in ordinary groups",
            "scaling-w1-skew": "Workload 1, skewed, to a group that is assigned, too",
            "scaling-w2-skew": "Workload 2, skewed, to a group that is assigned, too",
            "scaling-assignors": "A skewed load by assignor",
        },
        _scaling,
    ),
}
