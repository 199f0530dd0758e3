"""Figures of the lab."""

from collections.abc import Mapping

from bench.figures.markdown import Row, table
from bench.figures.sections.bench import Bench, Facts, Sections


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
        took = f"All of them together took {week['took_s']:.0f} s and {week['cpu_s']:.0f} CPU-s."
        found["simulation-week"] = f"{table(rows)}\n\n{took}"
    return found


def _simulated(title: str, facts: Facts) -> Row:
    equal = facts.get("equal")
    return {
        "run": title,
        "consumers, mean": facts["mean"],
        "plans": facts["plans"],
        "seconds with as many consumers, %": None if equal is None else 100 * equal,
        "the others, s": "; ".join(
            f"{cause}: {seconds}" for cause, seconds in facts.get("seconds_by_cause", {}).items()
        )
        or None,
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


def _sweep(facts: Facts) -> Sections:
    rows = [
        {
            "executors": run["executors"],
            "s": run["took_s"],
            "cores busy with other work": run["others"],
        }
        for run in facts["runs"]
    ]
    same = "equal" if facts["same_numbers"] else "NOT equal"
    summary = (
        f"{facts['points']} simulations, {facts['cpu_s_in_one_process']:.0f} CPU-s in one process; "
        f"two executors do {facts['of_linear']:.2f} of twice as many as one. "
        f"The results are {same} to those of one process."
    )
    return {"sweep": f"{table(rows)}\n\n{summary}"}


def _prediction(facts: Facts) -> Sections:
    rows = [
        {
            "load": one["load"],
            "start-up, s": one["start_up_s"],
            **{kind["kind"]: _known(kind) for kind in one["kinds"]},
        }
        for one in facts["compared"]
    ]
    return {"prediction": table(rows)}


def _known(facts: Facts) -> str:
    """Return replica-minutes, the share within 5 s, and points gained at equal minutes."""
    minutes, within = facts["default"]
    shown = f"{round(minutes):,}: {within:.2f}"
    if facts["gain"] is not None:
        shown += f" ({round(facts['gain'], 2) + 0.0:+.2f})"
    return shown


TIMINGS = {"timings": "Durations", "timings-capacity": "A consumer's capacity"}


def _timings(facts: Facts) -> Sections:
    """Return the tables as the command has them, in which the paper's values are."""
    return {name: table(rows) for name in TIMINGS if (rows := facts["tables"].get(name))}


BENCHES: Mapping[str, Bench] = {
    "simulation": Bench(
        "make bench-simulation",
        {
            "simulation-live": "A live run and its simulation",
            "simulation-week": "A week under every policy",
        },
        _simulation,
    ),
    "prediction": Bench(
        "make bench-prediction", {"prediction": "A forecast of the load"}, _prediction
    ),
    "sweep": Bench("make bench-sweep", {"sweep": "A sweep on one and two executors"}, _sweep),
    "timings": Bench("make bench-timings", TIMINGS, _timings),
}
