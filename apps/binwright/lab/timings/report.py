"""The timings as a section of the lab's report: Figures 13 and 15 to 17 beside the paper's."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from binwright.lab.report.comparisons import published_tables
from binwright.lab.report.contents import Chart, ReportSection
from binwright.lab.timings.capacity import ReadCapacity
from binwright.lab.timings.outcome import Timed, TimedParts, timed
from binwright.lab.timings.published import CONDITIONS, SOURCE
from binwright.lab.timings.tables import (
    MB,
    capacities,
    comparisons,
    counts,
    durations,
    events,
    largest_difference,
)

TITLES = {
    1: ("monitor", "Δt1: until the monitor measures a step"),
    2: ("trigger", "Δt2: from a measurement to a plan (Figure 15)"),
    3: ("ready", "Δt3: from a plan to a ready consumer (Figure 16)"),
    4: ("change", "Δt4: until every partition has its new reader (Figure 17)"),
}
COLOURS = ("tab:green", "tab:olive", "tab:cyan", "tab:brown")
LOGARITHMIC = 4.0
"""A figure has a logarithmic axis above this ratio of its longest duration to its shortest."""
LEAST_S = 0.001  # of records' timestamps; a logarithmic axis has no 0
WIDTH = 7.0


def charts(timings: TimedParts) -> list[Chart]:
    """Return a chart for each Δt that was seen, and one of the capacities."""
    kinds = timed(timings)
    made = [
        _distributions(delta, [one for one in kinds if one.delta == delta and one.ours])
        for delta in TITLES
        if any(one.delta == delta and one.ours for one in kinds)
    ]
    return [*made, *([_capacities(timings.capacities)] if timings.capacities else [])]


def _distributions(delta: int, kinds: Sequence[Timed]) -> Chart:
    name, title = TITLES[delta]
    figure = Figure(figsize=(WIDTH, 4), layout="constrained")
    axes = figure.add_subplot()
    seconds: list[float] = []
    for one, colour in zip(kinds, COLOURS, strict=False):
        seconds += _ours(axes, one, colour) + _paper(axes, one)
    if max(seconds) > LOGARITHMIC * min(seconds):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0, 1.02)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_xlabel("seconds")
    axes.set_ylabel("events at most as long")
    axes.grid(color="0.9")
    figure.legend(fontsize=8, ncols=2, loc="outside lower center", frameon=False)
    axes.set_title(title, fontsize=10)
    caption = f"{title}; crosses: what was published, read off a figure."
    return Chart(name=f"timings-delta-{delta}-{name}", caption=caption, figure=figure)


def _ours(axes: Axes, one: Timed, colour: str) -> list[float]:
    assert one.ours is not None
    samples = [max(LEAST_S, sample) for sample in one.ours.samples]
    shares = [number / len(samples) for number in range(1, len(samples) + 1)]
    label = f"{one.label}: {len(samples)} events"
    # From 0 on, so that a distribution of one event is a line, too.
    axes.step([samples[0], *samples], [0.0, *shares], where="post", color=colour, label=label)
    return samples


def _paper(axes: Axes, one: Timed) -> list[float]:
    if one.paper is None:
        return []
    seconds, shares = list(one.paper.quantiles.values()), list(one.paper.quantiles)
    label = f"paper: {one.paper.observations:,} events"
    axes.plot(seconds, shares, "x:", color="black", linewidth=0.8, markersize=5, label=label)
    return seconds


def _capacities(read: Sequence[ReadCapacity]) -> Chart:
    figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
    ours, theirs = figure.subplots(1, 2)
    boxes = [
        {
            "label": f"{one.name}\npartitions: {one.partitions}\ntables: {one.tables}",
            "whislo": one.cycles.quantile(0.05) / MB,
            "q1": one.cycles.quantile(0.25) / MB,
            "med": one.cycles.quantile(0.5) / MB,
            "q3": one.cycles.quantile(0.75) / MB,
            "whishi": one.cycles.quantile(0.95) / MB,
            "fliers": [],
        }
        for one in read
    ]
    ours.bxp(boxes, medianprops={"color": "black"}, patch_artist=True)
    for patch in ours.patches:
        patch.set_facecolor("tab:green")
    ours.set_title(f"here: means differ by {largest_difference(read):.1%}", fontsize=9)
    shown = [condition for condition in CONDITIONS if condition.name in {c.name for c in read}]
    places = range(1, len(shown) + 1)
    middle = [one.p50 / MB for one in shown]
    low = [(one.p50 - one.p5) / MB for one in shown]
    high = [(one.p95 - one.p50) / MB for one in shown]
    theirs.errorbar(places, middle, yerr=[low, high], fmt="x", color="black", capsize=4)
    theirs.set_xticks(places, [one.name for one in shown])
    theirs.set_xlim(0.5, len(shown) + 0.5)
    theirs.set_title(f"paper: means differ by {largest_difference(shown):.1%}", fontsize=9)
    for axes in (ours, theirs):
        axes.set_ylim(bottom=0)
        axes.set_ylabel("MB/s")
        axes.tick_params(axis="x", labelsize=7)
        axes.grid(axis="y", color="0.9")
    caption = (
        "What one consumer reads of a backlog (Table VI, Figure 13). Boxes are quartiles; "
        "whiskers, and bars of the paper's values, the 5th and the 95th percentile."
    )
    return Chart(name="timings-fig13-capacity", caption=caption, figure=figure)


def section(timings: TimedParts, about: str) -> ReportSection:
    """Return tables and charts of what was timed.

    Args:
        timings: What was timed.
        about: The system and its load.
    """
    compared = comparisons(timings)
    tables = [
        *(durations(timings), capacities(timings.capacities), counts(timings), events(timings)),
        *published_tables("timings", compared),
    ]
    return ReportSection(
        title="Timings of a live system",
        source=SOURCE,
        about=about,
        tables=[table for table in tables if table.rows],
        charts=charts(timings),
        comparisons=compared,
    )
