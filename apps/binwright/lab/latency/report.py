"""The latency experiment as a section of the lab's report, published values beside ours."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from binwright.lab.latency import published
from binwright.lab.latency.experiments import LatencyModel, LatencyOutcome
from binwright.lab.latency.figures import charts
from binwright.lab.latency.published import (
    DIGITS,
    Headline,
    Likeness,
    headlines,
    kafka_differences,
    likeness,
    outside_ranges,
    published_values,
    values,
)
from binwright.lab.packing.experiments import PackingStream
from binwright.lab.report.contents import (
    Cell,
    Chart,
    PublishedComparison,
    ReportSection,
    ReportTable,
)
from binwright.lab.report.publications import GROUPS

LABELS: Mapping[str, str] = MappingProxyType(
    {
        "consumers": "consumers",
        "expected_rscore": "E[R]",
        "above_zero": "samples > 0",
        "share": "share > 0",
        "p90_above_zero_s": "p90 (> 0), s",
        "p99_all_s": "p99 (all), s",
        "max_s": "max, s",
    }
)
"""What is compared with published values."""
EXACT = ("above_zero", "p90_above_zero_s", "p99_all_s", "max_s")
"""Of kd_n, which does not depend on how ties are broken."""
NEAR = ("consumers", "expected_rscore", "share", "p99_all_s")
"""Of the twelve."""
_STREAM = "Published values are of the paper's recorded stream."
_ANOTHER = (
    f"{_STREAM} Ours are of another stream of the same rule, so differences are the streams'."
)

Outcomes = Sequence[LatencyOutcome]


def all_values(outcomes: Outcomes) -> ReportTable:
    """Return what each packing gave."""
    columns = (
        *("packing", "consumers", "E[R]", "samples", "samples > 0", "share > 0, %"),
        *("p50 (> 0), s", "p90 (> 0), s", "p99 (> 0), s", "p90 (all), s", "p99 (all), s", "max, s"),
    )
    rows = []
    for one in outcomes:
        figures = values(one)
        late = [_rounded(figures[name]) for name in figures if name.endswith("_s")]
        head = (one.algorithm, round(one.consumers, 2), round(one.expected_rscore, 3))
        rows.append((*head, one.total, one.above_zero, round(100 * one.share, 2), *late))
    note = (
        "Percentiles of the samples above 0, as the arXiv version of the paper has them, and of "
        "all samples, as the journal version has them. A sample is one hundredth of what a "
        "consumer of full capacity reads in a second."
    )
    title = "Latency of each packing"
    return ReportTable(name="latency", title=title, columns=columns, rows=rows, note=note)


def kafka_beside_published(outcomes: Outcomes, *, recorded: bool) -> ReportTable:
    """Return kd_n beside the published values; no row if none of them ran."""
    title, known = "kd_n beside the published values", published.KAFKA
    columns, rows = _pairs(outcomes, known, EXACT)
    note = _STREAM if recorded else _ANOTHER
    return ReportTable(name="latency-kafka", title=title, columns=columns, rows=rows, note=note)


def packings_beside_published(outcomes: Outcomes, *, recorded: bool) -> ReportTable:
    """Return the twelve beside the published values; no row if none of them ran."""
    title, known = "The twelve beside the published values", published.PACKINGS
    columns, rows = _pairs(outcomes, known, NEAR)
    stream = _STREAM if recorded else _ANOTHER
    note = f"{stream} They are means of five ways to break ties; ours is one more way."
    return ReportTable(name="latency-packings", title=title, columns=columns, rows=rows, note=note)


def mwf_in_ranges(outcomes: Outcomes) -> ReportTable:
    """Return MWF beside the published ranges; no row if it did not run."""
    rows = []
    for mwf in (one for one in outcomes if one.algorithm == "mwf"):
        ours, outside = values(mwf), outside_ranges(mwf)
        for name, (least, most) in published.MWF_RANGES.items():
            inside = "no" if name in outside else "yes"
            rows.append((LABELS[name], _rounded(ours[name]), least, most, inside))
    return ReportTable(
        name="latency-mwf",
        title="MWF beside the published ranges",
        columns=("value", "ours", "published, least", "published, most", "within"),
        rows=rows,
        note=f"{_STREAM} The ranges are of 400 ways to break ties.",
    )


def claims_and_grounds(claims: Sequence[Headline]) -> ReportTable:
    """Return the paper's sentences."""
    return ReportTable(
        name="latency-headlines",
        title="The paper's sentences, and what they rest on",
        columns=("claim", "published", "ours", "rests on"),
        rows=[(one.claim, one.published, one.ours, one.rests_on) for one in claims],
    )


