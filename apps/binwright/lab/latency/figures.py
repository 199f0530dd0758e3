"""Figures 5 to 8 of the paper, the published values beside ours."""

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from binwright.lab.latency import published
from binwright.lab.latency.experiments import LatencyOutcome
from binwright.lab.report.contents import Chart
from binwright.packing.catalogue import PAPER

KAFKA, CLASSIC, MODIFIED, OURS = (
    "kd_n, as Kafka assigns",
    "classical",
    "modified",
    "binwright's own",
)
COLOURS: Mapping[str, str] = MappingProxyType(
    {KAFKA: "#8c96a3", CLASSIC: "#4c78a8", MODIFIED: "#e07b39", OURS: "#3a923a"}
)
BINS = 30
"""Of the histogram, at least."""
PUBLISHED: Mapping[str, Any] = MappingProxyType(
    {
        "color": "black",
        "marker": "x",
        "linestyle": "",
        "markersize": 5,
        "label": "published, recorded stream",
    }
)
Outcomes = Sequence[LatencyOutcome]


def charts(outcomes: Outcomes, histogram: Sequence[str], *, beside: bool) -> list[Chart]:
    """Return the charts of the figures; those are left out for which there is no sample above 0.

    Args:
        outcomes: In the order to show them.
        histogram: The packings of Figure 5; those are shown whose outcomes keep their samples.
        beside: Show published values beside these.
    """
    late = [one for one in outcomes if one.above_zero]
    kept = [one for one in late if one.algorithm in histogram and one.samples is not None]
    return [
        *([figure_5(kept, beside=beside)] if kept else []),
        figure_6(outcomes, beside=beside),
        figure_7(outcomes, beside=beside),
        *([figure_8(late, beside=beside)] if late else []),
    ]


