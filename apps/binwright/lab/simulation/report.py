"""A comparison of policies as a section of the lab's report: tables, and charts over time."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from binwright.group.config import ControllerSettings
from binwright.lab.report.contents import Chart, ReportSection, ReportTable
from binwright.lab.simulation import sources
from binwright.lab.simulation.outcome import HOUR_S, Outcome, Score
from binwright.lab.simulation.run import NAMES, Run, run_all
from binwright.lab.simulation.scenario import Scenario, Timing, warm_up_s
from binwright.protocol.model import BytesPerSecond
from binwright.runtime.settings.group_config import config_of
from binwright.streams import generated

POINTS = 500
"""Points of a line over time: each is the mean or the highest of its part of the time."""
COLOURS = colormaps["tab10"].colors  # type: ignore[attr-defined] # of a listed colour map
UNITS = ((3 * 86_400.0, 86_400.0, "days"), (2 * 3_600.0, 3_600.0, "hours"), (0.0, 60.0, "minutes"))
"""The least length of a load, the unit of its time axis, both s, and the unit's name."""
LEAST_S, LEAST_BYTES, LEAST_SHARE = 0.01, 1e4, 1e-6  # what a logarithmic axis shows


def charts(scenario: Scenario, outcomes: Sequence[Outcome], scores: Sequence[Score]) -> list[Chart]:
    """Return the charts of one comparison."""
    simulated = [outcome for outcome in outcomes if outcome.latencies is not None]
    made = [
        Chart(
            name="consumers",
            caption="Consumers that run, from the request to the end, under each policy; grey: "
            "the load in units of what a consumer sustains.",
            figure=consumers(scenario, outcomes),
        )
    ]
    if simulated:
        made += [
            Chart(
                name="lag",
                caption="Bytes written and not read, the highest in each part of the time; "
                "less than 10 kB is not drawn.",
                figure=lag(simulated),
            ),
            Chart(
                name="latency",
                caption="Distribution of the time from written to read, weighed by bytes: the "
                "share that waited longer.",
                figure=latency(simulated),
            ),
            Chart(
                name="trade-off",
                caption="Mean consumers against the share of bytes outside the SLA.",
                figure=trade_off(scores),
            ),
        ]
    return made


def consumers(scenario: Scenario, outcomes: Sequence[Outcome]) -> Figure:
    """Return the consumers over time, a panel for each policy."""
    end = scenario.load.ends_at
    figure, panels, unit = _panels(outcomes, end)
    times = _times(end)
    edges = np.concatenate([times, [end]])
    needed = _load(scenario, edges) / scenario.largest_capacity
    for number, (axes, outcome) in enumerate(zip(panels, outcomes, strict=True)):
        mean = np.diff(_integral(outcome, edges)) / np.diff(edges)
        axes.fill_between(times / unit, needed, color="0.85")
        axes.plot(times / unit, mean, color=_colour(number), linewidth=1)
    panels[0].set_ylim(bottom=0)
    figure.supylabel("consumers (grey: load / limit)", fontsize=9)
    return figure


def lag(outcomes: Sequence[Outcome]) -> Figure:
    """Return the lag over time on a logarithmic scale, a panel for each policy."""
    end = outcomes[0].running.end
    figure, panels, unit = _panels(outcomes, end)
    times = _times(end)
    for number, (axes, outcome) in enumerate(zip(panels, outcomes, strict=True)):
        assert outcome.lag is not None
        last = len(outcome.lag) - 1
        parts = np.minimum(np.ceil(times).astype(int), last)
        highest = np.maximum.reduceat(outcome.lag, parts)
        drawn = np.maximum(highest, LEAST_BYTES)
        axes.fill_between(times / unit, LEAST_BYTES, drawn, color=_colour(number), step="post")
    panels[0].set_yscale("log")
    panels[0].set_ylim(bottom=LEAST_BYTES)
    figure.supylabel("lag, bytes", fontsize=9)
    return figure