def _pairs(
    outcomes: Outcomes,
    known: Mapping[str, Mapping[str, float | None]],
    names: Sequence[str],
) -> tuple[list[str], list[list[Cell]]]:
    columns = ["packing"]
    for name in names:
        columns += [LABELS[name], "published", "difference"]
    rows = []
    for one in outcomes:
        if one.algorithm not in known:
            continue
        ours, theirs, cells = (
            values(one),
            published_values(one.algorithm),
            list[Cell]([one.algorithm]),
        )
        for name in names:
            mine, its = _rounded(ours[name]), theirs[name]
            gap = None if mine is None or its is None else _rounded(mine - its)
            cells += [mine, its, gap]
        rows.append(cells)
    return columns, rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def latency_section(
    outcomes: Sequence[LatencyOutcome],
    source: PackingStream,
    model: LatencyModel,
    histogram: Sequence[str],
) -> ReportSection:
    """Return the experiment's tables and its charts, Figures 5 to 8 of the paper.

    Args:
        outcomes: In the order to show them.
        source: The stream of all of them.
        model: With which they were made.
        histogram: The packings of Figure 5; their outcomes keep samples, or are left out.
    """
    like = likeness(source, model)
    same, shown = like is Likeness.SAME, like is not Likeness.OTHER
    beside = [
        kafka_beside_published(outcomes, recorded=same),
        packings_beside_published(outcomes, recorded=same),
        *([mwf_in_ranges(outcomes)] if same else []),
    ]
    claims = claims_and_grounds(headlines(outcomes, model))
    tables = [
        table for table in (all_values(outcomes), *(beside if shown else []), claims) if table.rows
    ]
    drawn = charts(outcomes, histogram, beside=shown)
    return ReportSection(
        title="Latency beside Kafka's own assignment",
        source="Landau, Andrade, Barbosa, arXiv 2402.06085, Section VI-C, Figures 5 to 8",
        expected=(
            "MWF's records are late by the rebalance time at most, those of kd_n by minutes where "
            f"consumers are overloaded. Published: p90 of MWF {published.P90_S} s, of kd_15 with "
            f"as many consumers {published.KAFKA['kd_15']['p90_above_zero_s']} s; kd_n needs at "
            f"least {100 * published.MORE_CONSUMERS:.0f} % more consumers to be better."
        ),
        seen=_seen(outcomes, source.label, model, recorded=same),
        tables=tables,
        charts=drawn,
        publication=GROUPS,
        comparisons=published_comparisons(outcomes, tables, drawn, recorded=same) if shown else (),
    )


def _seen(
    outcomes: Sequence[LatencyOutcome], stream: str, model: LatencyModel, *, recorded: bool
) -> str:
    used = f"C' = {model.limit:g} % of the capacity, T = {model.interval_s:g} s"
    parts = [f"Stream: {stream}. {used}, rebalance time {model.rebalance_s:g} s."]
    if unread := sum(one.unread for one in outcomes):
        parts.append(f"The model leaves no rate to read {unread:,} samples: they wait at least T.")
    if not recorded:
        return " ".join([*parts, "The published values are of another stream."])
    if gaps := kafka_differences(outcomes):
        differing = sum(gap > 0 for gap in gaps)
        parts.append(
            f"Of {len(gaps)} published values of kd_n {differing} differ, by {max(gaps):g} at most."
        )
    for mwf in (one for one in outcomes if one.algorithm == "mwf"):
        outside = ", ".join(outside_ranges(mwf))
        verdict = f"but for {outside}" if outside else "each"
        parts.append(f"MWF's values are within the range of its ties, {verdict}.")
    shares = [
        abs((values(one)["share"] or 0.0) - published.PACKINGS[one.algorithm]["share"])
        for one in outcomes
        if one.algorithm in published.PACKINGS
    ]
    if shares:
        parts.append(
            "The shares of samples above 0 of the twelve differ from published means by "
            f"{100 * max(shares):.1f} points at most."
        )
    return " ".join(parts)


ANOTHER = "Another stream of the same rule. "
"""Where the recorded stream is not at hand, a difference is of the streams, too."""
NONE = "No published packing ran."

Gap = tuple[float, str]


def published_comparisons(
    outcomes: Outcomes, tables: Sequence[ReportTable], charts: Sequence[Chart], *, recorded: bool
) -> list[PublishedComparison]:
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
        PublishedComparison(
            of=f"Figure {number}",
            ours=(f"latency-figure-{number}", *named),
            difference=("" if recorded else ANOTHER) + difference(outcomes),
        )
        for number, difference in differences.items()
        if f"latency-figure-{number}" in drawn
    ]


def _figure_5(outcomes: Outcomes) -> str:
    longest = {
        "kd_27": published.KAFKA["kd_27"]["max_s"] or 0.0,
        "mwf": published.MWF_RANGES["max_s"][1],
    }
    gaps = [
        f"{one.algorithm}'s longest {one.max_s:.3f} s, {one.max_s - longest[one.algorithm]:+.3f} s"
        for one in outcomes
        if one.algorithm in longest
    ]
    return f"{'; '.join(gaps)}." if gaps else NONE


def _figure_6(outcomes: Outcomes) -> str:
    gaps = [
        (one.consumers - published.PACKINGS[one.algorithm]["consumers"], one.algorithm)
        for one in outcomes
        if one.algorithm in published.PACKINGS
    ]
    least, most = published.MWF_RANGES["consumers"]
    mwf = [
        f"mwf {one.consumers:.2f}, published {least:g} to {most:g}. "
        for one in outcomes
        if one.algorithm == "mwf"
    ]
    return "".join(mwf) + _largest(gaps, "of the twelve", "consumers", 2)


def _figure_7(outcomes: Outcomes) -> str:
    kafka = [
        (100 * (one.share - (known["above_zero"] or 0.0) / published.TOTAL), one.algorithm)
        for one in outcomes
        if (known := published.KAFKA.get(one.algorithm))
    ]
    twelve = [
        (100 * (one.share - published.PACKINGS[one.algorithm]["share"]), one.algorithm)
        for one in outcomes
        if one.algorithm in published.PACKINGS
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
        if (known := published.KAFKA.get(one.algorithm))
        for name in names
        if (ours := values(one)[name]) is not None and (theirs := known[name]) is not None
    ]
    mwf = [
        f"mwf's p90 {late:.3f} s, published {published.P90_S:.2f} s. "
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
