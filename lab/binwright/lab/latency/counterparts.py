"""How far the experiment's figures are from the published ones."""

from collections.abc import Callable, Mapping, Sequence

from binwright.lab.latency import paper
from binwright.lab.latency.comparison import values
from binwright.lab.latency.experiments import LatencyOutcome
from binwright.lab.report.section import Chart, Counterpart, Table

ANOTHER = "Another stream of the same rule. "
"""Where the recorded stream is not at hand, a difference is of the streams, too."""
NONE = "No published packing ran."

Outcomes = Sequence[LatencyOutcome]
Gap = tuple[float, str]


def counterparts(
    outcomes: Outcomes, tables: Sequence[Table], charts: Sequence[Chart], *, recorded: bool
) -> list[Counterpart]:
    """Return what there is of Figures 5 to 8, as far as they were drawn.

    Args:
        outcomes: In any order.
        tables: Of the section.
        charts: Of the section.
        recorded: Whether they are of the stream of the published values.
    """
    differences: Mapping[str, Callable[[Outcomes], str]] = {
        "5": _figure_5,
        "6": _figure_6,
        "7": _figure_7,
        "8": _figure_8,
    }
    drawn = {chart.name for chart in charts}
    named = [table.name for table in tables if table.name in {"latency-kafka", "latency-packings"}]
    return [
        Counterpart(
            of=f"Figure {number}",
            ours=(f"latency-figure-{number}", *named),
            difference=("" if recorded else ANOTHER) + difference(outcomes),
        )
        for number, difference in differences.items()
        if f"latency-figure-{number}" in drawn
    ]


def _figure_5(outcomes: Outcomes) -> str:
    longest = {"kd_27": paper.KAFKA["kd_27"]["max_s"] or 0.0, "mwf": paper.MWF_RANGES["max_s"][1]}
    found = [
        f"{one.algorithm}'s longest {one.max_s:.3f} s, {one.max_s - longest[one.algorithm]:+.3f} s"
        for one in outcomes
        if one.algorithm in longest
    ]
    return f"{'; '.join(found)}." if found else NONE


def _figure_6(outcomes: Outcomes) -> str:
    gaps = [
        (one.consumers - paper.PACKINGS[one.algorithm]["consumers"], one.algorithm)
        for one in outcomes
        if one.algorithm in paper.PACKINGS
    ]
    least, most = paper.MWF_RANGES["consumers"]
    mwf = [
        f"mwf {one.consumers:.2f}, published {least:g} to {most:g}. "
        for one in outcomes
        if one.algorithm == "mwf"
    ]
    return "".join(mwf) + _largest(gaps, "of the twelve", "consumers", 2)


def _figure_7(outcomes: Outcomes) -> str:
    kafka = [
        (100 * (one.share - (known["above_zero"] or 0.0) / paper.TOTAL), one.algorithm)
        for one in outcomes
        if (known := paper.KAFKA.get(one.algorithm))
    ]
    twelve = [
        (100 * (one.share - paper.PACKINGS[one.algorithm]["share"]), one.algorithm)
        for one in outcomes
        if one.algorithm in paper.PACKINGS
    ]
    samples = "points of all samples"
    return (
        f"{_largest(kafka, 'of kd_n', samples, 2)} {_largest(twelve, 'of the twelve', samples, 2)}"
    )


def _figure_8(outcomes: Outcomes) -> str:
    names = [f"p{percent}_above_zero_s" for percent in (50, 90, 99)]
    gaps = [
        (ours - theirs, f"{one.algorithm}, {name.split('_')[0]}")
        for one in outcomes
        if (known := paper.KAFKA.get(one.algorithm))
        for name in names
        if (ours := values(one)[name]) is not None and (theirs := known[name]) is not None
    ]
    mwf = [
        f"mwf's p90 {late:.3f} s, published {paper.P90_S:.2f} s. "
        for one in outcomes
        if one.algorithm == "mwf" and (late := values(one)["p90_above_zero_s"]) is not None
    ]
    return "".join(mwf) + _largest(gaps, "of kd_n", "s", 3)


def _largest(gaps: Sequence[Gap], whose: str, unit: str, digits: int) -> str:
    """Return the largest difference in words."""
    if not gaps:
        return NONE
    gap, name = max(gaps, key=lambda one: abs(one[0]))
    # `+ 0.0` makes a rounded -0.0 a 0.0.
    return f"Largest {whose} {round(gap, digits) + 0.0:+,.{digits}f} {unit} ({name})."
