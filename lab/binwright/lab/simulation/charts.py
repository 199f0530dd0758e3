"""The simulator's charts: consumers, lag and latency of each policy."""

from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from binwright.lab.report.section import Chart
from binwright.lab.simulation.outcome import Outcome, Score
from binwright.lab.simulation.scenario import Scenario

POINTS = 500
"""Points of a line over time: each is the mean or the highest of its part of the time."""
COLOURS = colormaps["tab10"].colors  # type: ignore[attr-defined] # of a listed colour map
UNITS = ((3 * 86_400.0, 86_400.0, "days"), (2 * 3_600.0, 3_600.0, "hours"), (0.0, 60.0, "minutes"))
"""A load of at least so many seconds is drawn in units of so many seconds, with this name."""
LEAST_S, LEAST_BYTES, LEAST_SHARE = 0.01, 1e4, 1e-6  # what a logarithmic axis shows


def charts(scenario: Scenario, outcomes: Sequence[Outcome], scores: Sequence[Score]) -> list[Chart]:
    """Return the charts of one comparison."""
    simulated = [found for found in outcomes if found.latencies is not None]
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
    for number, (axes, found) in enumerate(zip(panels, outcomes, strict=True)):
        mean = np.diff(_integral(found, edges)) / np.diff(edges)
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
    for number, (axes, found) in enumerate(zip(panels, outcomes, strict=True)):
        assert found.lag is not None
        last = len(found.lag) - 1
        parts = np.minimum(np.ceil(times).astype(int), last)
        highest = np.maximum.reduceat(found.lag, parts)
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
    for number, found in enumerate(outcomes):
        assert found.latencies is not None
        at, below = map(np.array, found.latencies.curve())
        longest = max(longest, float(at[-1]))
        drawn = np.maximum(1.0 - below, LEAST_SHARE)
        axes.plot(np.maximum(at, LEAST_S), drawn, color=_colour(number), label=found.policy)
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
    for axes, found in zip(panels, outcomes, strict=True):
        axes.set_title(found.policy, fontsize=9, loc="left", pad=2)
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


def _integral(found: Outcome, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the consumer-seconds until each of these times."""
    steps = found.running
    at = np.array([*steps.times, steps.end])
    seconds = np.concatenate([[0.0], np.cumsum(np.diff(at) * np.array(steps.values))])
    integral: NDArray[np.float64] = np.interp(times, at, seconds)
    return integral
