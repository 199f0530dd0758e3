"""Figures of the whole system and of landing."""

from collections.abc import Mapping

from bench.figures.markdown import Row, table
from bench.figures.sections.bench import Bench, Facts, Sections


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


LANDING = {
    "backlog": "Landing a backlog",
    "live": "Landing a live load",
    "live-columns": "Landing a live load as columns",
    "peers": "Landing small events beside other sinks",
    "backlog-columns": "Landing a backlog as columns",
    "backlog-avro": "Landing a backlog of Avro as columns",
    "tables": "Landing into fifty tables",
    "growth": "Commits in an old table",
}


def _landing(facts: Facts) -> Sections:
    return {f"landing-{name}": table(facts[name]) for name in LANDING if name in facts}


BENCHES: Mapping[str, Bench] = {
    "demo": Bench("python -m bench.demo", {"demo": "The whole system on one machine"}, _demo),
    "landing": Bench(
        "make bench-landing",
        {f"landing-{name}": title for name, title in LANDING.items()},
        _landing,
    ),
}
