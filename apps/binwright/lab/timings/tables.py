"""Tables: durations, capacities, and every event; and the paper's values beside ours."""

from collections.abc import Iterator, Sequence

from binwright.lab.report.contents import Cell, PublishedComparison, ReportTable
from binwright.lab.timings.capacity import ReadCapacity
from binwright.lab.timings.outcome import TimedParts, timed
from binwright.lab.timings.published import CONDITIONS, PublishedCapacity

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
MB = 1e6


def durations(timings: TimedParts) -> ReportTable:
    """Return a row for each kind of event that was seen."""
    return ReportTable(
        name="timings",
        title="Durations, s",
        columns=("Δt", "event", "events", *(f"{name}, s" for name in QUANTILES)),
        rows=[
            [
                *(one.delta, one.label, len(one.ours.samples)),
                *(_s(one.ours.quantile(share)) for share in QUANTILES.values()),
            ]
            for one in timed(timings)
            if one.ours is not None
        ],
    )


def capacities(read: Sequence[ReadCapacity]) -> ReportTable:
    """Return a row for each condition of Table VI that was run."""
    return ReportTable(
        name="timings-capacity",
        title="What one consumer reads of a backlog (Table VI, Figure 13)",
        columns=(
            *("condition", "MB", "kB a partition", "partitions", "tables", "cycles"),
            *(f"{name}, MB/s" for name in ("mean", "p5", "p50", "p95")),
        ),
        rows=[
            [
                *(one.name, _mb(one.bytes), round(one.bytes / one.partitions / 1_000)),
                *(one.partitions, one.tables, len(one.cycles.samples), _mb(one.cycles.mean)),
                *(_mb(one.cycles.quantile(share)) for share in (0.05, 0.5, 0.95)),
            ]
            for one in read
        ],
        note="Keys and values as read, in cycles of half a second or less; the paper's take about "
        "2.1 s and insert 5 MB into BigQuery. Ours stages files; Spark, which would take the same "
        "cores here, lands nothing meanwhile.",
    )


def counts(timings: TimedParts) -> ReportTable:
    """Return what was counted beside the durations."""
    return ReportTable(
        name="timings-counts",
        title="Counts",
        columns=("what", "number"),
        rows=[
            ("changes", len(timings.changes)),
            ("plans that were replaced before they were complete", timings.unfinished),
            ("plans without an overload", timings.untriggered),
            ("records of the range that were compacted away", timings.missing),
        ],
    )


def comparisons(timings: TimedParts) -> list[PublishedComparison]:
    """Return the paper's values beside ours, of what was run."""
    return [*_durations(timings), *_capacities(timings.capacities)]


def _durations(timings: TimedParts) -> Iterator[PublishedComparison]:
    for one in timed(timings):
        if one.ours is None or one.paper is None:
            continue
        for name, share in QUANTILES.items():
            if (published := one.paper.quantile(share)) is not None:
                yield PublishedComparison(
                    figure=f"Figure {one.paper.figure}",
                    what=f"Δt{one.delta}, {one.label}: {name}",
                    unit="s",
                    published=published,
                    ours=one.ours.quantile(share),
                    remark="upper end of a bin" if one.paper.binned else "",
                )


def _capacities(read: Sequence[ReadCapacity]) -> Iterator[PublishedComparison]:
    published = {condition.name: condition for condition in CONDITIONS}
    for one in read:
        theirs = published[one.name]
        for name, paper, ours in (
            ("mean", theirs.mean, one.cycles.mean),
            ("p5", theirs.p5, one.cycles.quantile(0.05)),
            ("p50", theirs.p50, one.cycles.quantile(0.5)),
            ("p95", theirs.p95, one.cycles.quantile(0.95)),
        ):
            yield PublishedComparison(
                figure="Table VI",
                what=f"{one.name}: {name}",
                unit="MB/s",
                published=paper / MB,
                ours=ours / MB,
            )
    if len(read) > 1:
        yield PublishedComparison(
            figure="Table VI",
            what="difference of the lowest mean from the highest",
            unit="%",
            published=100 * largest_difference([published[one.name] for one in read]),
            ours=100 * largest_difference(read),
        )


def events(timings: TimedParts) -> ReportTable:
    """Return every event."""
    rows: list[tuple[Cell, ...]] = []
    for step in timings.steps:
        rows.append(("step-90", _s(step.begun_s), _s(step.ninety_s), step.partition, None))
        rows.append(("step-99", _s(step.begun_s), _s(step.whole_s), step.partition, None))
    rows += [("trigger", _s(one.at_s), _s(one.seconds), None, None) for one in timings.triggers]
    for start in timings.starts:
        rows.append(("ready", _s(start.at_s), _s(start.seconds), None, 1))
        if start.process_s is not None:
            rows.append(("process", _s(start.at_s), _s(start.process_s), None, 1))
    for one in timings.changes:
        rows.append(("change", _s(one.at_s), _s(one.seconds), one.partitions, one.started))
        after = _s(one.after_ready_s)
        rows.append(("change-after-ready", _s(one.at_s), after, one.partitions, one.started))
    for stop in timings.writer_stops:
        rows.append(("writer-stop", _s(stop.at_s), _s(stop.seconds), None, None))
    columns = ("event", "time, s since 1970", "seconds", "partitions", "consumers started")
    return ReportTable(name="timings-events", title="Every event", columns=columns, rows=rows)


def largest_difference(compared: Sequence[ReadCapacity | PublishedCapacity]) -> float:
    """Return how far the means of conditions are apart, as a share of the largest."""
    means = [one.cycles.mean if isinstance(one, ReadCapacity) else one.mean for one in compared]
    return 1 - min(means) / max(means)


def _mb(value: float) -> float:
    return round(value / MB, 1)


def _s(seconds: float) -> float:
    return round(seconds, 3)
