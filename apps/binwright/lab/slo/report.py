"""The tables and the section of the lab's report: ours beside the paper's."""

from collections.abc import Iterator, Sequence

from binwright.lab.report.comparisons import published_tables, rounded
from binwright.lab.report.contents import Cell, ReportSection, ReportTable
from binwright.lab.report.publications import QUEUES
from binwright.lab.slo.bounds import EVENTS, least_minutes, minutes_at, optimal
from binwright.lab.slo.cases import FRONTIER
from binwright.lab.slo.figures import charts_of
from binwright.lab.slo.published import FIGURES, SOURCE, comparisons
from binwright.lab.slo.results import RIVALS, PolicyResult, TableResult, is_better

COLUMNS = (
    *("policy", "SLA, %", "SLA sd", "replica-minutes", "as the paper counts"),
    *("added", "removed", "longest, s"),
)
OURS_COLUMNS = (
    *("table", "policy", "beside", "SLA, %", "SLA beside, %", "late records, difference, %"),
    *("replica-minutes", "minutes beside", "minutes, difference, %", "better in both"),
)


def policies(table: TableResult) -> ReportTable:
    """Return a table with a row for each policy."""
    case = table.case
    rows: list[Sequence[Cell]] = [
        (
            result.setup.name,
            *(round(result.sla, 2), round(result.sla_deviation, 2)),
            *(round(result.minutes, 2), round(result.paper_minutes, 2)),
            *(round(result.ups, 1), round(result.downs, 1), round(result.longest_s, 2)),
        )
        for result in table.results
    ]
    if case.has_optimal:
        algorithms = sum(one.setup.name.startswith("Algorithm") for one in table.results)
        best = optimal(case.workload)
        minutes = round(best.replica_minutes, 2)
        rows.insert(
            algorithms,
            ("Optimal", 100.0, 0.0, minutes, minutes, float(best.ups), float(best.downs), None),
        )
    return ReportTable(
        name=f"slo-{case.name}",
        title=f"{case.name}: {case.title}",
        columns=COLUMNS,
        rows=rows,
        note=f"Means over {case.seeds} runs, which differ in arrivals and in the controller's "
        f"phase. Optimal is computed: at most {EVENTS} events a replica and second, no delay.",
        figures=(FIGURES[case.name],) if case.name in FIGURES else (),
    )


def ours(results: Sequence[TableResult]) -> ReportTable:
    """Return the comparison of our policy with Algorithm 2 in every table that has both."""
    rows = [
        _versus(table, result, table.by_name[rival])
        for table in results
        for result in table.results
        for rival in RIVALS
        if result.setup.is_ours and rival in table.by_name
    ]
    return ReportTable(
        name="slo-ours",
        title="binwright's policy beside Algorithm 2",
        columns=OURS_COLUMNS,
        rows=rows,
        note="Replica-minutes from a replica's order to its end, with those in which it starts.",
    )


def _versus(table: TableResult, result: PolicyResult, rival: PolicyResult) -> list[Cell]:
    late, theirs = 100 - result.sla, 100 - rival.sla
    return [
        table.case.name,
        result.setup.name,
        rival.setup.name,
        round(result.sla, 2),
        round(rival.sla, 2),
        round(100 * (late / theirs - 1)) if theirs else None,
        round(result.minutes, 2),
        round(rival.minutes, 2),
        round(100 * (result.minutes / rival.minutes - 1), 1),
        "yes" if is_better(result, rival) else "no",
    ]


TARGET = 0.85
"""Of the lag rule's replica-minutes: what the scaler is expected to need at most."""
USUAL = "KEDA, lag 90"
EQUAL_SLA_COLUMNS = (
    *("workload", "setting", "SLA, %", "scaler's replica-minutes", "lag rule's"),
    *("ratio", f"at most {TARGET}", "least possible", "least / lag rule's"),
)


def equal_sla(results: Sequence[TableResult]) -> ReportTable | None:
    """Return the comparison; None: no table for it was run."""
    rows = [
        row for one in results if one.case.name.endswith(FRONTIER) for row in _equal_sla_rows(one)
    ]
    if not rows:
        return None
    return ReportTable(
        name="slo-equal-sla",
        title="The scaler beside KEDA's lag rule at the same SLA",
        columns=EQUAL_SLA_COLUMNS,
        rows=rows,
        note="Of the side that is not the setting's: on a line between its own settings, empty "
        "where none has that share. The least possible is of a scaler that knows each second "
        "beforehand and waits for nothing.",
    )


def _equal_sla_rows(table: TableResult) -> Iterator[list[Cell]]:
    scaler = [one for one in table.results if one.setup.is_ours]
    rule = [one for one in table.results if not one.setup.is_ours]
    for one in scaler:
        yield _equal_sla_row(table, one, one.minutes, minutes_at(one.sla, _points(rule)))
    for one in rule:
        if one.setup.name == USUAL:
            yield _equal_sla_row(table, one, minutes_at(one.sla, _points(scaler)), one.minutes)


def _points(results: Sequence[PolicyResult]) -> list[tuple[float, float]]:
    return [(one.sla, one.minutes) for one in results]


def _equal_sla_row(
    table: TableResult, at: PolicyResult, ours: float | None, theirs: float | None
) -> list[Cell]:
    workload, settings = table.case.workload, at.setup.settings
    least = least_minutes(workload, settings.sla_s / settings.service_s, at.sla)
    ratio = _ratio(ours, theirs)
    return [
        *(workload.name, at.setup.name, round(at.sla, 2)),
        *(rounded(ours, 2), rounded(theirs, 2), ratio),
        None if ratio is None else "yes" if ratio <= TARGET else "no",
        *(round(least, 2), _ratio(least, theirs)),
    ]


def _ratio(value: float | None, by: float | None) -> float | None:
    return None if value is None or by is None else round(value / by, 3)


def section(results: Sequence[TableResult]) -> ReportSection:
    """Return tables and charts of what was run, and the paper's values beside ours."""
    compared, at_equal_sla = comparisons(results), equal_sla(results)
    return ReportSection(
        title="SLA and cost of scaling policies on simulated consumer groups",
        source=SOURCE,
        tables=[
            *map(policies, results),
            ours(results),
            *([] if at_equal_sla is None else [at_equal_sla]),
            *published_tables("slo", compared),
        ],
        charts=charts_of(results),
        publication=QUEUES,
        comparisons=compared,
    )
