"""The latency experiment as a section of the lab's report."""

from collections.abc import Sequence

from binwright.lab.latency import paper
from binwright.lab.latency.comparison import (
    Likeness,
    kafka_differences,
    likeness,
    outside_ranges,
    values,
)
from binwright.lab.latency.counterparts import counterparts
from binwright.lab.latency.experiments import LatencyOutcome
from binwright.lab.latency.figures import charts
from binwright.lab.latency.headlines import headlines
from binwright.lab.latency.queues import LatencyModel
from binwright.lab.latency.tables import (
    all_values,
    claims_and_grounds,
    kafka_beside_published,
    mwf_in_ranges,
    packings_beside_published,
)
from binwright.lab.packing.experiments import StreamSource
from binwright.lab.report.publications import GROUPS
from binwright.lab.report.section import Section


def latency_section(
    outcomes: Sequence[LatencyOutcome],
    source: StreamSource,
    model: LatencyModel,
    histogram: Sequence[str],
) -> Section:
    """Return the experiment's tables and its charts, Figures 5 to 8 of the paper.

    Args:
        outcomes: In the order to show them.
        source: The stream of all of them.
        model: With which they were made.
        histogram: The packings of Figure 5; their outcomes keep samples, or are left out.
    """
    found = likeness(source, model)
    same, shown = found is Likeness.SAME, found is not Likeness.OTHER
    beside = [
        kafka_beside_published(outcomes, recorded=same),
        packings_beside_published(outcomes, recorded=same),
        *([mwf_in_ranges(outcomes)] if same else []),
    ]
    claims = claims_and_grounds(headlines(outcomes, model))
    tables = [
        table for table in (all_values(outcomes), *(beside if shown else []), claims) if table.rows
    ]
    drawn = charts(outcomes, histogram, published=shown)
    return Section(
        title="Latency beside Kafka's own assignment",
        source="Landau, Andrade, Barbosa, arXiv 2402.06085, Section VI-C, Figures 5 to 8",
        expected=(
            "MWF's records are late by the rebalance time at most, those of kd_n by minutes where "
            f"consumers are overloaded. Published: p90 of MWF {paper.P90_S} s, of kd_15 with as "
            f"many consumers {paper.KAFKA['kd_15']['p90_above_zero_s']} s; kd_n needs at least "
            f"{100 * paper.MORE_CONSUMERS:.0f} % more consumers to be better."
        ),
        seen=_seen(outcomes, source.label, model, recorded=same),
        tables=tables,
        charts=drawn,
        publication=GROUPS,
        counterparts=counterparts(outcomes, tables, drawn, recorded=same) if shown else (),
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
        abs((values(one)["share"] or 0.0) - paper.PACKINGS[one.algorithm]["share"])
        for one in outcomes
        if one.algorithm in paper.PACKINGS
    ]
    if shares:
        parts.append(
            "The shares of samples above 0 of the twelve differ from published means by "
            f"{100 * max(shares):.1f} points at most."
        )
    return " ".join(parts)
