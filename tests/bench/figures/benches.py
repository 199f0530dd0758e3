"""From what each bench prints, as JSON, to sections of the page of figures."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.bench.figures.markdown import Row, table

Facts = Any  # JSON, as the bench prints it
Sections = Mapping[str, str]  # name -> Markdown


@dataclass(frozen=True, slots=True)
class Bench:
    """How the figures of one bench are shown.

    Attributes:
        command: What measures them.
        titles: Each section that the bench may fill, and its heading.
        sections: Makes the sections of what was measured; some may be left out of a run.
    """

    command: str
    titles: Mapping[str, str]
    sections: Callable[[Facts], Sections]


# --- the system as a whole ---------------------------------------------------------------------


def _demo(facts: Facts) -> Sections:
    runs = {"first_run": "first run", "second_run": "second run", "flood": "flood"}
    rows = [_demo_row(title, facts[run]) for run, title in runs.items() if run in facts]
    return {"demo": table(rows)}


def _demo_row(title: str, facts: Facts) -> Row:
    ages = facts["row_age_s"].values()
    return {
        "run": title,
        "ready after s": facts["ready_s"],
        "rows written": facts["produced_records"],
        "rows landed": facts["landed_rows"],
        "MB/s landed": facts.get("landed_mb_per_s"),
        "consumers": f"{facts['consumers']['min']} to {facts['consumers']['max']}",
        "moves": facts["moves"],
        "pause p50, s": facts["pause_s"]["p50"],
        "pause p99, s": facts["pause_s"]["p99"],
        "age p50, s": max(age["p50"] for age in ages),
        "age p99, s": max(age["p99"] for age in ages),
    }


# --- landing -----------------------------------------------------------------------------------

LANDING = {
    "backlog": "Landing a backlog",
    "live": "Landing a live load",
    "tables": "Landing into fifty tables",
    "growth": "Commits in an old table",
}


def _landing(facts: Facts) -> Sections:
    return {f"landing-{name}": table(facts[name]) for name in LANDING if name in facts}


# --- hand-over ---------------------------------------------------------------------------------

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


# --- the controller ----------------------------------------------------------------------------


def _controller(facts: Facts) -> Sections:
    return {
        "controller": table(
            [
                {
                    "group": one["group"],
                    "CPU-s a second": one["in all"],
                    "of it decoding": one["of it decoding"] + one["of measurements decoding"],
                    "MB": one["MB"],
                }
                for one in facts
            ]
        )
    }


def _groups(facts: Facts) -> Sections:
    return {"groups": table(facts)}


def _takeover(facts: Facts) -> Sections:
    return {"takeover": _pairs(facts)}


def _pairs(facts: Mapping[str, Any]) -> str:
    return table([{"figure": name, "value": number} for name, number in facts.items()])


# --- packing and monitor -----------------------------------------------------------------------


def _packing(facts: Facts) -> Sections:
    found = {}
    rows = [
        {"partitions": int(size), **_times(name, facts[name][size])}
        for name in ("sticky", "mwf")
        for size in facts[name]
        if size.isdigit()
    ]
    if rows:
        found["packing"] = table(_joined(rows))
    exact = facts["sticky_above_exact"].items()
    return {**found, "packing-exact": table([_above_exact(name, one) for name, one in exact])}


def _above_exact(setting: str, facts: Facts) -> Row:
    return {
        "setting": setting,
        "mean, %": facts["mean_gap_per_cent"],
        "most, %": facts["most_per_cent"],
        "decisions": facts["decisions"],
    }


def _times(name: str, facts: Facts) -> Row:
    return {f"{name} p50, ms": facts["p50_ms"], f"{name}, first, ms": facts["first_ms"]}


def _joined(rows: list[dict[str, Any]]) -> list[Row]:
    """Return the rows of one size as one."""
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["partitions"], {}).update(row)
    return list(found.values())


def _monitor(facts: Facts) -> Sections:
    rows = [*_real(facts.get("real_broker", {})), *_frames(facts.get("frames", {}))]
    return {"monitor": table(rows)}


def _real(sizes: Mapping[str, Any]) -> Iterator[Row]:
    for size, clients in sizes.items():
        for client, one in clients.items():
            if isinstance(one, dict):
                yield _monitored(int(size), client, one)


def _frames(sizes: Mapping[str, Any]) -> Iterator[Row]:
    for size, one in sizes.items():
        yield _monitored(int(size), "binwright, brokers of frames", one)


def _monitored(size: int, client: str, facts: Facts) -> Row:
    return {
        "partitions": size,
        "client": client,
        "passes/s": facts["passes_per_s"],
        "core": facts["cores"],
        "CPU a pass, ms": facts["cpu_ms_per_pass"],
        "MB": facts["rss_mb"],
        "broker, core": facts["broker_cores"],
    }


# --- Kubernetes --------------------------------------------------------------------------------


def _kubernetes(facts: Facts) -> Sections:
    fifty, idle, slot = facts["deployments_50"], facts["idle_50"], facts["slot_to_ready"]
    return {
        "kubernetes": _pairs(
            {
                "50 Deployments created, s": fifty["created_s"],
                "50 Deployments running, s": fifty["running_s"],
                "50 idle slots, core": idle["cores"],
                "50 idle slots, MB": idle["rss_mb"],
                "from a slot to ready, the first, s": slot["first_s"],
                "the second, s": slot["second_s"],
                "the third, s": slot["third_s"],
            }
        )
    }


# --- the simulator -----------------------------------------------------------------------------


def _simulation(facts: Facts) -> Sections:
    found: dict[str, str] = {}
    if live := facts.get("live"):
        runs = {
            "live": "live",
            "recording": "simulated, from its recording",
            "stream": "simulated, from the stream that was played",
        }
        found["simulation-live"] = table(
            [_simulated(title, live[run]) for run, title in runs.items()]
        )
    if week := facts.get("week"):
        rows = [_policy(score) for score in week["policies"]]
        took = f"All of them together took {week['took_s']:.0f} s."
        found["simulation-week"] = f"{table(rows)}\n\n{took}"
    return found


def _simulated(title: str, facts: Facts) -> Row:
    equal = facts.get("equal")
    return {
        "run": title,
        "consumers, mean": facts["mean"],
        "plans": facts["plans"],
        "seconds with as many consumers, %": None if equal is None else 100 * equal,
    }


def _policy(score: Facts) -> Row:
    within, lag = score["within_sla"], score["lag_max_bytes"]
    return {
        "policy": score["policy"],
        "replica-minutes": round(score["replica_minutes"]),
        "consumers, mean": score["consumers_mean"],
        "max": score["consumers_max"],
        "moves": score["moves"],
        "lag, max, MB": None if lag is None else lag / 1e6,
        "latency p99, s": score["p99_s"],
        "within 5 s, %": None if within is None else f"{100 * within:.2f}",
    }


BENCHES: Mapping[str, Bench] = {
    "demo": Bench("python -m tests.bench.demo", {"demo": "The whole system on one machine"}, _demo),
    "landing": Bench(
        "make bench-landing",
        {f"landing-{name}": title for name, title in LANDING.items()},
        _landing,
    ),
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
    "controller": Bench("make bench-controller", {"controller": "Cost of a group"}, _controller),
    "groups": Bench("make bench-groups", {"groups": "Cost of many groups"}, _groups),
    "takeover": Bench("make bench-takeover", {"takeover": "Take-over"}, _takeover),
    "packing": Bench(
        "make bench-packing",
        {
            "packing": "Time of a decision",
            "packing-exact": "Distance from the optimum",
        },
        _packing,
    ),
    "simulation": Bench(
        "make bench-simulation",
        {
            "simulation-live": "A live run and its simulation",
            "simulation-week": "A week under every policy",
        },
        _simulation,
    ),
    "monitor": Bench("make bench-monitor", {"monitor": "Cost of the monitor"}, _monitor),
    "kubernetes": Bench(
        "make bench-kubernetes", {"kubernetes": "Consumers on Kubernetes"}, _kubernetes
    ),
}
"""Every bench whose figures the page has, in the order in which `make bench` runs them."""