def figure_5(outcomes: Outcomes, *, beside: bool) -> Chart:
    """Return a histogram of the latencies above 0 of these packings, which have some."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    largest = max(one.max_s for one in outcomes)
    width = bin_width(largest)
    edges = np.arange(0, largest + width, width)
    for one, style in zip(outcomes, cycle(("-", "--", "-.", ":")), strict=False):
        assert one.samples is not None
        counts, colour = one.samples.histogram(edges.tolist()), COLOURS[_kind(one)]
        label = f"{one.algorithm}: {one.above_zero:,} of {one.total:,} samples"
        axes.stairs(counts, edges, fill=True, alpha=0.25, color=colour)
        axes.stairs(counts, edges, color=colour, label=label, linestyle=style)
        if beside and (known := _published_max(one.algorithm)) is not None:
            axes.axvline(known, color=colour, linestyle=":")
    axes.set_yscale("log")
    axes.set_xlim(0, float(edges[-1]))
    dotted = "; dotted: published maxima, recorded stream" if beside else ""
    axes.set_xlabel(f"latency, s (above 0; bins of {width:g} s{dotted})")
    axes.set_ylabel("samples")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    names = " and ".join(one.algorithm for one in outcomes)
    axes.set_title(f"Latencies above 0 of {names} (Figure 5)", fontsize=10)
    maxima = f"published: kd_27 up to {published.KAFKA['kd_27']['max_s']} s, MWF up to 5 s"
    caption = f"Figure 5: how many samples have each latency; {maxima}."
    return Chart(name="latency-figure-5", caption=caption, figure=figure, figures=("Figure 5",))


def bin_width(largest: float) -> float:
    """Return the widest bin of 1, 2 or 5 times a power of ten that makes `BINS` of them."""
    magnitude = 10 ** np.floor(np.log10(largest / BINS))
    return float(
        max(digit * magnitude for digit in (1, 2, 5) if digit * magnitude * BINS <= largest)
    )


def figure_6(outcomes: Outcomes, *, beside: bool) -> Chart:
    """Return the mean number of consumers of each packing."""
    figure, axes = _bars(outcomes, lambda one: one.consumers, "consumers, mean")
    _mark(axes, outcomes, beside, lambda name: published.PACKINGS.get(name, {}).get("consumers"))
    axes.set_title("Consumers, the operational cost (Figure 6)", fontsize=10)
    _legend(figure, outcomes, beside=beside)
    caption = "Figure 6: consumers of each packing, mean over the stream. kd_n has n throughout."
    return Chart(name="latency-figure-6", caption=caption, figure=figure, figures=("Figure 6",))


def figure_7(outcomes: Outcomes, *, beside: bool) -> Chart:
    """Return how many samples are above 0."""
    figure, axes = _bars(outcomes, lambda one: one.above_zero, "samples above 0")
    caption = "Figure 7: samples with a latency above 0."
    if most := max(one.above_zero for one in outcomes):
        linear = max(1, 10 ** (len(str(most)) - 3))
        axes.set_yscale("symlog", linthresh=linear)
        axes.set_ylim(bottom=0, top=2 * most)
        caption += f" Linear up to {linear:,}, logarithmic beyond."
    _mark(axes, outcomes, beside, _published_above_zero)
    axes.set_title("Samples with a latency above 0 (Figure 7)", fontsize=10)
    _legend(figure, outcomes, beside=beside)
    return Chart(name="latency-figure-7", caption=caption, figure=figure, figures=("Figure 7",))


def figure_8(outcomes: Outcomes, *, beside: bool) -> Chart:
    """Return a box plot of the latencies above 0 of these packings, which have some."""
    figure, axes = _canvas()
    boxes = []
    for one in outcomes:
        low, q1, median, q3, high = (one.above_zero_s[p] for p in (1, 25, 50, 75, 99))
        box = {"label": one.algorithm, "whislo": low, "q1": q1, "med": median, "q3": q3}
        boxes.append({**box, "whishi": high, "fliers": []})
    places = list(range(len(outcomes)))
    drawn = axes.bxp(
        boxes, positions=places, widths=0.7, patch_artist=True, medianprops={"color": "black"}
    )
    for patch, one in zip(drawn["boxes"], outcomes, strict=True):
        patch.set_facecolor(COLOURS[_kind(one)])
    ninety = [one.above_zero_s[90] for one in outcomes]
    axes.plot(places, ninety, "o", color="white", markeredgecolor="black", markersize=4)
    _mark(axes, outcomes, beside, _published_p90)
    axes.set_yscale("log")
    axes.set_ylabel("latency above 0, s")
    axes.tick_params(axis="x", rotation=90, labelsize=8)
    axes.set_title("Latencies above 0: quartiles, 1st and 99th percentile (Figure 8)", fontsize=10)
    dot = Line2D([], [], marker="o", color="white", markeredgecolor="black", linestyle="")
    dot.set_label("90th percentile")
    _legend(figure, outcomes, dot, beside=beside)
    caption = (
        "Figure 8: latencies above 0. Boxes are quartiles, whiskers the 1st and the 99th "
        "percentile. Packings without such a sample are left out."
    )
    return Chart(name="latency-figure-8", caption=caption, figure=figure, figures=("Figure 8",))


def _kind(outcome: LatencyOutcome) -> str:
    if outcome.algorithm.startswith("kd_"):
        return KAFKA
    if outcome.algorithm not in PAPER:
        return OURS
    return MODIFIED if outcome.algorithm.startswith("m") else CLASSIC


def _canvas() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    axes = figure.add_subplot()
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    return figure, axes


def _bars(
    outcomes: Outcomes, value: Callable[[LatencyOutcome], float], label: str
) -> tuple[Figure, Axes]:
    figure, axes = _canvas()
    names = [one.algorithm for one in outcomes]
    colours = [COLOURS[_kind(one)] for one in outcomes]
    axes.bar(range(len(names)), [value(one) for one in outcomes], color=colours)
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
    axes.set_xlim(-0.7, len(names) - 0.3)
    axes.set_ylabel(label)
    return figure, axes


def _mark(
    axes: Axes, outcomes: Outcomes, beside: bool, value: Callable[[str], float | None]
) -> None:
    if not beside:
        return
    values = ((place, value(one.algorithm)) for place, one in enumerate(outcomes))
    known = [(place, theirs) for place, theirs in values if theirs is not None]
    places = [place for place, _ in known]
    axes.plot(places, [theirs for _, theirs in known], **PUBLISHED)


def _published_max(name: str) -> float | None:
    if name == "mwf":
        return published.MWF_RANGES["max_s"][1]
    return published.KAFKA.get(name, {}).get("max_s")


def _published_above_zero(name: str) -> float | None:
    if name in published.PACKINGS:
        return published.PACKINGS[name]["share"] * published.TOTAL
    return published.KAFKA.get(name, {}).get("above_zero")


def _published_p90(name: str) -> float | None:
    return (
        published.P90_S if name == "mwf" else published.KAFKA.get(name, {}).get("p90_above_zero_s")
    )


def _legend(figure: Figure, outcomes: Outcomes, *more: Line2D, beside: bool) -> None:
    kinds = dict.fromkeys(_kind(one) for one in outcomes)
    patches = [Patch(color=COLOURS[kind], label=kind) for kind in kinds]
    marks = [Line2D([], [], **PUBLISHED)] if beside else []
    handles = [*patches, *more, *marks]
    columns = len(handles)
    figure.legend(
        handles=handles, fontsize=8, ncols=columns, loc="outside lower center", frameon=False
    )
