"""Figures of hand-overs, deaths, split partitions and backlogs."""

from collections.abc import Mapping

from bench.figures.markdown import Row, table
from bench.figures.sections.bench import Bench, Facts, Sections

_PHASE = {
    "disturbed": "disturbed",
    "changed_hands": "changed hands",
    "pauses": "pauses",
    "paused_s": "partition-s",
    "handed_over_s": "of hand-overs",
    "longest_gap_s": "longest gap, s",
}


def _handover(facts: Facts) -> Sections:
    systems = {
        name: one for name, one in facts.items() if isinstance(one, dict) and "bounce" in one
    }
    found = {
        f"handover-{phase}": table([_phase(name, one[phase]) for name, one in systems.items()])
        for phase in ("bounce", "growth")
    }
    pauses = {name: one["pause_per_move_ms"] for name, one in systems.items() if "moves" in one}
    rows = [
        {"system": name, "moves": systems[name]["moves"], **_quantiles(each, "pause", "ms")}
        for name, each in pauses.items()
    ]
    return {**found, **({"handover-pauses": table(rows)} if rows else {})}


def _phase(system: str, facts: Facts) -> Row:
    return {"system": system, **{title: facts[name] for name, title in _PHASE.items()}}


def _quantiles(found: Mapping[str, float], what: str, unit: str) -> Row:
    return {f"{what} {name}, {unit}": number for name, number in found.items()}


def _deaths(facts: Facts) -> Sections:
    kinds = {"consumer": "a consumer", "consumer_and_leader": "a consumer and the leader"}
    rows = [
        {
            "killed": title,
            "times": facts[kind]["times"],
            "median, s": facts[kind]["p50"],
            "longest, s": max(facts[kind]["all_s"]),
        }
        for kind, title in kinds.items()
        if facts[kind]["times"]
    ]
    return {"deaths": table(rows)}


def _split(facts: Facts) -> Sections:
    sides = {"split": "split, a helper and the owner killed", "alone": "one consumer"}
    rows = [
        {
            "the partition": title,
            "consumers": facts[side]["consumers"],
            "behind at most, s": facts[side]["highest_lag_s"],
            "mean of the last third, s": facts[side]["mean_lag_of_thirds_s"][-1],
            "at the end, s": facts[side]["lag_at_the_end_s"],
        }
        for side, title in sides.items()
    ]
    landed = "clean" if facts["split"]["audit_clean"] else "not clean"
    return {"split": f"{table(rows)}\n\nAudit of the split side: {landed}."}


def _catch_up(facts: Facts) -> Sections:
    cases = {
        "one": "a gigabyte, one consumer",
        "three": "a gigabyte, three allowed",
        "sink": "a gigabyte, three allowed, Spark is the limit",
        "step": "the load trebles",
    }
    rows = [
        {
            "what": title,
            "within the target again, s": facts[name]["within_target_s"],
            "behind at most, s": facts[name].get("behind_at_most_s", "-"),
            "consumers": facts[name]["consumers"],
        }
        for name, title in cases.items()
        if name in facts
    ]
    return {"catch-up": table(rows)}


BENCHES: Mapping[str, Bench] = {
    "handover": Bench(
        "make bench-handover",
        {
            "handover-bounce": "Rolling bounce",
            "handover-growth": "Growth",
            "handover-pauses": "Pause of a move",
        },
        _handover,
    ),
    "deaths": Bench("make bench-deaths", {"deaths": "Deaths"}, _deaths),
    "catch-up": Bench("make bench NAME=catch-up", {"catch-up": "Backlogs"}, _catch_up),
    "split": Bench("make bench NAME=split", {"split": "A split partition"}, _split),
}
