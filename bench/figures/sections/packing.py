"""Figures of packings."""

from collections.abc import Mapping
from typing import Any

from bench.figures.markdown import Row, table
from bench.figures.sections.bench import Bench, Facts, Sections


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


def _zones(facts: Facts) -> Sections:
    found = {
        f"zones-{stream}": table(_by_price(facts[stream]))
        for stream in ("recorded", "walk")
        if stream in facts
    }
    rows = [
        {
            "partitions": int(size),
            "off, ms": one["off_cpu_ms"],
            "price 3, ms": one["on_cpu_ms"],
            "ratio": one["ratio"],
            "crossing off, %": one["crossing_off_per_cent"],
            "at price 3, %": one["crossing_on_per_cent"],
        }
        for size, one in facts["times"].items()
    ]
    return {**found, "zones-times": table(rows)}


def _by_price(settings: Mapping[str, Facts]) -> list[Row]:
    """Return a row for each price, with columns for each number of zones to read in."""
    found: dict[str, dict[str, Any]] = {}
    for setting, facts in settings.items():
        readable, _, price = setting.partition(" zones, price ")
        row = found.setdefault(price, {"price": price})
        row[f"{readable}: consumers"] = facts["consumers"]
        row[f"{readable}: crossing, %"] = facts["crossing_per_cent"]
        row[f"{readable}: moved, %"] = facts["moved_per_cent"]
    return list(found.values())


BENCHES: Mapping[str, Bench] = {
    "zones": Bench(
        "make bench-zones",
        {
            "zones-recorded": "Bytes that cross zones, recorded stream",
            "zones-walk": "Bytes that cross zones, 200 partitions",
            "zones-times": "CPU time of a decision with zones",
        },
        _zones,
    ),
    "packing": Bench(
        "make bench-packing",
        {
            "packing": "Time of a decision",
            "packing-exact": "Distance from the optimum",
        },
        _packing,
    ),
}
