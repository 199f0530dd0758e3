"""Figures of hand-overs and deaths."""

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
}