def latency(outcomes: Sequence[Outcome]) -> Figure:
    """Return the share of bytes that waited longer, both scales logarithmic."""
    figure, axes = _figure()
    longest = 1.0
    for number, outcome in enumerate(outcomes):
        assert outcome.latencies is not None
        at, below = map(np.array, outcome.latencies.curve())
        longest = max(longest, float(at[-1]))
        drawn = np.maximum(1.0 - below, LEAST_SHARE)
        axes.plot(np.maximum(at, LEAST_S), drawn, color=_colour(number), label=outcome.policy)
    axes.set_xlim(LEAST_S, longest)
    axes.set_ylim(LEAST_SHARE, 1.0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("latency, seconds")
    axes.set_ylabel("share of bytes that waited longer")
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def trade_off(scores: Sequence[Score]) -> Figure:
    """Return a point for each policy: what it costs, and what it misses."""
    figure, axes = _figure()
    for number, score in enumerate(scores):
        if score.within_sla is None:
            axes.axvline(
                score.consumers_mean, color=_colour(number), linestyle="--", label=score.policy
            )
            continue
        missed = 100 * (1 - score.within_sla)
        point = score.consumers_mean, missed
        axes.plot(*point, "o", color=_colour(number), label=score.policy, clip_on=False)
    axes.set_yscale("symlog", linthresh=1e-3)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("consumers, mean")
    axes.set_ylabel("bytes outside the SLA, per cent")
    figure.legend(loc="outside right upper", fontsize=8)
    return figure


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    return figure, figure.add_subplot()


def _colour(number: int) -> tuple[float, float, float]:
    colour: tuple[float, float, float] = COLOURS[number % len(COLOURS)]
    return colour


def _panels(outcomes: Sequence[Outcome], end: float) -> tuple[Figure, list[Axes], float]:
    """Return a figure with a panel over time for each policy, and the axis's unit in seconds."""
    figure = Figure(figsize=(9, 1.1 + 1.2 * len(outcomes)), layout="constrained")
    panels = figure.subplots(len(outcomes), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    _, unit, name = next(one for one in UNITS if end >= one[0])
    for axes, outcome in zip(panels, outcomes, strict=True):
        axes.set_title(outcome.policy, fontsize=9, loc="left", pad=2)
        axes.set_xlim(0.0, end / unit)
        axes.tick_params(labelsize=8)
    panels[-1].set_xlabel(f"time, {name}", fontsize=9)
    return figure, list(panels), unit


def _times(end: float) -> NDArray[np.float64]:
    """Return the beginnings of the parts of the time, seconds."""
    times: NDArray[np.float64] = np.arange(POINTS, dtype=np.float64) * (end / POINTS)
    return times


def _load(scenario: Scenario, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean load between each two of these times, bytes/s."""
    written: NDArray[np.float64] = scenario.load.written(edges).sum(axis=1)
    mean: NDArray[np.float64] = np.diff(written) / np.diff(edges)
    return mean


def _integral(outcome: Outcome, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the consumer-seconds until each of these times."""
    steps = outcome.running
    at = np.array([*steps.times, steps.end])
    seconds = np.concatenate([[0.0], np.cumsum(np.diff(at) * np.array(steps.values))])
    integral: NDArray[np.float64] = np.interp(times, at, seconds)
    return integral


MB = 1e6


def summary(outcomes: Sequence[Outcome], scores: Sequence[Score]) -> ReportTable:
    """Return the figures of each policy."""
    priced = any(score.cost is not None for score in scores)
    notes = [f"{outcome.policy}: {outcome.note}" for outcome in outcomes if outcome.note]
    return ReportTable(
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


def series(scenario: Scenario, outcomes: Sequence[Outcome], every_s: float) -> ReportTable:
    """Return load, consumers and lag over time, a line for every `every_s` seconds."""
    load = scenario.load
    times = [every_s * number for number in range(int(load.ends_at // every_s) + 1)]
    columns: list[str] = ["time, s", "load, B/s"]
    values: list[Sequence[float | int | None]] = [
        times,
        [round(sum(load.rows[load.row_at(time)]), 1) for time in times],
    ]
    for outcome in outcomes:
        columns.append(f"{outcome.policy}: consumers")
        values.append(outcome.running.at(times))
        if outcome.lag is not None:
            columns.append(f"{outcome.policy}: lag, B")
            last = len(outcome.lag) - 1
            values.append([round(float(outcome.lag[min(round(t), last)]), 1) for t in times])
    rows = list(zip(*values, strict=True))
    return ReportTable(name="series", title="Over time", columns=tuple(columns), rows=rows)


def changes(outcomes: Sequence[Outcome]) -> ReportTable:
    """Return every plan and decision that went ahead."""
    return ReportTable(
        name="changes",
        title="Plans and decisions",
        columns=("policy", "time, s", "consumers", "moves", "reasons"),
        rows=[
            (outcome.policy, round(change.at, 3), change.consumers, change.moves, change.reasons)
            for outcome in outcomes
            for change in outcome.changes
        ],
    )


LIMIT, CAPACITY = BytesPerSecond(2_400_000.0), BytesPerSecond(2_000_000.0)
SLA_S = 5.0


def random_walk(processes: int) -> ReportSection:
    """Return all policies on two hours of a load like the paper's: 32 partitions, delta 5."""
    config = config_of(
        ControllerSettings(limit_bytes_per_s=LIMIT, capacity_bytes_per_s=CAPACITY, catch_up_s=0.0)
    )
    timing = Timing()
    walk = generated.Walk(topics=("one", "two"), partitions=16, rows=240, delta=5, seed=0)
    load = sources.generated(walk, CAPACITY, None).load(warm_up_s(config, timing))
    scenario = Scenario(load=load, config=config, timing=timing)
    jobs = [Run(label=name, policy=name, scenario=scenario, sla_s=SLA_S) for name in NAMES]
    return section(scenario, run_all(jobs, lambda _: None, processes), SLA_S)


def section(
    scenario: Scenario, outcomes: Sequence[Outcome], sla_s: float, price: float | None = None
) -> ReportSection:
    """Return what the policies cost and did; the first outcome is what others compare with."""
    scores = [outcome.score(sla_s, price) for outcome in outcomes]
    load = scenario.load
    return ReportSection(
        title="Policies on one load",
        source=f"{len(load.partitions)} partitions, {load.ends_at / HOUR_S:.1f} hours; a consumer "
        f"sustains {scenario.largest_capacity / MB:g} MB/s and is packed to "
        f"{scenario.config.capacity / MB:g} MB/s; SLA {sla_s:g} s",
        tables=[summary(outcomes, scores)],
        charts=charts(scenario, outcomes, scores),
    )
