"""The latency experiment as a section of the lab's report, published values beside ours."""

from collections.abc import Sequence

from binwright.lab.latency.experiments import LatencyModel, LatencyOutcome
from binwright.lab.latency.figures import charts
from binwright.lab.latency.published import (
    NOTE,
    SOURCE,
    Likeness,
    comparisons,
    likeness,
    values,
)
from binwright.lab.packing.experiments import PackingStream
from binwright.lab.report.comparisons import published_tables, rounded
from binwright.lab.report.contents import ReportSection, ReportTable
from binwright.lab.report.publications import GROUPS


def all_values(outcomes: Sequence[LatencyOutcome]) -> ReportTable:
    """Return what each packing gave."""
    columns = (
        *("packing", "consumers", "E[R]", "samples", "samples > 0", "share > 0, %", "unread"),
        *("p50 (> 0), s", "p90 (> 0), s", "p99 (> 0), s", "p90 (all), s", "p99 (all), s", "max, s"),
    )
    rows = []
    for one in outcomes:
        figures = values(one)
        late = [rounded(figures[name]) for name in figures if name.endswith("_s")]
        head = (one.algorithm, round(one.consumers, 2), round(one.expected_rscore, 3))
        share = round(100 * one.share, 2)
        rows.append((*head, one.total, one.above_zero, share, one.unread, *late))
    note = (
        "Percentiles of the samples above 0, as the arXiv version of the paper has them, and of "
        "all samples, as the journal version has them. A sample is one hundredth of what a "
        "consumer of full capacity reads in a second. Unread: the model leaves no rate for them; "
        "they count as read when the interval is over."
    )
    title = "Latency of each packing"
    return ReportTable(name="latency", title=title, columns=columns, rows=rows, note=note)


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
    beside = likeness(source, model) is not Likeness.OTHER
    compared = comparisons(outcomes) if beside else []
    note = f"{NOTE} Ours: {source.label}."
    return ReportSection(
        title="Latency beside Kafka's own assignment",
        source=SOURCE,
        about=(
            f"Stream: {source.label}. C' = {model.limit:g} % of the capacity, "
            f"T = {model.interval_s:g} s, rebalance time {model.rebalance_s:g} s."
        ),
        tables=[all_values(outcomes), *published_tables("latency", compared, note)],
        charts=charts(outcomes, histogram, beside=beside),
        publication=GROUPS,
        comparisons=compared,
    )
