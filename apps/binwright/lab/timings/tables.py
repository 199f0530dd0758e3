"""Tables and notes: durations and capacities beside the paper's, and every event."""

from collections.abc import Iterator, Sequence

from binwright.lab.report.contents import Cell, ReportTable
from binwright.lab.timings.capacity import ReadCapacity
from binwright.lab.timings.distribution import Distribution
from binwright.lab.timings.outcome import Timed, Timings, shortfalls, timed
from binwright.lab.timings.published import CONDITIONS, PublishedCapacity

SHARES = (0.5, 0.9, 0.99, 1.0)
NAMES = ("p50", "p90", "p99", "max")
MB = 1e6
NOTES = (
    "Δt1: from the first record of a step to the record of a measurement; the paper's is 90 % of "
    "a step over a window of 30 s, too. "
    "Δt2: from the measurement, or from the end of the change before if that was later, to the "
    "plan; the paper's includes the request for new consumers. "
    "Δt3: from the plan to the consumer's first report that it is ready; the paper's is given in "
    "bins of 20 s (upper ends). "
    "Δt4: until the last partition has its new reader; the paper's begins when all consumers are "
    "ready, and so does the row beside it. A plan that ends a table's writer waits for the "
    "commit in flight, 5 s at most; only then can the next plan follow."
)


def durations(timings: Timings) -> ReportTable:
    """Return a row for each kind of event that was seen, the paper's percentiles beside ours."""
    seen = [one for one in timed(timings) if one.ours is not None]
    columns = ["Δt", "event", "events", *(f"{name}, s" for name in NAMES)]
    columns += ["paper's events", *(f"paper's {name}, s" for name in NAMES)]
    rows = [_duration(one) for one in seen]
    title = "Durations in s, beside the paper's"
    return ReportTable(name="timings", title=title, columns=columns, rows=rows, note=NOTES)


def capacities(read: Sequence[ReadCapacity]) -> ReportTable:
    """Return a row for each condition of Table VI that was run."""
    published = {condition.name: condition for condition in CONDITIONS}
    columns = (
        *("condition", "MB", "kB a partition", "partitions", "tables", "cycles"),
        *("mean, MB/s", "p5, MB/s", "p50, MB/s", "p95, MB/s"),
        *("paper's MB", "paper's mean, MB/s", "paper's p5", "paper's p50", "paper's p95"),
    )
    rows = [_capacity(one, published[one.name]) for one in read]
    note = (
        "MB/s of keys and values as read, in cycles of half a second or less; the paper's take "
        "about 2.1 s and insert 5 MB into BigQuery. Ours stages files; Spark, which would take "
        "the same cores here, lands nothing meanwhile."
    )
    title = "What one consumer reads of a backlog, in MB/s (Table VI, Figure 13)"
    return ReportTable(name="timings-capacity", title=title, columns=columns, rows=rows, note=note)


def events(timings: Timings) -> ReportTable:
    """Return every event."""
    rows: list[tuple[Cell, ...]] = []
    for step in timings.steps:
        rows.append(("step-90", _time(step.begun_s), _s(step.ninety_s), step.partition, None))
        rows.append(("step-99", _time(step.begun_s), _s(step.whole_s), step.partition, None))
    rows += [("trigger", _time(one.at_s), _s(one.seconds), None, None) for one in timings.triggers]
    for start in timings.starts:
        rows.append(("ready", _time(start.at_s), _s(start.seconds), None, 1))
        if start.process_s is not None:
            rows.append(("process", _time(start.at_s), _s(start.process_s), None, 1))
    for one in timings.changes:
        rows.append(("change", _time(one.at_s), _s(one.seconds), one.partitions, one.started))
        after = _s(one.after_ready_s)
        rows.append(("change-after-ready", _time(one.at_s), after, one.partitions, one.started))
    for stop in timings.writer_stops:
        rows.append(("writer-stop", _time(stop.at_s), _s(stop.seconds), None, None))
    columns = ("event", "time, s since 1970", "seconds", "partitions", "consumers started")
    return ReportTable(name="timings-events", title="Every event", columns=columns, rows=rows)


def largest_difference(compared: Sequence[ReadCapacity | PublishedCapacity]) -> float:
    """Return how far the means of conditions are apart, as a share of the largest."""
    means = [one.cycles.mean if isinstance(one, ReadCapacity) else one.mean for one in compared]
    return 1 - min(means) / max(means)


def _duration(one: Timed) -> list[Cell]:
    assert one.ours is not None
    row: list[Cell] = [one.delta, one.label, len(one.ours.samples)]
    row += [_s(one.ours.quantile(share)) for share in SHARES]
    if one.paper is None:
        return [*row, *([None] * (1 + len(SHARES)))]
    return [*row, one.paper.observations, *(one.paper.quantile(share) for share in SHARES)]


def _capacity(one: ReadCapacity, published: PublishedCapacity) -> list[Cell]:
    cycles = one.cycles
    return [
        *(one.name, _mb(one.bytes), round(one.bytes / one.partitions / 1_000)),
        *(one.partitions, one.tables, len(cycles.samples), _mb(cycles.mean)),
        *(_mb(cycles.quantile(share)) for share in (0.05, 0.5, 0.95)),
        *(_mb(published.total_bytes), round(published.mean / MB, 2)),
        *(round(value / MB, 2) for value in (published.p5, published.p50, published.p95)),
    ]


def _mb(value: float) -> float:
    return round(value / MB, 1)


def _s(seconds: float) -> float:
    return round(seconds, 3)


def _time(at_s: float) -> float:
    return round(at_s, 3)


def notes(timings: Timings) -> Iterator[str]:
    """Yield sentences: ours as a share of the paper's, and what the figures do not show."""
    for one in timed(timings):
        if one.ours is None or one.paper is None:
            continue
        published = one.paper.quantile(0.5)
        assert published is not None
        ratio = one.ours.quantile(0.5) / published
        yield (
            f"Δt{one.delta}, {one.label}: median {one.ours.quantile(0.5):.2f} s, "
            f"{ratio:.2f} of the paper's {published:g} s"
            + (" (a bin's upper end)." if one.paper.binned else ".")
        )
    if triggers := Distribution.of(trigger.seconds for trigger in timings.triggers):
        yield f"{triggers.within(1.0):.0%} of the triggers took 1 s at most."
    if timings.changes:
        yield (
            f"{len(timings.changes)} changes; {timings.unfinished} plans were replaced before they "
            f"were complete, {timings.untriggered} plans had no overload."
        )
    for short in shortfalls(timings):
        yield (
            f"Δt{short.delta}, {short.label}: {short.events} events of {short.wanted} that were "
            "wanted; the time was over."
        )
    if timings.missing:
        yield (
            f"{timings.missing} records of the range are compacted away: events among them are "
            "missing."
        )
    if len(timings.capacities) > 1:
        names = {one.name for one in timings.capacities}
        theirs = [condition for condition in CONDITIONS if condition.name in names]
        yield (
            f"A consumer's mean rates differ by {largest_difference(timings.capacities):.1%}, the "
            f"paper's by {largest_difference(theirs):.1%}."
        )
