"""The tables of the report: ours beside the paper's, and our policy beside Algorithm 2."""

from collections.abc import Iterator, Sequence
from statistics import fmean

from binwright.lab.report.section import Cell, Table
from binwright.lab.slo.optimal import EVENTS, optimal
from binwright.lab.slo.paper import PUBLISHED, Published
from binwright.lab.slo.results import RIVAL, Result, TableResult, deviations, verdict

COLUMNS = (
    *("policy", "SLA, %", "SLA sd", "paper's SLA, %", "SLA difference, points"),
    *("replica-minutes", "as the paper counts", "paper's replica-minutes", "difference, %"),
    *("up / down", "paper's up / down", "longest latency, s", "within tolerance"),
)
OURS_COLUMNS = (
    *("table", "policy", "SLA, %", "Algorithm 2's SLA, %", "late records, difference, %"),
    *("replica-minutes", "Algorithm 2's", "difference, %", "verdict"),
)


def comparison(found: TableResult) -> Table:
    """Return a table with a row for each policy, and the paper's values beside it."""
    case = found.case
    rows = [_row(case.name, result) for result in found.results]
    note = f"Means over {case.seeds} runs, which differ in arrivals and in the controller's phase."
    if case.has_optimal:
        rows.insert(2, _optimal_row(found))
        note += f" Optimal is computed: at most {EVENTS} events a replica and second, no delay."
    if case.workload.is_stand_in:
        note += " The workload is a stand-in: its rows are near the paper's, not comparable."
    title = f"{case.name}: {case.title}"
    return Table(name=f"slo-{case.name}", title=title, columns=COLUMNS, rows=rows, note=note)


def ours(results: Sequence[TableResult]) -> Table:
    """Return the comparison of our policy with Algorithm 2 in every table that has both."""
    rows = [
        _versus(found, result, found.by_name[RIVAL])
        for found in results
        for result in found.results
        if result.contender.is_ours and RIVAL in found.by_name
    ]
    return Table(
        name="slo-ours",
        title="binwright's policy beside Algorithm 2",
        columns=OURS_COLUMNS,
        rows=rows,
        note="Replica-minutes from a replica's order to its end, with those in which it starts.",
    )


def sla_errors(results: Sequence[TableResult]) -> list[float]:
    """Return by how much each reproducible simulated SLA differs from the paper's, points."""
    return [
        abs(result.sla - published.sla)
        for found, result, published in _published(results)
        if published.is_reproducible
    ]


def outside(results: Sequence[TableResult]) -> list[str]:
    """Return the rows that are outside of the tolerance, and in what."""
    return [
        f"{found.case.name} {result.contender.name} ({what})"
        for found, result, published in _published(results)
        if published.is_reproducible and (what := _deviations(result, published))
    ]


def mean_sla_error(results: Sequence[TableResult]) -> float:
    """Return the mean of `sla_errors`; 0 without any."""
    errors = sla_errors(results)
    return fmean(errors) if errors else 0.0


def _published(
    results: Sequence[TableResult],
) -> Iterator[tuple[TableResult, Result, Published]]:
    for found in results:
        for result in found.results:
            published = PUBLISHED.get((found.case.name, result.contender.name))
            if published is not None:
                yield found, result, published


def _deviations(result: Result, published: Published) -> str:
    return deviations(published, result.sla, result.paper_minutes, (result.ups, result.downs))


def _row(table: str, result: Result) -> list[Cell]:
    published = PUBLISHED.get((table, result.contender.name))
    return [
        result.contender.name,
        round(result.sla, 2),
        round(result.sla_deviation, 2),
        *_beside(published, result),
        round(result.longest_s, 2),
        _within(published, "" if published is None else _deviations(result, published)),
    ]


def _beside(published: Published | None, result: Result) -> list[Cell]:
    minutes = round(result.minutes, 2)
    counted = round(result.paper_minutes, 2)
    steps = f"{result.ups:.1f} / {result.downs:.1f}"
    if published is None:
        return [None, None, minutes, counted, None, None, steps, None]
    return [
        published.sla,
        round(result.sla - published.sla, 2),
        minutes,
        counted,
        published.minutes,
        _share(counted, published.minutes),
        steps,
        _steps(published),
    ]


def _optimal_row(found: TableResult) -> list[Cell]:
    best = optimal(found.case.workload)
    minutes, steps = round(best.replica_minutes, 2), f"{best.ups} / {best.downs}"
    head: list[Cell] = ["Optimal", 100.0, 0.0]
    published = PUBLISHED.get((found.case.name, "Optimal"))
    if published is None:
        return [*head, None, None, minutes, minutes, None, None, steps, None, None, None]
    what = deviations(published, 100.0, best.replica_minutes, (best.ups, best.downs))
    return [
        *(*head, published.sla, 0.0, minutes, minutes, published.minutes),
        *(_share(best.replica_minutes, published.minutes), steps, _steps(published), None),
        _within(published, what),
    ]


def _versus(found: TableResult, result: Result, rival: Result) -> list[Cell]:
    late, theirs = 100 - result.sla, 100 - rival.sla
    return [
        found.case.name,
        result.contender.name,
        round(result.sla, 2),
        round(rival.sla, 2),
        round(100 * (late / theirs - 1)) if theirs else None,
        round(result.minutes, 2),
        round(rival.minutes, 2),
        _share(result.minutes, rival.minutes),
        verdict(result, rival),
    ]


def _share(value: float, published: float | None) -> float | None:
    return None if published is None else round(100 * (value / published - 1), 1)


def _steps(published: Published) -> str | None:
    return None if published.ups is None else f"{published.ups} / {published.downs}"


def _within(published: Published | None, found: str) -> str | None:
    if published is None:
        return None
    if not published.is_reproducible:
        return "known gap"
    return f"no: {found}" if found else "yes"
