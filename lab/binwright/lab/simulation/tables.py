"""The tables of a comparison: the figures of each policy, and what happened over time."""

from collections.abc import Sequence

from binwright.lab.report.section import Table
from binwright.lab.simulation.outcome import Outcome, Score
from binwright.lab.simulation.scenario import Scenario

MB = 1e6


def summary(outcomes: Sequence[Outcome], scores: Sequence[Score]) -> Table:
    """Return the figures of each policy."""
    priced = any(score.cost is not None for score in scores)
    notes = [f"{found.policy}: {found.note}" for found in outcomes if found.note]
    return Table(
        name="policies",
        title="Policies",
        columns=(
            *("policy", "replica-minutes", "consumers, mean", "consumers, max", "changes"),
            *("moves", "moved load, MB/s", "paused, partition-s", "lag, max, MB"),
            *("latency p50, s", "p90, s", "p99, s", "within SLA, %"),
            *(("cost",) if priced else ()),
        ),
        rows=[_row(score, priced=priced) for score in scores],
        note="; ".join(notes),
    )


def _row(score: Score, *, priced: bool) -> list[str | int | float | None]:
    return [
        score.policy,
        round(score.replica_minutes, 1),
        round(score.consumers_mean, 2),
        score.consumers_max,
        score.changes,
        score.moves,
        _rounded(score.moved_bytes_per_s, 1, MB),
        _rounded(score.paused_s, 1),
        _rounded(score.lag_max_bytes, 1, MB),
        *(_rounded(latency, 2) for latency in (score.p50_s, score.p90_s, score.p99_s)),
        _rounded(score.within_sla, 3, 0.01),
        *((_rounded(score.cost, 2),) if priced else ()),
    ]


def _rounded(value: float | None, digits: int, unit: float = 1.0) -> float | None:
    return None if value is None else round(value / unit, digits)


def series(scenario: Scenario, outcomes: Sequence[Outcome], every_s: float) -> Table:
    """Return load, consumers and lag over time, a line for every `every_s` seconds."""
    load = scenario.load
    times = [every_s * number for number in range(int(load.ends_at // every_s) + 1)]
    columns: list[str] = ["time, s", "load, B/s"]
    values: list[Sequence[float | int | None]] = [
        times,
        [round(sum(load.rows[load.row_at(time)]), 1) for time in times],
    ]
    for found in outcomes:
        columns.append(f"{found.policy}: consumers")
        values.append(found.running.at(times))
        if found.lag is not None:
            columns.append(f"{found.policy}: lag, B")
            last = len(found.lag) - 1
            values.append([round(float(found.lag[min(round(t), last)]), 1) for t in times])
    rows = list(zip(*values, strict=True))
    return Table(name="series", title="Over time", columns=tuple(columns), rows=rows)


def changes(outcomes: Sequence[Outcome]) -> Table:
    """Return every plan and decision that went ahead."""
    return Table(
        name="changes",
        title="Plans and decisions",
        columns=("policy", "time, s", "consumers", "moves", "reasons"),
        rows=[
            (found.policy, round(change.at, 3), change.consumers, change.moves, change.reasons)
            for found in outcomes
            for change in found.changes
        ],
    )
